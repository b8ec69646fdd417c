"""Every asset of the package `assets`, and how the loop materialises some of them in this process."""

from collections.abc import Sequence
from textwrap import shorten

import dagster as dg

import assets
from agent_world.errors import AgentWorldError
from agent_world.lake import CommitError, DiskFullError, LakeBusyError, StoreFailedError
from agent_world.stores import PostgresRefusedError
from assets.partitions import RANGE_END, RANGE_START
from assets.progress import console
from assets.settings import Settings
from assets.stage import UnfinishedStageError
from dagster_project.cli.common import typed
from dagster_project.resources import resources_for

ASSETS = dg.load_assets_from_package_module(assets)

_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
_PASSING = (
    OSError, MemoryError, CommitError, DiskFullError, LakeBusyError, PostgresRefusedError, StoreFailedError,
    UnfinishedStageError,
)  # fmt: skip
"""What may go well the next time."""


class StageFailedError(AgentWorldError):
    """A stage raised; what was committed before it stays. `cure` is what to do, where there is something."""

    def __init__(self, stages: Sequence[str], why: str, cure: str) -> None:
        super().__init__(tuple(stages), why, cure)
        self.stages, self.why, self.cure = tuple(stages), why, cure

    def __str__(self) -> str:
        said = f"stage {', '.join(self.stages)}: {self.why}; what was committed is kept"
        return f"{said}, {self.cure}" if self.cure else said


class RunInterruptedError(AgentWorldError):
    """Ctrl-C came while a stage was at work."""

    def __init__(self, stages: Sequence[str]) -> None:
        super().__init__(tuple(stages))
        self.stages = tuple(stages)

    def __str__(self) -> str:
        return f"interrupted in stage {', '.join(self.stages)}; what was committed is kept"


class Stages:
    """Materialises assets of one loop."""

    def __init__(self, instance: dg.DagsterInstance, lake: str, settings: Settings) -> None:
        self.instance, self.lake = instance, lake
        self.resources = resources_for(lake, settings)

    def run(self, title: str, names: Sequence[str], keys: Sequence[str] = ()) -> None:
        """Materialise the assets `names` in one run, over the contiguous partition range `keys` when there is one.

        Raises:
            StageFailedError: one raised; its own error is the cause.
            RunInterruptedError: Ctrl-C came.
        """
        console.print(f"[bold]{title}[/bold]", highlight=False)
        tags = {RANGE_START: keys[0], RANGE_END: keys[-1]} if keys else {}
        try:
            dg.materialize(
                ASSETS,
                selection=list(names),
                instance=self.instance,
                resources=self.resources,
                tags=tags,
                run_config=_QUIET,
            )
        except (KeyboardInterrupt, dg.DagsterExecutionInterruptedError):
            raise RunInterruptedError(self._at_work(names)) from None
        except Exception as error:
            raise StageFailedError(self._at_work(names), _sentence(error), _cure(error, self.lake)) from error

    def _at_work(self, names: Sequence[str]) -> list[str]:
        """The steps that the newest run failed in; all of them when it failed between two."""
        failed = [
            entry.step_key
            for run in self.instance.get_runs(limit=1)
            for entry in self.instance.all_logs(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE)
        ]
        return [name for name in names if name in failed] or list(names)


def _sentence(error: Exception) -> str:
    if isinstance(error, AgentWorldError):
        return str(error)
    return f"{type(error).__name__}: {shorten(str(error), 300)}"


def _cure(error: Exception, lake: str) -> str:
    """Our own errors say what to do; what is passing is tried again; of any other the trace helps to find it."""
    resume = ("run", "--resume", "--lake", lake)
    if isinstance(error, _PASSING):
        return f"go on with: {typed(*resume)}"
    if isinstance(error, AgentWorldError):
        return ""
    return f"run again with --debug for the trace: {typed(*resume, '--debug')}"
