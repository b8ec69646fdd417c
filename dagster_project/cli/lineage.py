"""`agent-world lineage`: where an artifact came from and what it touched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from agent_world.identity import VersionId
from dagster_project.cli.common import Format, at_option, format_option, lake_option, open_world, print_json, print_rows

if TYPE_CHECKING:
    from agent_world.lake import View
    from agent_world.lake.lineage import Answer, Impact

_limit = click.option("--limit", type=click.IntRange(1), default=10_000, show_default=True, help="Most versions named.")
_depth = click.option("--depth", type=click.IntRange(1), help="Most hops away.")
_ids = click.argument("ids", nargs=-1, required=True, metavar="ID...")


@click.group()
def command() -> None:
    """Ask where an artifact came from and what it touched.

    ID is a version, an artifact (its current version is meant), or a unique start of one.
    """


def _walk(
    ask: Callable[..., Answer], ids: tuple[str, ...], view: View, format: Format, depth: int | None, limit: int
) -> None:
    answers = [ask(view, view.find(ref), depth=depth, limit=limit) for ref in ids]
    if format == "json":
        print_json([answer._asdict() | _named(answer) for answer in answers])
        return
    rows = [
        {"of": answer.version_id, "distance": far, "kind": view.kind_of(VersionId(version)), "version_id": version}
        for answer in answers
        for version, far in answer.hops
    ]
    print_rows(rows, format)
    for answer in answers:
        _warn(answer.version_id, answer.truncated)


@command.command()
@_ids
@_depth
@_limit
@at_option
@lake_option
@format_option
def upstream(ids: tuple[str, ...], depth: int | None, limit: int, at: str | None, lake: str, format: Format) -> None:
    """Name everything it was made from."""
    from agent_world.lake import lineage

    _walk(lineage.upstream, ids, open_world(lake).at(at), format, depth, limit)


@command.command()
@_ids
@_depth
@_limit
@at_option
@lake_option
@format_option
def downstream(ids: tuple[str, ...], depth: int | None, limit: int, at: str | None, lake: str, format: Format) -> None:
    """Name everything that was made from it."""
    from agent_world.lake import lineage

    _walk(lineage.downstream, ids, open_world(lake).at(at), format, depth, limit)


@command.command()
@_ids
@_limit
@at_option
@lake_option
@format_option
def impact(ids: tuple[str, ...], limit: int, at: str | None, lake: str, format: Format) -> None:
    """Name what used it and what was made from that; a tool is used by what called it."""
    from agent_world.lake import lineage

    view = open_world(lake).at(at)
    answers = [lineage.impact(view, view.find(ref), limit=limit) for ref in ids]
    if format == "json":
        print_json([answer._asdict() | _named(answer) for answer in answers])
        return
    print_rows([{"of": answer.version_id, **touched} for answer in answers for touched in _touched(answer)], format)
    for answer in answers:
        _warn_of_impact(answer)


@command.command()
@_ids
@at_option
@lake_option
@format_option
def why(ids: tuple[str, ...], at: str | None, lake: str, format: Format) -> None:
    """Tell how it came to be: batch, code, parents, what was said of it since, the gates it met."""
    from agent_world.lake import lineage

    view = open_world(lake).at(at)
    _print_facts([lineage.why(view, view.find(ref)) for ref in ids], format)


@command.command()
@click.argument("first")
@click.argument("second")
@at_option
@lake_option
@format_option
def diff(first: str, second: str, at: str | None, lake: str, format: Format) -> None:
    """Tell what differs between two versions."""
    from agent_world.lake import lineage

    view = open_world(lake).at(at)
    _print_facts([lineage.diff(view, view.find(first), view.find(second))], format)


@command.command()
@_ids
@lake_option
@format_option
def reproduce(ids: tuple[str, ...], lake: str, format: Format) -> None:
    """Give the plan to make it again: batches in order with derivation, code, inputs and outputs."""
    from agent_world.lake import lineage

    opened = open_world(lake)
    rows = [
        {"of": plan.version_id, **step._asdict()}
        for plan in (lineage.reproduce(opened, opened.find(ref)) for ref in ids)
        for step in plan.steps
    ]
    print_rows(rows, format)


@command.command("as-of")
@_ids
@click.option("--at", required=True, metavar="SNAPSHOT|TIME", help="A snapshot, an ISO time or an events version.")
@lake_option
@format_option
def as_of(ids: tuple[str, ...], at: str, lake: str, format: Format) -> None:
    """Tell which version was current at a point in time, and its direct lineage as known then."""
    from agent_world.lake import lineage

    opened = open_world(lake)
    _print_facts([lineage.as_of(opened, ref, at) for ref in ids], format)


def _touched(answer: Impact) -> Iterator[dict[str, Any]]:
    for child, _, role in answer.used_by:
        yield {"how": role, "distance": 1, "version_id": child}
    for child, _, role in answer.held_by:
        yield {"how": f"holds it as {role}", "distance": 1, "version_id": child}
    for version, far in answer.affected:
        if far > 1:
            yield {"how": "made from what used it", "distance": far, "version_id": version}


def _named(answer: Any) -> dict[str, Any]:
    """Tuples as objects, for JSON."""
    lists = {name: value for name, value in answer._asdict().items() if isinstance(value, list)}
    return {name: [item._asdict() for item in value] for name, value in lists.items()}


def _print_facts(facts: list[dict[str, Any]], format: Format) -> None:
    if format == "json":
        print_json(facts)
        return
    print_rows([{"fact": name, "value": value} for fact in facts for name, value in fact.items()], format)


def _warn_of_impact(answer: Impact) -> None:
    if answer.truncated:
        words = {"used_by": "used it", "held_by": "hold it"}
        counts = [f"{n} more that {words[name]}" for name, n in answer.left_out.items() if n]
        left = ", ".join(counts) or "some of what was made from what used it"
        click.echo(f"{answer.version_id}: left out {left}; raise --limit", err=True)


def _warn(version_id: str, truncated: bool) -> None:
    if truncated:
        click.echo(f"{version_id}: there is more; raise --limit or --depth", err=True)
