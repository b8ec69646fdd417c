"""Summaries: rows counted and averaged by group, and the figures of a quantity over what a filter lets through."""

from __future__ import annotations

from random import Random

from agent_world.discovery.toolsmith.answers import reads as answers
from agent_world.discovery.toolsmith.contract import Out, Result, in_unit, kind_of, make_tool, page_param
from agent_world.discovery.toolsmith.drafts import Draft, TestSheet
from agent_world.discovery.toolsmith.fields import group_fields
from agent_world.discovery.toolsmith.reads import filters as conditions
from agent_world.discovery.toolsmith.source import Query, column_of, fetch, function, links_of
from agent_world.discovery.toolsmith.view import Entity, Field, View
from agent_world.discovery.toolsmith.words import snake
from agent_world.environments.model import Json, Meaning


def summarised(view: View, entity: Entity, group: Field, measure: Field | None, rng: Random) -> Draft | None:
    """Groups with their size and the mean of a quantity, the largest first."""
    if len(entity.rows) < 20:
        return None
    links = links_of([group, *([measure] if measure else [])])
    by, of = column_of(group, links), column_of(measure, links) if measure else None
    query = Query(
        entity=entity,
        links=links,
        shown=[(by, group.name), ("count(*)", "count"), *([(f"avg({of})", "mean")] if of else [])],
        where=[f"{by} IS NOT NULL"],
        group=[by],
        order=["count(*) DESC", by],
    )
    changes = [f'"{group.name}": bool(row["{group.name}"])'] if group.column.role == "flag" else []
    helper = ""
    if measure:
        helper = (
            "def _rounded(mean: float | None) -> float | None:\n    return None if mean is None else round(mean, 2)"
        )
        changes.append('"mean": _rounded(row["mean"])')
    shown = f"dict(row) | {{{', '.join(changes)}}}" if changes else "dict(row)"
    params = [page_param()]
    body = f"rows = {fetch(query, {}, 'fetchall')}\nreturn paged([{shown} for row in rows], page, PAGE_SIZE)"
    name = snake(f"summarise {entity.many} by {group.name}" if measure else f"count {entity.many} by {group.name}")
    outs = [Out(name=group.name, kind=kind_of(group.column), words=group.words, meaning=group.meaning), _count(entity)]
    if measure:
        outs.append(_aggregate("mean", f"mean {in_unit(measure.column, measure.words)}", measure, "number"))
    tool = make_tool(
        environment=view.database.database_id,
        name=name,
        pattern="summarise",
        what=f"Count {entity.many} by {group.words}"
        + (f", with the mean {measure.words} of each" if measure else "")
        + ". The largest group comes first; missing values do not count.",
        params=params,
        result=Result(fields=tuple(outs), listing=entity.name),
        source=function(
            name,
            f"Size of each group of {entity.many} by {group.words}.",
            params,
            body,
            imports=["paged"],
            constants="PAGE_SIZE = 5",
            helpers=helper,
        ),
        tables=[entity.name, *(link.parent.name for link in links)],
        said=["how many", *(["average"] if measure else []), "most common"],
        nouns=[entity.one, group.words, *([measure.words] if measure else [])],
    )
    sheet = TestSheet(name)
    groups = answers.grouped(entity.rows, group, measure)
    pages = max(1, -(-len(groups) // answers.PAGE))
    sheet.gives("starts with the largest groups", "typical", {}, answers.paged(groups, 1))
    sheet.gives("page 1 is the default", "typical", {"page": 1}, answers.paged(groups, 1))
    sheet.gives("gives the last page", "edge", {"page": pages}, answers.paged(groups, pages))
    sheet.gives("gives an empty page after the last", "edge", {"page": pages + 1}, answers.paged(groups, pages + 1))
    sheet.refuses("refuses page 0", {"page": 0})
    return Draft(tool=tool, tests=tuple(sheet.tests), about=entity.name)


def figures(view: View, entity: Entity, measure: Field, rng: Random) -> Draft | None:
    """Count, mean, lowest and highest of a quantity, by up to two filters."""
    chosen = [conditions.equals(entity, field) for field in group_fields(entity)[:2]]
    if not chosen or len(entity.rows) < 30:  # a mean over fewer rows says little
        return None
    links = links_of([measure, *(f.field for f in chosen)])
    of = column_of(measure, links)
    query = Query(
        entity=entity,
        links=links,
        where=[f.sql(links) for f in chosen],
        shown=[("count(*)", "count"), (f"avg({of})", "mean"), (f"min({of})", "lowest"), (f"max({of})", "highest")],
    )
    params = [f.param for f in chosen]
    body = (
        f"row = {fetch(query, conditions.bindings(chosen), 'fetchone')}\n"
        'mean = None if row["mean"] is None else round(row["mean"], 2)\n'
        'return dict(row) | {"mean": mean}'
    )
    name = snake(f"{measure.name} figures of {entity.many}")
    kind, said = kind_of(measure.column), in_unit(measure.column, measure.words)
    outs = (
        _count(entity),
        _aggregate("mean", f"mean {said}", measure, "number"),
        _aggregate("lowest", f"lowest {measure.words}", measure, kind),
        _aggregate("highest", f"highest {measure.words}", measure, kind),
    )
    filters = " and ".join(f.field.words for f in chosen)
    tool = make_tool(
        environment=view.database.database_id,
        name=name,
        pattern="aggregate",
        what=f"Figures on the {measure.words} of {entity.many}, of all or of one {filters} only. "
        "Missing values do not enter the mean.",
        params=params,
        result=Result(fields=outs),
        source=function(
            name, f"Count, mean and range of {measure.words} over what the filters let through.", params, body
        ),
        tables=[entity.name, *(link.parent.name for link in links)],
        said=["average", "how many", "least and most"],
        nouns=[measure.words, entity.one],
    )
    sheet = TestSheet(name)

    def gives(said: str, kind: str, arguments: dict[str, Json]) -> None:
        rows = conditions.rows_with(entity, chosen, arguments)
        sheet.gives(said, kind, arguments, answers.figures(rows, measure))

    full = [row for row in entity.rows if all(conditions.value_in(row, f) is not None for f in chosen)]
    for said, row in (("typical", rng.choice(full)), ("typical", rng.choice(full)), ("edge", full[-1])) if full else ():
        gives("takes all filters at once", said, {f.param.name: conditions.value_in(row, f) for f in chosen})
        gives(
            f"filters by {chosen[0].param.name} alone",
            "typical",
            {chosen[0].param.name: conditions.value_in(row, chosen[0])},
        )
    gives("takes everything without filters", "edge", {})
    barest = [row for row in full if answers.value_of(row, measure) is None][:1]
    for row in barest:
        gives(
            "leaves missing values out of the mean", "edge", {f.param.name: conditions.value_in(row, f) for f in chosen}
        )
    sheet.refuses("refuses a filter it does not know", {"colour": "red"})
    return Draft(tool=tool, tests=tuple(sheet.tests), about=entity.name)


def _count(entity: Entity) -> Out:
    return Out(
        name="count",
        kind="integer",
        words=f"number of {entity.many}",
        minimum=0,
        meaning=Meaning(kind="count", table=entity.name),
    )


def _aggregate(name: str, words: str, measure: Field, kind: str) -> Out:
    return Out(
        name=name,
        kind=kind,
        words=words,
        nullable=True,
        meaning=Meaning(kind="aggregate", table=measure.owner.name, column=measure.column.name),
    )
