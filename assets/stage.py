"""The wiring that every stage shares: derive, skip what is committed, work, commit, report."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import dagster as dg

from agent_world.engine import Engine
from agent_world.identity import Digest, canonical_json, derivation_hash, sha256
from agent_world.lake.batch import Batch
from agent_world.lake.code import code_version
from agent_world.lake.faults import reach
from agent_world.world import World
from assets.progress import Progress
from assets.settings import Settings

Item = TypeVar("Item")
Result = TypeVar("Result")


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
    fill: Callable[[Batch], None],
) -> Batch:  # fmt: skip
    """Fill and commit one batch, unless it is committed already; a second run changes nothing."""
    run_id = context.op_execution_context.run_id
    with world.begin(stage, partition, derivation=derivation, run_id=run_id) as batch:
        if not batch.done:
            fill(batch)
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

    Returns:
        Partitions whose work raised. They stay open for the next run; their neighbours are committed.
    """
    pending = [job for job in jobs if not world.begin(stage, job.partition, derivation=job.derivation).done]
    failed = []
    by_item = engine.map(work, [job.item for job in pending])
    with closing(Progress(stage, len(jobs), done=len(jobs) - len(pending))) as progress:
        for job, done in zip(pending, by_item, strict=True):
            started = time.process_time()
            if done.failure:
                failed.append(job.partition)
                context.log.error(f"{stage} {job.partition}: {done.failure.error}\n{done.failure.trace}")
                progress.fail(job.partition, done.failure.error)
                continue
            commit(context, world, stage, job.partition, job.derivation, partial(save, job.item, done.result))
            progress.advance(job.partition, time.process_time() - started)
    return failed


def report(
    world: World, counts: Mapping[str, Any], made: Sequence[str] = (), checks: Sequence[dg.AssetCheckResult] = ()
) -> dg.MaterializeResult:
    """What Dagster shows of a stage: its counts, the lake version, and a data version that follows the content."""
    return dg.MaterializeResult(
        metadata={**counts, "lake/events_version": world.events_version(), "dagster/row_count": len(made)},
        data_version=dg.DataVersion(sha256(canonical_json(sorted(made)))),
        check_results=list(checks),
    )
