"""`agent-world audit`: do the gates still hold on everything accepted?"""

from __future__ import annotations

import sys
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

import click

from dagster_project.cli.common import Format, format_option, lake_option, open_world, print_rows

if TYPE_CHECKING:
    from pathlib import Path

    from agent_world.auditing import Finding
    from agent_world.identity import Digest


@click.command()
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the fresh runs and of samples.")
@click.option("--tasks", type=click.IntRange(0), metavar="N", help="A quick look: only N tasks, drawn by seed.")
@click.option("--trajectories", type=click.IntRange(0), metavar="N", help="Replay only N trajectories, drawn by seed.")
@click.option("--solver/--no-solver", default=True, show_default=True, help="Whether to run the solver's gate.")
@click.option("--workers", type=click.IntRange(1), help="Worker processes; as many as cores without it.")
@lake_option
@format_option
def command(
    lake: str, seed: int, tasks: int | None, trajectories: int | None, solver: bool, workers: int | None, format: Format
) -> None:
    """Run every gate again on every accepted artifact with fresh seeds; non-zero exit if one no longer holds.

    \b
    databases      two loads give the recorded digest; tables, rows, integrity of foreign keys and sources as recorded
    richer ones    each complexification round brought something new
    tools          the stored tests, each twice; every kept tool of every environment version
    environments   two resets give the recorded digest; superseded versions too, as tasks stay pinned to them
    tasks          gold passes; null, wrong and idle answers fail; random within its stated bound
    practice tasks the gates without random runs: those were never asked of them
    trajectories   replay to the recorded observations and digest; all but harness errors and what was rejected
    checkpoints    the stored files give the recorded digest; every weight is a number
    training tasks the solver is right and consistent, twice in at most 20 runs

    Not run again: theme and match, which judge documents and packages that are not in the lake; steps and spread of
    checkpoints, which only training again would show. Their verdicts stand in gate_verdicts. The demonstration of a
    practice task is replayed, not found anew.
    """  # noqa: D301 - click takes the character
    from agent_world.auditing import audit_lake
    from agent_world.engine import Engine
    from assets.progress import Progress

    bars: dict[str, Progress] = {}
    with Engine(workers) as engine, ExitStack() as closed:

        def tell(part: str, done: int, count: int) -> None:
            if part not in bars:
                closed.close()
                bars[part] = closed.enter_context(closing(Progress(part, count)))
            bars[part].reach(done, "")

        findings = audit_lake(
            open_world(lake), engine=engine, seed=seed, checkpoint_gate=checkpoint_gate, tasks=tasks,
            trajectories=trajectories, solver=solver, on_progress=tell,
        )  # fmt: skip
    print_rows([finding.row() for finding in findings], format)
    click.echo(_scope(findings, sampled=tasks is not None or trajectories is not None, solver=solver), err=True)
    if any(finding.broken for finding in findings):
        sys.exit(1)


def checkpoint_gate(folder: Path, digest: Digest) -> str | None:
    """What is wrong with the files of a checkpoint that should have this digest."""
    from trainers.checkpoint import checkpoint_digest, is_finite

    if checkpoint_digest(folder) != digest:
        return "other_digest"
    return None if is_finite(folder) else "not_finite"


def _scope(findings: list[Finding], sampled: bool, solver: bool) -> str:
    """Whether this was everything."""
    if not sampled:
        return "Everything accepted was audited" + ("." if solver else ", but not by the solver.")
    seen = {finding.kind: finding for finding in findings}
    parts = [f"{f.audited} of {f.accepted} ({kind})" for kind, f in seen.items() if f.audited < f.accepted]
    return f"A sample only: {', '.join(parts)}."
