"""Lists: by two filters at once, ranked by a quantity, between two times."""

from __future__ import annotations

from collections import Counter
from random import Random

from agent_world.discovery.toolsmith.answers import reads as answers
from agent_world.discovery.toolsmith.contract import Param, Result, in_unit, kind_of, make_tool, out_of, page_param
from agent_world.discovery.toolsmith.drafts import Draft, TestSheet
from agent_world.discovery.toolsmith.fields import (
    group_fields,
    item_fields,
    link_field,
    measure_fields,
    names_something,
    time_fields,
)
from agent_world.discovery.toolsmith.reads import filters as conditions
from agent_world.discovery.toolsmith.reads.filters import Filter
from agent_world.discovery.toolsmith.source import (
    Query,
    column_of,
    fetch,
    function,
    key_order,
    links_of,
    select,
    shape_helper,
)
from agent_world.discovery.toolsmith.view import Entity, Field, View, own_field
from agent_world.discovery.toolsmith.words import capital, listed, snake
from agent_world.environments.model import Json, Meaning

_ORDERS = ("highest", "lowest")


def filtered(view: View, entity: Entity, rng: Random) -> Draft | None:
    """Rows by two optional filters, in order of their name."""
    chosen = _two_filters(entity)
    if len(chosen) < 2 or len(entity.rows) < 10:
        return None
    return _listing(view, entity, chosen, rng, pattern="filter", verb="list", said=["show", "which", "browse"])


def identified(view: View, entity: Entity, rng: Random) -> Draft | None:
    """Rows without a name by what people know of them instead: a number that several share, and what they refer to."""
    if entity.label is not None or entity.key is None or len(entity.rows) < 10:
        return None
    codes = [c for c in entity.with_roles("code") if names_something(c) and c.distinct > 1]
    if not codes:
        return None
    chosen = [conditions.equals(entity, own_field(entity, codes[0]))]
    chosen += [conditions.equals(entity, field) for field in _known_links(entity)]
    if len(chosen) < 2:
        return None
    return _listing(view, entity, chosen, rng, pattern="search", verb="search", said=["look for", "which", "find"])


