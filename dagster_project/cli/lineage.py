"""`agent-world lineage`: where an artifact came from and what it touched."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path as File
from typing import TYPE_CHECKING, Any, Literal

import click

from dagster_project.cli.common import Format, at_option, format_option, lake_option, open_world, print_json, print_rows

if TYPE_CHECKING:
    from agent_world.lake import View
    from agent_world.lake.lineage import Answer, Impact, Path
    from agent_world.reporting.diagram import Diagram
    from agent_world.world import World

DrawnFormat = Literal["table", "json", "csv", "mermaid", "html"]

_LISTED, _DRAWN = 10_000, 500

_limit = click.option("--limit", type=click.IntRange(1), default=_LISTED, show_default=True, help="Most of each list.")
_most = click.option(
    "--limit", type=click.IntRange(1), show_default=f"{_LISTED}, in a drawing {_DRAWN}", help="Most versions named."
)
_depth = click.option("--depth", type=click.IntRange(1), help="Most hops away.")
_ids = click.argument("ids", nargs=-1, required=True, metavar="ID...")
_drawn = click.option(
    "--format", type=click.Choice(["table", "json", "csv", "mermaid", "html"]), default="table", show_default=True,
    help="Output format; html is a page that needs nothing else, to zoom and to search.",
)  # fmt: skip
_output = click.option(
    "--output", type=click.Path(dir_okay=False, writable=True, path_type=File), metavar="FILE",
    help="Write a drawing (html or mermaid) here instead of showing it.",
)  # fmt: skip


@click.group()
def command() -> None:
    """Ask where an artifact came from and what it touched.

    ID is a version, an artifact (its current version is meant), or a unique start of one.
    """


def _walk(
    ask: Callable[..., Answer], ids: tuple[str, ...], view: View, format: DrawnFormat, output: File | None,
    depth: int | None, limit: int | None,
) -> None:  # fmt: skip
    from agent_world.reporting import diagram

    _check_output(format, output)
    answers = [ask(view, view.find(ref), depth=depth, limit=_room(limit, format)) for ref in ids]
    if format == "json":
        print_json([answer._asdict() | _named(answer) for answer in answers])
        return
    if format in ("html", "mermaid"):
        title = f"{ask.__name__.capitalize()} of {', '.join(answer.version_id for answer in answers)}"
        _draw(view, diagram.of_answers(view, title, answers), format, output)
    else:
        graph = view.graph
        rows = [
            {"of": answer.version_id, "distance": far, "kind": graph.kind(version), "version_id": version}
            for answer in answers
            for version, far in answer.hops
        ]
        print_rows(rows, format)
    for answer in answers:
        _warn(answer.version_id, answer.truncated)


@command.command()
@_ids
@_depth
@_most
@at_option
@lake_option
@_drawn
@_output
def upstream(
    ids: tuple[str, ...], depth: int | None, limit: int | None, at: str | None, lake: str, format: DrawnFormat,
    output: File | None,
) -> None:  # fmt: skip
    """Name everything it was made from."""
    from agent_world.lake import lineage

    _walk(lineage.upstream, ids, open_world(lake).at(at), format, output, depth, limit)


@command.command()
@_ids
@_depth
@_most
@at_option
@lake_option
@_drawn
@_output
def downstream(
    ids: tuple[str, ...], depth: int | None, limit: int | None, at: str | None, lake: str, format: DrawnFormat,
    output: File | None,
) -> None:  # fmt: skip
    """Name everything that was made from it."""
    from agent_world.lake import lineage

    _walk(lineage.downstream, ids, open_world(lake).at(at), format, output, depth, limit)


@command.command()
@_ids
@_most
@at_option
@lake_option
@_drawn
@_output
def impact(
    ids: tuple[str, ...], limit: int | None, at: str | None, lake: str, format: DrawnFormat, output: File | None
) -> None:
    """Name what used it and what was made from that; a tool is used by what called it."""
    from agent_world.lake import lineage
    from agent_world.reporting import diagram

    _check_output(format, output)
    view = open_world(lake).at(at)
    answers = [lineage.impact(view, view.find(ref), limit=_room(limit, format)) for ref in ids]
    if format == "json":
        print_json([answer._asdict() | _named(answer) for answer in answers])
        return
    if format in ("html", "mermaid"):
        title = f"Impact of {', '.join(answer.version_id for answer in answers)}"
        _draw(view, diagram.of_impacts(view, title, answers), format, output)
    else:
        print_rows([{"of": answer.version_id, **touched} for answer in answers for touched in _touched(answer)], format)
    for answer in answers:
        _warn_of_impact(answer)


@command.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option("--limit", type=click.IntRange(1), help="Give up after so many versions.  [default: look at all]")
@at_option
@lake_option
@_drawn
@_output
def path(
    first: str, second: str, limit: int | None, at: str | None, lake: str, format: DrawnFormat, output: File | None
) -> None:
    """Show the shortest chain between two versions, and what each was to the next.

    Exit code 1: there is none.
    """
    from agent_world.lake import lineage
    from agent_world.reporting import diagram

    _check_output(format, output)
    view = open_world(lake).at(at)
    found = lineage.path(view, view.find(first), view.find(second), limit=limit)
    if format == "json":
        print_json(found._asdict() | {"links": found.links and [link._asdict() for link in found.links]})
    elif format in ("html", "mermaid"):
        title = f"From {found.first} to {found.second}"
        _draw(view, diagram.of_path(view, title, found), format, output)
    else:
        print_rows(list(_steps(view, found)), format)
    if found.links is None:
        why = (
            f"none found within {limit} versions; raise --limit"
            if found.truncated
            else "there is no path: neither was made from the other"
        )
        click.echo(f"{found.first}, {found.second}: {why}", err=True)
        raise click.exceptions.Exit(1)


@command.command()
@_ids
@_limit
@at_option
@lake_option
@format_option
def why(ids: tuple[str, ...], limit: int, at: str | None, lake: str, format: Format) -> None:
    """Tell how it came to be: batch, code, parents, what was said of it since, the gates it met."""
    from agent_world.lake import lineage

    view = open_world(lake).at(at)
    _print_facts([lineage.why(view, view.find(ref), limit=limit) for ref in ids], format)


@command.command()
@click.argument("first")
@click.argument("second")
@_limit
@at_option
@lake_option
@format_option
def diff(first: str, second: str, limit: int, at: str | None, lake: str, format: Format) -> None:
    """Tell what differs between two versions."""
    from agent_world.lake import lineage

    view = open_world(lake).at(at)
    _print_facts([lineage.diff(view, view.find(first), view.find(second), limit=limit)], format)


@command.command()
@_ids
@click.option("--execute", is_flag=True, help="Make it again in a lake of its own, and compare.")
@lake_option
@format_option
def reproduce(ids: tuple[str, ...], execute: bool, lake: str, format: Format) -> None:
    """Give the plan to make it again: batches in order with derivation, code, inputs and outputs.

    With --execute its stage runs again on the recorded inputs, and everything that its batch made is compared by hash;
    exits 1 when something came out otherwise. The lake is only read.
    """
    from agent_world.lake import lineage

    opened = open_world(lake)
    if execute:
        _remake(opened, ids, format)
        return
    rows = [
        {"of": plan.version_id, **step._asdict()}
        for plan in (lineage.reproduce(opened, opened.find(ref)) for ref in ids)
        for step in plan.steps
    ]
    print_rows(rows, format)


def _remake(opened: World, ids: tuple[str, ...], format: Format) -> None:
    from tempfile import TemporaryDirectory

    from dagster_project.cli.work import shown_work
    from dagster_project.reproduction import remake

    rows = []
    for ref in ids:
        with TemporaryDirectory(prefix="agent-world-") as folder, shown_work() as tell:
            made = remake(opened, opened.find(ref), File(folder), on_progress=tell)
        code = {} if made.code_then == made.code_now else {"made by": made.code_then, "made again by": made.code_now}
        rows += [{"stage": made.stage, **one._asdict(), "same": one.same, **code} for one in made.remade]
    print_rows(rows, format)
    if not all(row["same"] for row in rows):
        sys.exit(1)


@command.command("as-of")
@_ids
@click.option("--at", required=True, metavar="SNAPSHOT|TIME", help="A snapshot, an ISO time or an events version.")
@_limit
@lake_option
@format_option
def as_of(ids: tuple[str, ...], at: str, limit: int, lake: str, format: Format) -> None:
    """Tell which version was current at a point in time, and its direct lineage as known then."""
    from agent_world.lake import lineage

    opened = open_world(lake)
    _print_facts([lineage.as_of(opened, ref, at, limit=limit) for ref in ids], format)


@command.command()
@click.argument("ids", nargs=-1, metavar="[ID...]")
@click.option(
    "--openlineage", metavar="FILE|URL",
    help="OpenLineage events, one a line or one a request (key of the server: OPENLINEAGE_API_KEY).",
)  # fmt: skip
@click.option("--prov", type=click.Path(dir_okay=False, path_type=File), metavar="FILE", help="PROV-JSON.")
@click.option("--namespace", default="agent-world", show_default=True, help="How OpenLineage calls this lake.")
@at_option
@lake_option
def export(
    ids: tuple[str, ...], openlineage: str | None, prov: File | None, namespace: str, at: str | None, lake: str
) -> None:
    """Hand lineage to other tools: all of it, or what these IDs were made from."""
    from agent_world.lake import lineage_export as out
    from agent_world.lake.openlineage import run_events
    from agent_world.lake.prov import document

    if openlineage is None and prov is None:
        raise click.UsageError("say where to: --openlineage FILE|URL, --prov FILE, or both")
    view = open_world(lake).at(at)
    only = out.made_from(view, [view.find(ref) for ref in ids]) if ids else None
    if openlineage is not None:
        events = run_events(view, namespace, only)
        if "://" in openlineage:
            count = out.post_events(events, openlineage, os.environ.get("OPENLINEAGE_API_KEY"))
        else:
            count = out.write_events(events, File(openlineage))
        click.echo(f"{count} OpenLineage events", err=True)
    if prov is not None:
        out.write_text(document(view, only), prov)
        click.echo(f"PROV-JSON in {prov}", err=True)


def _touched(answer: Impact) -> Iterator[dict[str, Any]]:
    for child, _, role in answer.used_by:
        yield {"how": role, "distance": 1, "version_id": child}
    for child, _, role in answer.held_by:
        yield {"how": f"holds it as {role}", "distance": 1, "version_id": child}
    for version, far in answer.affected:
        if far > 1:
            yield {"how": "made from what used it", "distance": far, "version_id": version}


def _steps(view: View, found: Path) -> Iterator[dict[str, Any]]:
    """The versions on the way, each with what stands between it and the one before."""
    graph = view.graph
    here = found.first
    yield {"step": 0, "kind": graph.kind(here), "version_id": here, "how": ""}
    for step, (child, parent, role) in enumerate(found.links or (), 1):
        onward = here == child
        here = parent if onward else child
        yield {
            "step": step,
            "kind": graph.kind(here),
            "version_id": here,
            "how": f"the {role} of the one above" if onward else f"has the one above as {role}",
        }


def _named(answer: Any) -> dict[str, Any]:
    """Tuples as objects, for JSON."""
    lists = {name: value for name, value in answer._asdict().items() if isinstance(value, list)}
    return {name: [item._asdict() for item in value] for name, value in lists.items()}


def _print_facts(facts: Sequence[Mapping[str, Any]], format: Format) -> None:
    if format == "json":
        print_json(facts)
    else:
        print_rows([{"fact": name, "value": value} for fact in facts for name, value in fact.items()], format)
    for fact in facts:
        left = ", ".join(f"{count} more of {name}" for name, count in fact["left_out"].items() if count)
        if left:
            click.echo(f"left out {left}; raise --limit", err=True)


def _check_output(format: DrawnFormat, output: File | None) -> None:
    if output and format not in ("html", "mermaid"):
        raise click.UsageError(f"--output takes a drawing; add --format html or mermaid, or send {format} on with >")


def _room(limit: int | None, format: DrawnFormat) -> int:
    return limit or (_DRAWN if format in ("html", "mermaid") else _LISTED)


def _draw(view: View, diagram: Diagram, format: DrawnFormat, output: File | None) -> None:
    from agent_world.reporting.diagram import mermaid
    from agent_world.reporting.lineage_page import lineage_page

    text = lineage_page(view, diagram) if format == "html" else mermaid(diagram)
    if output is None:
        click.echo(text)
        return
    output.write_text(text + "\n", "utf-8")
    click.echo(f"{output}: {len(diagram.kinds)} versions, {len(diagram.links)} links", err=True)


def _warn_of_impact(answer: Impact) -> None:
    if answer.truncated:
        words = {"used_by": "used it", "held_by": "hold it"}
        counts = [f"{n} more that {words[name]}" for name, n in answer.left_out.items() if n]
        left = ", ".join(counts) or "some of what was made from what used it"
        click.echo(f"{answer.version_id}: left out {left}; raise --limit", err=True)


def _warn(version_id: str, truncated: bool) -> None:
    if truncated:
        click.echo(f"{version_id}: there is more; raise --limit or --depth", err=True)
