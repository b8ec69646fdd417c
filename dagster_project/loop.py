"""The whole loop: materialise every stage in order, in this process, through Dagster (one pipeline, not two)."""

import os
import shutil
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
from dagster._core.execution.plan.objects import ErrorSource

from agent_world import world
from agent_world.codec import encode
from agent_world.errors import AgentWorldError
from agent_world.home import service_home
from agent_world.identity import canonical_json, derivation_hash, sha256
from assets.partitions import RANGE_END, RANGE_START, environments, round_key, rounds, targeted
from assets.progress import console
from assets.settings import Settings
from dagster_project.resources import resources_for
from dagster_project.stages import ASSETS

FREE_BYTES = 2 << 30
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
_INSTANCE = Path(__file__).with_name("dagster.yaml")


class DiskFullError(AgentWorldError):
    """Too little room to begin."""

    def __init__(self, place: str, free: int) -> None:
        super().__init__(place, free)
        self.place, self.free = place, free

    def __str__(self) -> str:
        free, need = self.free / 2**30, FREE_BYTES / 2**30
        return f"{self.place} has {free:.1f} GiB free, a run needs {need:.0f}; free some or choose another --lake"


class UnfinishedRunError(AgentWorldError):
    """The lake holds a run that did not end."""

    def __init__(self, lake: str, run: str, same: bool) -> None:
        super().__init__(lake, run, same)
        self.lake, self.run, self.same = lake, run, same

    def __str__(self) -> str:
        cure = "go on with --resume" if self.same else "resume it with its own options, or choose another --lake"
        return f"{self.lake} holds the unfinished run {self.run}; {cure}"


class StageFailedError(AgentWorldError):
    """A stage raised; what was committed before it stays."""

    def __init__(self, stages: Sequence[str], why: str) -> None:
        super().__init__(tuple(stages), why)
        self.stages, self.why = tuple(stages), why

    def __str__(self) -> str:
        return f"stage {', '.join(self.stages)}: {self.why}; what was committed is kept, go on with --resume"


class RunInterruptedError(AgentWorldError):
    """Ctrl-C came while a stage was at work."""

    def __init__(self, stages: Sequence[str]) -> None:
        super().__init__(tuple(stages))
        self.stages = tuple(stages)

    def __str__(self) -> str:
        return f"interrupted in stage {', '.join(self.stages)}; what was committed is kept"


def run_loop(lake: str, settings: Settings, *, resume: bool = False) -> None:
    """Run or go on with the loop of `settings` on the lake at `lake`.

    Raises:
        DiskFullError, UnfinishedRunError: before anything is written.
        StageFailedError: a stage raised.
        RunInterruptedError: Ctrl-C in a stage.
    """
    _check_room(lake)
    opened = world.open(lake, create=True)
    name = sha256(canonical_json(encode(settings)))[:12]
    _check_unfinished(opened, name, resume)
    _mark(opened, name, settings, "started")
    with instance_of(lake) as instance:
        stages = _Stages(instance, lake, settings)
        instance.add_dynamic_partitions(rounds.name, [round_key(number) for number in range(settings.rounds + 1)])
        stages.run("Themes and their data", ["themes", "mined"])
        keys = instance.get_dynamic_partitions(environments.name)
        stages.run("Environments", ["databases", "tools", "environments"], keys)
        stages.run("Taxonomy", ["taxonomy"])
        stages.run("Tasks", ["tool_graphs", "tasks"], keys)
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
    _mark(opened, name, settings, "succeeded")


@contextmanager
def instance_of(lake: str):
    """The Dagster instance beside the lake."""
    home = service_home(lake) / "dagster"
    home.mkdir(exist_ok=True)
    if not (home / "dagster.yaml").exists():
        shutil.copyfile(_INSTANCE, home / "dagster.yaml")
    os.environ["DAGSTER_HOME"] = str(home)
    with dg.DagsterInstance.get() as instance:
        yield instance


class _Stages:
    """Materialises assets of one loop."""

    def __init__(self, instance: dg.DagsterInstance, lake: str, settings: Settings) -> None:
        self.instance = instance
        self.resources = resources_for(lake, settings)

    def run(self, title: str, assets: Sequence[str], keys: Sequence[str] = ()) -> None:
        """Materialise `assets` in one run, over the contiguous partition range `keys` when there is one."""
        console.print(f"[bold]{title}[/bold]", highlight=False)
        tags = {RANGE_START: keys[0], RANGE_END: keys[-1]} if keys else {}
        result = dg.materialize(
            ASSETS,
            selection=list(assets),
            instance=self.instance,
            resources=self.resources,
            tags=tags,
            run_config=_QUIET,
            raise_on_error=False,
        )
        if not result.success:
            raise _failure(result, assets)


def _failure(result: dg.ExecuteInProcessResult, assets: Sequence[str]) -> AgentWorldError:
    for event in result.all_events:
        if event.is_step_failure:
            stages, failure = [event.step_key or ""], event.step_failure_data
            if failure.error_source == ErrorSource.INTERRUPT:
                return RunInterruptedError(stages)
            error = failure.error
            while error.cause:
                error = error.cause
            return StageFailedError(stages, error.message.strip())
    return StageFailedError(assets, "it did not finish")


def _check_room(lake: str) -> None:
    place = service_home(lake)
    free = shutil.disk_usage(place).free
    if free < FREE_BYTES:
        raise DiskFullError(str(place), free)


def _check_unfinished(opened: world.World, name: str, resume: bool) -> None:
    status = {row["run"]: row["status"] for row in opened.read("runs")}
    unfinished = [run for run, last in status.items() if last == "started"]
    if unfinished and (unfinished != [name] or not resume):
        raise UnfinishedRunError(opened.uri, unfinished[0], unfinished == [name])


def _mark(opened: world.World, name: str, settings: Settings, status: str) -> None:
    derivation = derivation_hash("", {"run": name, "status": status}, [])
    with opened.begin("run", name, derivation=derivation) as batch:
        if not batch.done:
            batch.record("runs", {"run": name, "status": status, "parameters": encode(settings)})
