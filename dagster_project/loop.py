"""The whole loop: materialise every stage in order, in this process, through Dagster (one pipeline, not two)."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from agent_world import world
from agent_world.errors import AgentWorldError
from assets.partitions import environments, round_key, rounds, targeted
from assets.resources import shared_workers
from assets.settings import Settings
from dagster_project.cli.common import engine_place, typed
from dagster_project.instance import dagster_environment, instance_of
from dagster_project.runs import Asked, mark, settings_to_run
from dagster_project.stages import Stages
from trainers import supervisor

FREE_BYTES = 2 << 30


class TooLittleRoomError(AgentWorldError):
    """Too little room to begin."""

    def __init__(self, place: str, free: int) -> None:
        super().__init__(place, free)
        self.place, self.free = place, free

    def __str__(self) -> str:
        free, need = self.free / 2**30, FREE_BYTES / 2**30
        return f"{self.place} has {free:.1f} GiB free, a run needs {need:.0f}; free some or choose another --lake"


class NothingLeftError(AgentWorldError):
    """Nothing came out of a stage, so that no other can go on."""

    def __init__(self, lake: str, made: str) -> None:
        super().__init__(lake, made)
        self.lake, self.made = lake, made

    def __str__(self) -> str:
        return f"no {self.made} came of it, nothing can go on; why: {typed('status', '--lake', self.lake)}"


def run_loop(lake: str, asked: Asked, *, resume: bool = False) -> None:
    """Run the loop with the options `asked` on the lake at `lake`, or go on with its last run (see `settings_to_run`).

    A partition that fails is set aside and its neighbours go on; `failures` lists them afterwards.

    Raises:
        TooLittleRoomError, NotALakeError: before anything is written.
        PostgresAddressError, PostgresMissingError, PostgresRefusedError, SchemaRefusedError: before the run begins.
        UnfinishedRunError, OtherOptionsError, OtherLoopError: as in `settings_to_run`.
        StageFailedError: a stage raised.
        NothingLeftError: nothing came out of a stage.
        RunInterruptedError: Ctrl-C in a stage.
    """
    _check_room(lake)
    opened = world.open(lake, create=True)
    settings = settings_to_run(opened, asked, resume=resume)
    dagster_environment(lake)  # a database out of reach is told before the run has begun
    mark(opened, settings, "started")
    try:
        _materialise(lake, opened, settings)
    except NothingLeftError:
        mark(opened, settings, "failed")
        raise
    mark(opened, settings, "succeeded")


def _materialise(lake: str, opened: world.World, settings: Settings) -> None:
    with shared_workers(settings.threads, engine_place()), instance_of(lake) as instance:
        supervisor.prepare()
        stages = Stages(instance, lake, settings)
        instance.add_dynamic_partitions(rounds.name, [round_key(number) for number in range(settings.rounds + 1)])
        stages.run("Themes and their data", ["themes", "mined"])
        keys = instance.get_dynamic_partitions(environments.name)
        _need(keys, lake, "database")
        stages.run("Environments", ["databases", "tools", "environments"], keys)
        _need(opened.read("environments", columns=["version_id"]), lake, "environment")
        stages.run("Taxonomy", ["taxonomy"])
        stages.run("Tasks", ["tool_graphs", "tasks"], keys)
        _need(opened.read("tasks", where={"accepted": True}, columns=["version_id"]), lake, "task")
        stages.run("Diagnosis on planted faults", ["diagnosis_score"])
        stages.run("Base policies", ["task_sets", "untrained", "cold_start", "base_policy"])
        stages.run("Evaluation of the base", ["evaluation"], [round_key(0)])
        for number in range(1, settings.rounds + 1):
            key = round_key(number)
            stages.run(f"Round {number}: arena and diagnosis", ["arena", "diagnosis"], [key])
            weak = [k for k in instance.get_dynamic_partitions(targeted.name) if k.startswith(f"{key}|")]
            if weak:
                stages.run(f"Round {number}: targeted tasks", ["targeted_tasks"], weak)
            stages.run(f"Round {number}: training and evaluation", ["round_policy", "evaluation"], [key])
        stages.run("Report", ["report"])


def _check_room(lake: str) -> None:
    place = Path.home() if "://" in lake else Path(lake).resolve()
    there = next(folder for folder in (place, *place.parents) if folder.exists())
    free = shutil.disk_usage(there).free
    if free < FREE_BYTES:
        raise TooLittleRoomError(str(there), free)


def _need(made: Sequence[object], lake: str, name: str) -> None:
    if not made:
        raise NothingLeftError(lake, name)
