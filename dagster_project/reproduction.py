"""Makes an artifact again from its recorded inputs, by the stage that made it, and says precisely what differs.

The stage runs in a lake of its own that holds what the lake held when its batch began, and nothing later. The lake that
is asked about is only read.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from agent_world import world
from agent_world.errors import AgentWorldError
from agent_world.identity import VersionId, artifact_id_of
from agent_world.lake import carry, lineage
from agent_world.lake.code import code_version
from agent_world.lake.proof import OnProgress, silent
from agent_world.lake.rows import having
from agent_world.lake.view import View
from agent_world.world import World
from assets.partitions import environments, round_key, rounds, targeted, targeted_key
from assets.resources import shared_workers
from dagster_project.cli.common import engine_place
from dagster_project.instance import instance_of
from dagster_project.runs import last_run
from dagster_project.stages import StageFailedError, Stages
from trainers import supervisor

_OF_ENVIRONMENT = {name: name for name in ("mined", "databases", "tools", "environments", "tool_graphs")}
_OF_WHOLE_LAKE = {
    "themes": "themes",
    "taxonomy": "taxonomy",
    "task_set/training": "task_sets",
    "task_set/held_out": "task_sets",
    "checkpoint/untrained": "untrained",
    "checkpoint/sft": "cold_start",
    "checkpoint/pi0": "base_policy",
}


class NotReproducibleError(AgentWorldError):
    """The version cannot be made again alone: `why` says what stands in the way."""

    def __init__(self, version: str, why: str) -> None:
        super().__init__(version, why)
        self.version, self.why = version, why

    def __str__(self) -> str:
        return f"{self.version} cannot be made again alone: {self.why}; `agent-world lineage reproduce` gives the plan"


class Remade(NamedTuple):
    """One version of the batch, and what came out in its place."""

    version_id: str
    remade: str | None
    """The version that came out; None when nothing of that name did."""
    differs: dict[str, Any]
    """Fields of the payload, files and parents that differ, both sides of each; empty when it is the same version."""

    @property
    def same(self) -> bool:
        """Whether the same version came out."""
        return self.version_id == self.remade


class Reproduction(NamedTuple):
    """What came of running a batch again."""

    stage: str
    partition: str
    code_then: str
    code_now: str
    remade: list[Remade]


class Place(NamedTuple):
    """Which asset runs a batch, and for which key of which partitions."""

    asset: str
    partitions: str | None = None
    key: str = ""


def remake(lake: World, version: VersionId, folder: Path, *, on_progress: OnProgress = silent) -> Reproduction:
    """Run the batch that made `version` again in a new lake below `folder`, and compare all that it made.

    Raises:
        NotReproducibleError: its stage works on more than this, or no run is recorded whose settings it had.
        StageFailedError: it raised.
    """
    [batch] = lake.read("batches", where={"batch": lake.version(version)["batch"]})
    place = place_of(batch["stage"], batch["partition"], version)
    scratch = world.open(folder / "lake", create=True)
    carry.branch(scratch, lake, batch["commit_version"] - 1, on_progress=on_progress)
    run = last_run(scratch)
    if run is None:
        raise NotReproducibleError(version, "no run is recorded, so its settings are not known")
    before = {row["batch"] for row in scratch.read("batches", columns=["batch"])}
    with shared_workers(run.settings.threads, engine_place()), instance_of(scratch.uri) as instance:
        supervisor.prepare()
        keys = [place.key] if place.partitions else []
        if place.partitions:
            instance.add_dynamic_partitions(place.partitions, keys)
        try:
            Stages(instance, scratch.uri, run.settings).run(f"Making {version} again", [place.asset], keys)
        except StageFailedError:
            if not _again(scratch, batch, before):  # a check may fail on what is committed: that can be compared
                raise
    remade = _compare(lake, scratch, batch, before)
    return Reproduction(batch["stage"], batch["partition"], batch["code_version"], code_version(), remade)


def place_of(stage: str, partition: str, version: str = "") -> Place:
    """Which asset runs the batches of a stage.

    Raises:
        NotReproducibleError: only one that works on much more.
    """
    if stage in _OF_ENVIRONMENT:
        return Place(_OF_ENVIRONMENT[stage], environments.name, partition)
    if stage in _OF_WHOLE_LAKE:
        return Place(_OF_WHOLE_LAKE[stage])
    first, _, rest = stage.partition("/")
    if first == "tasks":
        return Place("tasks", environments.name, partition)
    if first == "targeted":
        return Place("targeted_tasks", targeted.name, targeted_key(int(rest[1:]), partition))
    if first == "checkpoint":
        number = rest.partition("-")[0].lstrip("abcdefghijklmnopqrstuvwxyz")
        if number.isdecimal():
            return Place("round_policy", rounds.name, round_key(int(number)))
    raise NotReproducibleError(version, f"stage {stage} works on a whole round at once")


def _compare(lake: World, scratch: World, batch: Mapping[str, Any], before: set[str]) -> list[Remade]:
    """What the batch made, beside what its stage made for the same partition in `scratch`."""
    again = _again(scratch, batch, before)
    found = {artifact_id_of(version): version for one in again for version in _made(scratch, one)}
    first = _made(lake, batch["batch"])
    carry.branch(scratch, lake, batch["commit_version"])  # to see both sides in one lake
    remade = []
    for version in first:
        second = found.get(artifact_id_of(version))
        differs = lineage.diff(scratch, version, second) if second not in (None, version) else {}
        remade.append(Remade(version, second, {name: differs[name] for name in _TOLD if differs.get(name)}))
    return remade


def _again(scratch: World, batch: Mapping[str, Any], before: set[str]) -> list[str]:
    """The batches of the same stage and partition that are new in `scratch`."""
    where = {"stage": batch["stage"], "partition": batch["partition"]}
    return [row["batch"] for row in scratch.read("batches", where=where) if row["batch"] not in before]


_TOLD = ("payload", "files", "parents_only_first", "parents_only_second")


def _made(view: View, batch: str) -> list[VersionId]:
    events = having(view.batch_events(batch), event_type=["created", "observed"])
    names = zip(events.column("version_id").to_pylist(), events.column("content_hash").to_pylist(), strict=True)
    return [VersionId(version) for version, content in names if content is not None]
