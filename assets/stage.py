"""The wiring that every stage shares: derive, skip what is committed, work, commit, report."""

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import dagster as dg

from agent_world.engine import Engine, Failure, Spent, Stopwatch
from agent_world.environments.runtime import runtime_here
from agent_world.errors import AgentWorldError
from agent_world.identity import Digest, canonical_json, derivation_hash, sha256
from agent_world.lake.batch import Batch
from agent_world.lake.code import code_version
from agent_world.lake.faults import reach
from agent_world.world import World
from assets.failures import FAILED, failed_partitions
from assets.progress import Progress
from assets.settings import Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Item = TypeVar("Item")
Result = TypeVar("Result")


class UnfinishedStageError(AgentWorldError):
    """Work that the machine cut short; `partitions` says of each what went wrong."""

    def __init__(self, stage: str, partitions: Mapping[str, str]) -> None:
        super().__init__(stage, partitions)
        self.stage, self.partitions = stage, partitions

    def __str__(self) -> str:
        said = "; ".join(f"{name}: {why}" for name, why in self.partitions.items())
        return f"{self.stage}: {len(self.partitions)} could not be done ({said}); all others are kept, run it again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(Generic[Item]):
    """One batch of a stage: its partition, what to work on, and how the result is derived."""

    partition: str
    item: Item
    derivation: Digest


def derive(settings: Settings, names: Sequence[str], parents: Sequence[str]) -> Digest:
    """The derivation of a batch: this code, the named settings, the exact parents."""
    return derivation_hash(code_version(), settings.parameters("seed", *names), parents)


def commit(
    context: dg.AssetExecutionContext, world: World, stage: str, partition: str, derivation: Digest,
    fill: Callable[[Batch], None], *, spent: Spent | None = None,
) -> Batch:  # fmt: skip
    """Fill and commit one batch, unless it is committed already; a second run changes nothing.

    Its row in `costs` is what was `spent` on it before, or what `fill` takes when nothing was; its row in `runtimes`
    says under which versions that was done.
    """
    run_id = context.op_execution_context.run_id
    with world.begin(stage, partition, derivation=derivation, run_id=run_id) as batch:
        if not batch.done:
            stopwatch = Stopwatch()
            fill(batch)
            batch.record("costs", {"stage": stage, "subject": partition, **(spent or stopwatch.spent())._asdict()})
            batch.record("runtimes", {"stage": stage, "subject": partition, **runtime_here()._asdict()})
    reach("after_stage_commit")
    return batch


def map_jobs(
    context: dg.AssetExecutionContext,
    world: World,
    engine: Engine,
    stage: str,
    jobs: Sequence[Job[Item]],
    work: Callable[[Item], Result],
    save: Callable[[Item, Result, Batch], None],
) -> list[str]:
    """Work on every job that is not committed yet, in parallel; commit each as it comes, in order.

    A job whose work raises is set aside in `quarantine`, under the reason `FAILED`, and its neighbours go on: the same
    code would fail again. What the machine brought about stays open for the next run.

    Returns:
        The partitions that are set aside, now or before.

    Raises:
        UnfinishedStageError: work failed for want of room, memory or a sandbox; all other jobs are committed.
    """
    pending = [job for job in jobs if not world.begin(stage, job.partition, derivation=job.derivation).done]
    open_still = {}
    by_item = engine.map(work, [job.item for job in pending])
    with closing(Progress(stage, len(jobs), done=len(jobs) - len(pending))) as progress:
        for job, done in zip(pending, by_item, strict=True):
            if done.failure:
                context.log.error(f"{stage} {job.partition}: {done.failure.error}\n{done.failure.trace}")
                progress.fail(job.partition, done.failure.error)
                if done.failure.passing:
                    open_still[job.partition] = done.failure.error
                    continue
                fill = partial(_set_aside, stage, job.partition, done.failure)
            else:
                fill = partial(save, job.item, done.result)
            commit(context, world, stage, job.partition, job.derivation, fill, spent=done.spent)
            progress.advance(job.partition)
    if open_still:
        raise UnfinishedStageError(stage, open_still)
    return failed_partitions(world, stage, among=[job.partition for job in jobs])


def _set_aside(stage: str, partition: str, failure: Failure, batch: Batch) -> None:
    batch.quarantine(stage=stage, item=partition, reason=FAILED, detail=failure.error, raw=failure.error.encode())


def report(
    world: World, counts: Mapping[str, Any], made: Sequence[str] = (), checks: Sequence[dg.AssetCheckResult] = (), *,
    plots: Mapping[str, "Figure"] | None = None,
) -> dg.MaterializeResult:  # fmt: skip
    """What Dagster shows of a stage: counts, plots, the lake version, and a data version that follows the content."""
    pictures = {name: _picture(figure) for name, figure in (plots or {}).items()}
    return dg.MaterializeResult(
        metadata={**counts, **pictures, "lake/events_version": world.events_version(), "dagster/row_count": len(made)},
        data_version=dg.DataVersion(sha256(canonical_json(sorted(made)))),
        check_results=list(checks),
    )


def _picture(figure: "Figure") -> dg.MarkdownMetadataValue:
    """A plot that lies in the metadata itself, for Dagster's page."""
    import matplotlib.pyplot as plt

    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=90, bbox_inches="tight")
    plt.close(figure)
    return dg.MetadataValue.md(f"![plot](data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()})")
