"""A lake that knows what its artifacts are: environments to open sessions in, tasks to attempt."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_world.codec import decode, encode
from agent_world.environments.model import Database, Environment, Tool
from agent_world.identity import VersionId, artifact_id_of, canonical_json
from agent_world.lake.lake import Lake, open_lake
from agent_world.lake.lineage import CALLS
from agent_world.rollouts.model import Trajectory
from agent_world.tasks.model import Task

if TYPE_CHECKING:
    from agent_world.lake.batch import Batch
    from agent_world.rollouts.episode import Episode
    from agent_world.sandbox import Sandbox

Parents = Sequence[tuple[VersionId, str]]


def open(uri: str | Path = "lake", *, create: bool = False) -> World:
    """Open the lake at a directory or ``s3://`` URI; an empty one is made there with `create`.

    Raises:
        NotALakeError: something else is there, or nothing and `create` is off.
    """
    return World(open_lake(uri, create=create).storage)


class World(Lake):
    """A lake with typed access to environments, tasks and trajectories."""

    @cached_property
    def _environments(self) -> dict[VersionId, Environment]:
        return {}

    def environment(self, ref: str) -> Environment:
        """The environment that `ref` means: a version, an environment key, or a unique start of either.

        Raises:
            NotFoundError: nothing, or more than one thing, is called `ref`.
        """
        version = self.resolve("environment", ref)
        if version not in self._environments:
            payload = self.payload(version)
            database = VersionId(payload["database_version"])
            tools = tuple(VersionId(tool) for tool in payload["tool_versions"])
            self._environments[version] = Environment(
                environment_id=payload["environment_id"],
                version=version,
                title=payload["title"],
                description=payload["description"],
                theme=VersionId(payload["theme"]),
                database=decode(Database, self.payload(database)),
                database_version=database,
                tools=tuple(decode(Tool, self.payload(tool)) for tool in tools),
                tool_versions=tools,
                files=self.files(database),
                runtime=payload["runtime"],
                state_format=payload["state_format"],
            )
        return self._environments[version]

    def environments(self) -> list[Environment]:
        """Every accepted environment in its current version, by key."""
        keys = sorted(row["artifact_id"] for row in self.read("environments", where={"state": "created"}))
        return [self.environment(key) for key in keys]

    def task(self, ref: str) -> BoundTask:
        """The task that `ref` means, bound to its pinned environments.

        Raises:
            NotFoundError: nothing, or more than one thing, is called `ref`.
        """
        version = self.resolve("task", ref)
        task = decode(Task, self.payload(version))
        return BoundTask(version=version, task=task, environment=self.environment(task.environments[0]))

    def trajectory(self, version: VersionId) -> Trajectory:
        """A recorded episode.

        Raises:
            NotFoundError: no such version.
        """
        payload = self.payload(version)
        names = (field.name for field in fields(Trajectory))
        found = {n: payload[n] for n in names if n in payload}
        uncut = {int(Path(path).stem): json.loads(data) for path, data in self.files(version).items()}
        return decode(Trajectory, {"trajectory_id": artifact_id_of(version), **found, "uncut": uncut})


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundTask:
    """A task with what it pins. `episode` opens what a policy gets, and nothing else."""

    version: VersionId
    task: Task
    environment: Environment

    def episode(self, seed: int = 0, *, sandbox: Sandbox | None = None) -> Episode:
        """A live episode; use it with `with`. This binding holds the answer: hand a policy the episode only."""
        from agent_world.rollouts.episode import Episode

        return Episode(self.task, self.environment, seed=seed, sandbox=sandbox)


def save_database(batch: Batch, database: Database, files: Mapping[str, bytes], parents: Parents) -> VersionId:
    """A database version: its logical digest is its identity, the bytes are transport."""
    return batch.create(
        "database", database.database_id, encode(database), parents=parents, files=files, blob_in_identity=False
    )


def save_environment(
    batch: Batch,
    *,
    environment_id: str,
    title: str,
    description: str,
    theme: VersionId,
    database: VersionId,
    tools: Sequence[VersionId],
    runtime: str = "python-function",
    state_format: str = "sqlite+files",
) -> VersionId:
    """An accepted environment: a title, the pins of its parts, and how they are run (environments/formats.py)."""
    payload = {
        "environment_id": environment_id,
        "title": title,
        "description": description,
        "theme": theme,
        "database_version": database,
        "tool_versions": sorted(tools),
        "runtime": runtime,
        "state_format": state_format,
    }
    parents = [(theme, "theme"), (database, "database"), *((tool, "tool") for tool in sorted(tools))]
    return batch.create("environment", environment_id, payload, parents=parents)


def save_task(batch: Batch, task: Task, parents: Parents = ()) -> VersionId:
    """A task, accepted or not; its verdict is observed apart. It names the tools that its plan calls.

    `parents` may add the diagnosis that asked for it.
    """
    pinned = [(environment, "environment") for environment in task.environments]
    called = _called(batch, task.environments, [call.tool for call in task.plan])
    return batch.create("task", task.task_id, encode(task), parents=[*pinned, *called, *parents])


def save_trajectory(
    batch: Batch, trajectory: Trajectory, *, purpose: str, round: int, parents: Parents = ()
) -> VersionId:
    """An episode with its task, its environment and the tools it called as parents; `parents` may add the policy.

    Observations that were cut for the policy are kept whole as blobs.
    """
    record: dict[str, Any] = encode(replace(trajectory, uncut={}))
    payload = {
        "task": trajectory.task,
        "environment": trajectory.environment,
        "policy": trajectory.policy,
        "policy_version": trajectory.policy_version,
        "sample": trajectory.sample,
        "seed": trajectory.seed,
        "steps": record["steps"],
        "outcome": record["outcome"],
        "final_digest": trajectory.final_digest,
        "status": trajectory.outcome.status,
        "purpose": purpose,
        "round": round,
    }
    pinned = [(trajectory.task, "task"), (trajectory.environment, "environment"), *parents]
    called = _called(batch, [trajectory.environment], [step.tool for step, _ in trajectory.steps if step.tool])
    whole = {f"uncut/{index}.json": canonical_json(value).encode() for index, value in trajectory.uncut.items()}
    return batch.create(
        "trajectory", trajectory.trajectory_id, payload, parents=[*pinned, *called], files=whole or None
    )


def rejected_trajectories(world: World) -> set[str]:
    """The trajectories whose replay showed something else: kept, but nothing may rest on them."""
    where = {"gate": "trajectory", "accepted": False}
    return {row["subject"] for row in world.read("gate_verdicts", where=where, columns=["subject"])}


def _called(batch: Batch, environments: Sequence[VersionId], tools: Sequence[str]) -> Parents:
    """Edges to the tool versions that were really called, so that their impact is exact."""
    versions = [_tool_versions(batch, environment) for environment in environments]
    return [(known[tool], CALLS) for tool in sorted(set(tools)) for known in versions if tool in known]


def _tool_versions(batch: Batch, environment: VersionId) -> Mapping[str, VersionId]:
    return _committed_tools(batch.lake, environment) if batch.lake.has(environment) else _tools(batch, environment)


@lru_cache(maxsize=4096)
def _committed_tools(lake: Lake, environment: VersionId) -> Mapping[str, VersionId]:
    return _tools(lake, environment)


def _tools(source: Lake | Batch, environment: VersionId) -> Mapping[str, VersionId]:
    return {source.payload(tool)["name"]: tool for tool in source.payload(environment)["tool_versions"]}
