"""What a lake accepted, and which tools stand with which tests over which database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from agent_world.identity import VersionId
from agent_world.world import World, rejected_trajectories

Tests = Mapping[tuple[VersionId, VersionId], Sequence[VersionId]]
"""The tests of a tool over a database: (database, tool) to versions."""


class Enrichment(NamedTuple):
    """A database that a complexification round made, and the one that it began with."""

    before: VersionId
    after: VersionId

    def __str__(self) -> str:
        return self.after


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """Versions of everything that was accepted and not retired, superseded ones included; `hard` are among `tasks`.

    An environment that an accepted task pins counts whatever became of it. `practice` are tasks that were kept to be
    demonstrated only. `trajectories` are those with an outcome, less what their own gate rejected: a harness
    error has no state to replay to.
    """

    themes: tuple[VersionId, ...]
    databases: tuple[VersionId, ...]
    rounds: tuple[Enrichment, ...]
    tools: tuple[VersionId, ...]
    environments: tuple[VersionId, ...]
    tasks: tuple[VersionId, ...]
    hard: frozenset[VersionId]
    practice: tuple[VersionId, ...]
    trajectories: tuple[VersionId, ...]
    checkpoints: tuple[VersionId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolbox:
    """Tools over one database, with the tests that were written for them there.

    `environment` is the accepted environment that they make up; None for kept tools that no environment pins.
    """

    database: VersionId
    tools: tuple[VersionId, ...]
    tests: tuple[VersionId, ...]
    environment: VersionId | None

    def __str__(self) -> str:
        return self.environment or self.database


def take_census(world: World) -> Census:
    """Everything that is to be audited."""
    tasks = _rows(world, "tasks", "accepted", "tier", "environments")
    accepted = [row for row in tasks if row["accepted"]]
    pinned = {environment for row in accepted for environment in row["environments"]}
    environments = [row["version_id"] for row in _rows(world, "environments")]
    databases = _rows(world, "databases", "tables")
    return Census(
        themes=_versions(_rows(world, "themes")),
        databases=_versions(databases),
        rounds=_enrichments(world, databases),
        tools=_versions(row for row in _rows(world, "tools", "accepted") if row["accepted"]),
        environments=(*environments, *sorted(pinned - set(environments))),
        tasks=_versions(accepted),
        hard=frozenset(_versions(row for row in accepted if row["tier"] == "hard")),
        practice=_versions(row for row in tasks if row["tier"] == "practice"),
        trajectories=_replayable(world),
        checkpoints=_versions(row for row in _rows(world, "checkpoints", "accepted") if row["accepted"] is not False),
    )


def toolboxes(world: World, census: Census) -> list[Toolbox]:
    """Every accepted environment, then the kept tools that no environment pins, by database."""
    tests = _tests(world)
    boxes, pinned = [], set()
    for environment in census.environments:
        payload = world.payload(environment)
        tools = tuple(VersionId(tool) for tool in payload["tool_versions"])
        boxes.append(_toolbox(VersionId(payload["database_version"]), tools, tests, environment))
        pinned.update(tools)
    loose = set(census.tools) - pinned
    over = {tool: database for database, tool in tests if tool in loose}
    by_database: dict[VersionId, list[VersionId]] = defaultdict(list)
    for tool, database in over.items():
        by_database[database].append(tool)
    return [*boxes, *(_toolbox(database, tuple(tools), tests, None) for database, tools in by_database.items())]


def _enrichments(world: World, databases: Sequence[Mapping[str, Any]]) -> tuple[Enrichment, ...]:
    """What has a database before it; not where workflow tables are all that was added."""
    before = {edge["child"]: edge["parent"] for edge in world.read("edges", where={"role": "previous"})}
    mined = [row["version_id"] for row in databases if not any(table["workflow"] for table in row["tables"])]
    return tuple(Enrichment(before[version], version) for version in mined if version in before)


def _replayable(world: World) -> tuple[VersionId, ...]:
    rejected = rejected_trajectories(world)
    rows = _rows(world, "trajectories", "status")
    return _versions(row for row in rows if row["status"] != "infra_error" and row["version_id"] not in rejected)


def _toolbox(database: VersionId, tools: tuple[VersionId, ...], tests: Tests, environment: VersionId | None) -> Toolbox:
    own = dict.fromkeys(test for tool in tools for test in tests.get((database, tool), ()))
    return Toolbox(database=database, tools=tools, tests=tuple(own), environment=environment)


def _tests(world: World) -> Tests:
    """The tests of each tool over each database, as the events say.

    The tables cannot tell: a tool that a richer database leaves as it was is the same version there, and what its tests
    expect may differ. A batch tests the tools of one database.
    """
    columns = ["kind", "batch", "version_id", "content_hash", "parents"]
    events = world.read("events", where={"kind": ["tool", "tool_test"]}, columns=columns)
    made = [row for row in events if row["content_hash"] is not None]  # the others only observe
    over: dict[str, dict[VersionId, VersionId]] = defaultdict(dict)
    tests: dict[tuple[VersionId, VersionId], list[VersionId]] = defaultdict(list)
    for row in made:
        if row["kind"] == "tool":
            database = _parent(row, "database")
            over[row["batch"]][row["version_id"]] = database
            tests[database, row["version_id"]] = []
    for row in made:
        if row["kind"] == "tool_test" and (tool := _parent(row, "tool")) in over[row["batch"]]:
            tests[over[row["batch"]][tool], tool].append(row["version_id"])
    return tests


def _parent(event: Mapping[str, Any], role: str) -> VersionId:
    return next(VersionId(parent["version_id"]) for parent in event["parents"] if parent["role"] == role)


def _rows(world: World, table: str, *columns: str) -> list[dict[str, Any]]:
    return world.read(table, where={"state": ["created", "superseded"]}, columns=["version_id", *columns])


def _versions(rows: Any) -> tuple[VersionId, ...]:
    return tuple(VersionId(row["version_id"]) for row in rows)
