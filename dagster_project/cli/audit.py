"""`agent-world audit`: do the gates still hold on everything accepted?"""

from __future__ import annotations

import sys
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

import click

from dagster_project.cli.common import Format, engine_place, format_option, lake_option, open_world, print_rows

if TYPE_CHECKING:
    from agent_world.auditing import Finding

_NOT_AGAIN = (
    "Not run again: match, and whether two themes are about the same (both need the corpus that was mined); the run of "
    "the solver that a practice task was kept for (its demonstration is replayed instead)."
)


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
    themes         title, description and the schema of each tool
    databases      two loads give the recorded digest; tables, rows, integrity of foreign keys and sources as recorded
    richer ones    each complexification round brought something new
    tools          the stored tests, each twice; every kept tool of every environment version
    environments   two resets give the recorded digest; superseded versions too, as tasks stay pinned to them
    tasks          gold passes; null, wrong and idle answers fail; random within its stated bound
    practice tasks the gates without random runs: those were never asked of them
    trajectories   replay to the recorded observations and digest; all but harness errors and what was rejected
    checkpoints    the stored files give the recorded digest; every weight is a number; by the stored metrics the
                   training took the steps asked for, and GRPO saw spread
    training tasks the solver is right and consistent, twice in at most 20 runs

    What is not run again is said at the end; its verdicts stand in gate_verdicts. Where something no longer holds and
    the lake was made under another SQLite or Python, that is said too.
    """  # noqa: D301 - click takes the character
    from agent_world.auditing import audit_lake
    from agent_world.engine import open_engine
    from agent_world.environments.runtime import other_runtimes
    from assets.progress import Progress
    from trainers.gate import objections_now

    world = open_world(lake)
    bars: dict[str, Progress] = {}
    with open_engine(engine_place(), workers) as engine, ExitStack() as closed:

        def tell(part: str, done: int, count: int) -> None:
            if part not in bars:
                closed.close()
                bars[part] = closed.enter_context(closing(Progress(part, count)))
            bars[part].reach(done, "")

        findings = audit_lake(
            world, engine=engine, seed=seed, checkpoint_gate=objections_now, tasks=tasks,
            trajectories=trajectories, solver=solver, on_progress=tell,
        )  # fmt: skip
    print_rows([finding.row() for finding in findings], format)
    click.echo(_scope(findings, sampled=tasks is not None or trajectories is not None, solver=solver), err=True)
    click.echo(_NOT_AGAIN, err=True)
    if any(finding.broken for finding in findings):
        if said := other_runtimes(world):
            click.echo(said, err=True)
        sys.exit(1)


def _scope(findings: list[Finding], sampled: bool, solver: bool) -> str:
    """Whether this was everything."""
    if not sampled:
        return "Everything accepted was audited" + ("." if solver else ", but not by the solver.")
    seen = {finding.kind: finding for finding in findings}
    parts = [f"{f.audited} of {f.accepted} ({kind})" for kind, f in seen.items() if f.audited < f.accepted]
    return f"A sample only: {', '.join(parts)}."