def _listing(
    view: View, entity: Entity, chosen: list[Filter], rng: Random, *, pattern: str, verb: str, said: list[str]
) -> Draft:
    """Rows that pass all of the optional filters that are set."""
    label = own_field(entity, entity.label) if entity.label else None
    fields = item_fields(entity, [f.field for f in chosen])
    links = links_of([*fields, *(f.field for f in chosen)])
    order = [f"fold({column_of(label, links)})"] if label else []
    query = Query(
        entity=entity,
        shown=select(fields, links),
        links=links,
        where=[f.sql(links) for f in chosen],
        order=[*order, *key_order(entity, links)],
    )
    helper, shown = shape_helper(fields)
    params = [*(f.param for f in chosen), page_param()]
    body = (
        f"rows = {fetch(query, conditions.bindings(chosen), 'fetchall')}\n"
        f"return paged([{shown} for row in rows], page, PAGE_SIZE)"
    )
    name = snake(f"{verb} {entity.many}")
    tool = make_tool(
        environment=view.database.database_id,
        name=name,
        pattern=pattern,
        what=f"{capital(verb)} {entity.many} by {listed(f.said for f in chosen)}; leave a filter out to take all of "
        f"them. In order of {label.words if label else fields[0].words}.",
        params=params,
        result=Result(fields=tuple(out_of(field) for field in fields), listing=entity.name),
        source=function(
            name,
            f"{entity.many.capitalize()} that pass the filters; a filter left out is open.",
            params,
            body,
            imports=["paged"],
            constants="PAGE_SIZE = 5",
            helpers=helper,
        ),
        tables=[entity.name, *(link.parent.name for link in links)],
        said=said,
        nouns=[entity.one, *(f.field.words for f in chosen)],
    )
    sheet = TestSheet(name)

    def gives(said: str, kind: str, arguments: dict[str, Json], page: int = 1) -> None:
        rows = answers.by_name(conditions.rows_with(entity, chosen, arguments), entity, label)
        items = [answers.shown(row, fields) for row in rows]
        page = page if page > 0 else max(1, -(-len(items) // answers.PAGE))
        sheet.gives(said, kind, arguments | ({"page": page} if page > 1 else {}), answers.paged(items, page))

    full = [row for row in entity.rows if all(conditions.value_in(row, f) is not None for f in chosen)]
    some = rng.choice(full or list(entity.rows))
    arguments = {f.param.name: value for f in chosen if (value := conditions.value_in(some, f)) is not None}
    gives("applies all filters", "typical", arguments)
    for f in chosen:
        if f.param.name in arguments:
            gives(f"applies {f.param.name} alone", "typical", {f.param.name: arguments[f.param.name]})
    gives("takes everything without filters", "edge", {}, page=0)
    if chosen[1].how == "at_least" and len(arguments) == 2:
        highest = max(conditions.value_in(row, chosen[1]) for row in full)
        gives("includes the bound itself", "edge", {chosen[1].param.name: highest})
    for row in rng.sample(full, min(12, len(full))):
        if not conditions.rows_with(entity, chosen, _crossed(some, row, chosen)):
            gives("gives an empty page when nothing passes", "edge", _crossed(some, row, chosen))
            break
    sheet.refuses("refuses page 0", {"page": 0})
    return Draft(tool=tool, tests=tuple(sheet.tests), about=entity.name)


def ranked(view: View, entity: Entity, measure: Field, rng: Random) -> Draft | None:
    """Rows by a quantity, highest or lowest first, with an optional filter."""
    rows = entity.rows
    if len(rows) < 8 or entity.key is None:
        return None
    groups = [field for field in group_fields(entity) if field.column.role != "flag"]
    chosen = [conditions.equals(entity, groups[0])] if groups else []
    fields = item_fields(entity, [measure], without=None)
    links = links_of([*fields, *(f.field for f in chosen)])
    column = column_of(measure, links)
    query = Query(
        entity=entity,
        shown=select(fields, links),
        links=links,
        where=[f"{column} IS NOT NULL", *(f.sql(links) for f in chosen)],
        order=[f"CASE :order WHEN 'highest' THEN -{column} ELSE {column} END", *key_order(entity, links)],
    )
    helper, shown = shape_helper(fields)
    order = Param(
        name="order",
        kind="string",
        words="highest: the largest first; lowest: the smallest first",
        meaning=Meaning(kind="order"),
        required=False,
        default="highest",
        enum=_ORDERS,
    )
    params = [order, *(f.param for f in chosen), page_param()]
    bound = {"order": "order", **conditions.bindings(chosen)}
    body = f"rows = {fetch(query, bound, 'fetchall')}\nreturn paged([{shown} for row in rows], page, PAGE_SIZE)"
    name = snake(f"rank {entity.many} by {measure.name}")
    quantity = in_unit(measure.column, measure.words)
    tool = make_tool(
        environment=view.database.database_id,
        name=name,
        pattern="rank",
        what=f"Rank {entity.many} by {quantity}, highest or lowest first"
        + (f", all of them or one {chosen[0].field.words} only" if chosen else "")
        + f". {entity.many.capitalize()} without {measure.words} are left out; ties are in order of {fields[0].words}.",
        params=params,
        result=Result(fields=tuple(out_of(field) for field in fields), listing=entity.name),
        source=function(
            name,
            f"{entity.many.capitalize()} in order of {measure.words}.",
            params,
            body,
            imports=["paged"],
            constants="PAGE_SIZE = 5",
            helpers=helper,
        ),
        tables=[entity.name, *(link.parent.name for link in links)],
        said=["most", "least", "top"],
        nouns=[entity.one, measure.words],
    )
    sheet = TestSheet(name)

    def gives(said: str, kind: str, arguments: dict[str, Json], page: int = 1) -> None:
        known = answers.ranked(
            conditions.rows_with(entity, chosen, arguments), entity, measure, str(arguments.get("order", "highest"))
        )
        items = [answers.shown(row, fields) for row in known]
        page = page if page > 0 else max(1, -(-len(items) // answers.PAGE))
        sheet.gives(said, kind, arguments | ({"page": page} if page > 1 else {}), answers.paged(items, page))

    gives("starts with the highest", "typical", {})
    gives("starts with the lowest", "typical", {"order": "lowest"})
    gives("goes on to the second page", "edge", {}, page=2)
    gives("keeps ties in order on the last page", "edge", {"order": "highest"}, page=0)
    if chosen:
        value = conditions.value_in(
            rng.choice([r for r in rows if conditions.value_in(r, chosen[0]) is not None]), chosen[0]
        )
        gives("ranks within the filter", "typical", {chosen[0].param.name: value, "order": "lowest"})
    sheet.refuses("refuses an unknown order", {"order": "middle"})
    return Draft(tool=tool, tests=tuple(sheet.tests), about=entity.name)


def between(view: View, entity: Entity, when: Field, rng: Random) -> Draft | None:
    """Rows between two times, both included, the earliest first."""
    role = when.column.role
    rows = [row for row in entity.rows if answers.value_of(row, when) is not None]
    order = sorted({answers.moment(answers.value_of(row, when), role) for row in rows})
    if len(order) < 4:
        return None
    fields = item_fields(entity, [when])
    links = links_of(fields)
    column = column_of(when, links)
    as_day = role == "date" and any(len(str(answers.value_of(row, when))) > 10 for row in rows)
    compared = f"date({column})" if as_day else column
    form = {"date": (r"^\d{4}-\d{2}-\d{2}$", "YYYY-MM-DD"), "clock": (r"^\d{2}:\d{2}$", "HH:MM, 24 hours")}.get(role)
    said = when.words if form is None else f"{when.words}, as {form[1]}"
    names = ("earliest", "latest")
    bounds = [
        Param(
            name=name,
            kind=kind_of(when.column),
            words=f"{name} {said}, itself included",
            meaning=Meaning(kind="threshold", table=entity.name, column=when.column.name),
            pattern=form[0] if form else None,
        )
        for name in names
    ]
    query = Query(
        entity=entity,
        shown=select(fields, links),
        links=links,
        where=[f"{compared} BETWEEN :earliest AND :latest"],
        order=[column, *key_order(entity, links)],
    )
    helper, shown = shape_helper(fields)
    params = [*bounds, page_param()]
    body = (
        f"rows = {fetch(query, {name: name for name in names}, 'fetchall')}\n"
        f"return paged([{shown} for row in rows], page, PAGE_SIZE)"
    )
    name = snake(f"list {entity.many} by {when.name}")
    tool = make_tool(
        environment=view.database.database_id,
        name=name,
        pattern="between",
        what=f"List {entity.many} whose {when.words} lies between two bounds, both included, the earliest first.",
        params=params,
        result=Result(fields=tuple(out_of(field) for field in fields), listing=entity.name),
        source=function(
            name,
            f"{entity.many.capitalize()} from `earliest` to `latest` by {when.words}.",
            params,
            body,
            imports=["paged"],
            constants="PAGE_SIZE = 5",
            helpers=helper,
        ),
        tables=[entity.name, *(link.parent.name for link in links)],
        said=["from when to when", "during", "in the time of"],
        nouns=[entity.one, when.words],
    )
    sheet = TestSheet(name)

    def gives(said: str, kind: str, low: Json, high: Json, page: int = 1) -> None:
        items = [answers.shown(row, fields) for row in answers.within(rows, entity, when, low, high)]
        page = page if page > 0 else max(1, -(-len(items) // answers.PAGE))
        arguments = {"earliest": low, "latest": high}
        sheet.gives(said, kind, arguments | ({"page": page} if page > 1 else {}), answers.paged(items, page))

    low, high = sorted(rng.sample(range(len(order)), 2))
    gives("lists a stretch of time", "typical", order[low], order[high])
    gives("takes one moment as both bounds", "edge", order[high], order[high])
    gives("includes the first and the last", "edge", order[0], order[-1], page=0)
    gives("gives an empty page when the bounds are swapped", "edge", order[-1], order[0])
    sheet.refuses("asks for both bounds", {"earliest": order[low]})
    return Draft(tool=tool, tests=tuple(sheet.tests), about=entity.name)


def _known_links(entity: Entity) -> list[Field]:
    """The two foreign keys by which people know a row, those to one table first: where from and where to."""
    parents = Counter(link.parent.name for link in entity.links)
    ordered = sorted(entity.links, key=lambda link: -parents[link.parent.name])
    shown = [
        own_field(entity, link.column) if link.column.type == "text" else link_field(entity, link) for link in ordered
    ]
    return shown[:2]


def _two_filters(entity: Entity) -> list[Filter]:
    """Two filters that cut differently: two categories, else a category and a lower bound."""
    groups = group_fields(entity)
    chosen = [conditions.equals(entity, field) for field in groups[:2]]
    if len(chosen) < 2:
        bounds = [*(f for f in time_fields(entity) if f.column.role == "year"), *measure_fields(entity)]
        chosen += [conditions.at_least(entity, field) for field in bounds[: 2 - len(chosen)]]
    return chosen


def _crossed(one: dict[str, Json], other: dict[str, Json], chosen: list[Filter]) -> dict[str, Json]:
    """The first filter as `one` passes it with the others as `other` does."""
    values = (conditions.value_in(one, chosen[0]), *(conditions.value_in(other, f) for f in chosen[1:]))
    return {f.param.name: value for f, value in zip(chosen, values, strict=True) if value is not None}
