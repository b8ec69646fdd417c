"""`agent-world reverify`: a part turned out broken; what changes, and what must go?"""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dagster_project.cli.common import (
    Format,
    engine_place,
    format_option,
    lake_option,
    open_world,
    print_json,
    print_rows,
    typed,
)

if TYPE_CHECKING:
    from agent_world.auditing.reverify import Reverified, Undone
    from agent_world.world import World


KEPT = ("environment", "task", "trajectory", "task_set", "checkpoint", "diagnosis")


@click.command()
@click.argument("part", required=False, metavar="TOOL|TASK")
@click.option(
    "--with", "file", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="The right part: Python of a tool or of a task's verifier, or JSON of what a task is judged by.",
)  # fmt: skip
@click.option("--retire", is_flag=True, help="Retire what must go. Without it nothing is changed.")
@click.option("--keep", type=click.Choice(KEPT), multiple=True, help="A kind of which nothing goes.")
@click.option("--undo", metavar="BATCH", help="Take back what an earlier --retire did.")
@click.option("--trajectories", type=click.IntRange(0), metavar="N", help="A quick look: only N stored episodes.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="Most lines of one kind shown.")
@click.option("--workers", type=click.IntRange(1), help="Worker processes; as many as cores without it.")
@lake_option
@format_option
def command(
    part: str | None, file: Path | None, retire: bool, keep: tuple[str, ...], undo: str | None,
    trajectories: int | None, limit: int, workers: int | None, lake: str, format: Format,
) -> None:  # fmt: skip
    """Play everything that used a broken part again with the right one, and say what changes.

    TOOL|TASK is a version, a key, or a unique start of one; a task stands for its rubric and its verifier. Shown are
    tasks, episodes, rewards, rounds, evaluations and checkpoints, old and new, and what must go: the part, what pins
    it, tasks that no longer pass their gates, episodes that change, and the task sets, checkpoints and diagnoses made
    from those. Without --with everything that used the part must go.
    """
    from agent_world.auditing.correction import read_correction
    from agent_world.auditing.reverify import retire as retire_now
    from agent_world.auditing.reverify import reverify
    from agent_world.auditing.reverify import undo as undo_now
    from agent_world.engine import open_engine
    from assets.progress import Progress

    if (part is None) == (undo is None):
        raise click.UsageError("name a tool or a task, or a batch with --undo")
    if undo is not None and (file or retire):
        raise click.UsageError("--undo goes without --with and --retire")
    if retire and trajectories is not None:
        raise click.UsageError("--retire looks at every episode; leave --trajectories out")
    world = open_world(lake)
    if undo is not None:
        _tell_undone(world, undo_now(world, undo), format)
        return
    correction = read_correction(world, part or "", file)
    with open_engine(engine_place(), workers) as engine, ExitStack() as closed:
        bars: list[Progress] = []

        def tell(done: int, count: int) -> None:
            if not bars:
                bars.append(closed.enter_context(closing(Progress("tasks", count))))
            bars[0].reach(done, "")

        found = reverify(world, correction, engine=engine, trajectories=trajectories, on_progress=tell)
    found = replace(found, goes=tuple(going for going in found.goes if going.kind not in keep))
    batch = retire_now(world, found) if retire and found.goes else None
    _tell(found, batch, lake, format, limit)


def _tell(found: Reverified, batch: str | None, lake: str, format: Format, limit: int) -> None:
    if format == "json":
        print_json(_facts(found, batch))
    else:
        rows = [change._asdict() for change in found.changes]
        rows += [{"what": f"goes: {g.kind}", "subject": g.version, "old": g.state, "new": g.why} for g in found.goes]
        shown = rows if format == "csv" else _first(rows, limit)
        print_rows(shown, format)
        if len(shown) < len(rows):
            click.echo(f"{len(rows) - len(shown)} more lines; raise --limit", err=True)
    changed = sum(episode.changed for episode in found.replayed)
    click.echo(f"{found.correction.part}: {found.of} stored episodes used it.", err=True)
    click.echo(
        f"{len(found.replayed)} played again, {changed} change, of {len(found.unclear)} nothing can be said.", err=True
    )
    for version, why in list(found.unclear.items())[:3]:
        click.echo(f"  {version}: {why}", err=True)
    kinds = ", ".join(f"{count} {kind}" for kind, count in found.resting.items())
    click.echo(f"{len(found.goes)} must go; made from them, and may stay: {kinds or 'nothing'}.", err=True)
    if batch is not None:
        back = typed("reverify", "--undo", batch[:12], "--lake", lake)
        click.echo(f"Retired by batch {batch}. Take it back with: {back}", err=True)
    elif found.goes:
        click.echo("Nothing was changed; add --retire to retire what must go.", err=True)
    else:
        click.echo("Everything stands with it as it did; nothing must go.", err=True)


def _first(rows: list[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    """At most `limit` rows of each sort."""
    seen: dict[str, int] = {}
    shown = []
    for row in rows:
        seen[row["what"]] = seen.get(row["what"], 0) + 1
        if seen[row["what"]] <= limit:
            shown.append(row)
    return shown


def _facts(found: Reverified, batch: str | None) -> dict[str, Any]:
    impact = found.impact
    return {
        "part": found.correction.part,
        "correction": found.correction.digest,
        "impact": {"used_by": len(impact.used_by), "held_by": len(impact.held_by), "kinds": impact.kinds},
        "episodes": {"of": found.of, "played": len(found.replayed), "unclear": found.unclear},
        "changes": [change._asdict() for change in found.changes],
        "goes": [going._asdict() for going in found.goes],
        "resting": found.resting,
        "truncated": len(found.replayed) < found.of,
        "batch": batch,
    }


def _tell_undone(world: World, undone: Undone, format: Format) -> None:
    graph = world.graph
    rows = [{"reinstated": version, "kind": graph.kind(version)} for version in undone.reinstated]
    print_json(undone._asdict()) if format == "json" else print_rows(rows, format)
    for version in undone.kept:
        click.echo(f"{version} was retired by another batch as well and stays so", err=True)
