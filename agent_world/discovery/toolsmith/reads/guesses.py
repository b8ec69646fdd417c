"""Tools that rest on a guess: a code or a name is one row's own, a cell is a list, a text starts with a number.

Their tests are drawn from the rows whatever the guess says, so that the gate settles it.
"""

from __future__ import annotations

from collections import Counter
from random import Random

from agent_world.discovery.toolsmith.answers import reads as answers
from agent_world.discovery.toolsmith.contract import Param, Result, kind_of, make_tool, out_of, page_param
from agent_world.discovery.toolsmith.drafts import Draft, TestSheet
from agent_world.discovery.toolsmith.fields import item_fields, names_something
from agent_world.discovery.toolsmith.reads.lookup import unlike
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
from agent_world.discovery.toolsmith.view import Entity, View, own_field
from agent_world.discovery.toolsmith.words import snake
from agent_world.discovery.words import singular
from agent_world.environments.model import Column, Json, Meaning

_LEAST_DISTINCT = 0.5


def by_code(view: View, entity: Entity, code: Column, rng: Random) -> Draft | None:
    """One row by a code, or by its label, that looks as if it named it; the key itself is another."""
    known = entity.values(code)
    if entity.key is None or len(known) < 10 or len(set(known)) < _LEAST_DISTINCT * len(known):
        return None
    if code != entity.label and not names_something(code):
        return None
    field = own_field(entity, code)
    fields = item_fields(entity, [field])
    links = links_of(fields)
    name = snake(f"get {entity.one} by {field.words}")
    param = Param(
        name=field.name,
        kind=kind_of(code),
        words=f"{field.words} of the {entity.one}",
        meaning=Meaning(kind="label" if code == entity.label else "filter", table=entity.name, column=code.name),
    )
    column = column_of(field, links)
    query = Query(
        entity=entity,
        shown=select(fields, links),
        links=links,
        where=[f"{column} = :{param.name}"],
        order=key_order(entity, links),
    )
    helper, shown = shape_helper(fields)
    body = (
        f"row = {fetch(query, {param.name: param.name}, 'fetchone')}\n"
        "if row is None:\n"
        f'    raise Refused("not_found", f"There is no {entity.one} with {field.words} {{{param.name}}}.")\n'
        f"return {shown}"
    )
    tool = make_tool(
        environment=view.database.database_id,
        name=name,
        pattern="lookup",
        what=f"The {entity.one} with a certain {field.words}.",
        params=[param],
        result=Result(fields=tuple(out_of(field) for field in fields)),
        source=function(
            name, f"The {entity.one} that has this {field.words}.", [param], body, imports=["Refused"], helpers=helper
        ),
        tables=[entity.name, *(link.parent.name for link in links)],
        refusals=[f"an unknown {field.words} (not_found)"],
        said=["which one is", "identify"],
        nouns=[entity.one, field.words],
    )
    sheet = TestSheet(name)
    rows = [row for row in entity.rows if row[code.name] is not None]
    for row in rng.sample(rows, 3):
        sheet.gives("finds the row", "typical", {param.name: row[code.name]}, answers.shown(row, fields))
    commonest = Counter(known).most_common(1)[0][0]
    last = [row for row in rows if row[code.name] == commonest][-1]
    sheet.gives(
        "finds the last of those that share a code", "edge", {param.name: commonest}, answers.shown(last, fields)
    )
    sheet.gives("finds the last row", "edge", {param.name: rows[-1][code.name]}, answers.shown(rows[-1], fields))
    sheet.refuses("refuses an unknown code", {param.name: unlike(known, code.type)}, "not_found")
    share = len(set(known)) / len(known)
    return Draft(tool=tool, tests=tuple(sheet.tests), about=entity.name, worth=share, unsure=True)


def containing(view: View, entity: Entity, cells: Column, rng: Random) -> Draft | None:
    """Rows whose list in a cell contains a value, taking the cells for JSON."""
    members = {row_number: answers.members(row[cells.name]) for row_number, row in enumerate(entity.rows)}
    every = Counter(member for found in members.values() for member in found)
    if entity.key is None or len(every) < 3:
        return None
    fields = item_fields(entity)
    links = links_of(fields)
    label = own_field(entity, entity.label) if entity.label else None
    column = column_of(own_field(entity, cells), links)
    head, _, last = cells.name.rpartition("_")
    item = snake(f"{head} {singular(last)}")
    name = snake(f"list {entity.many} with {item}")
    param = Param(
        name=item,
        kind="string",
        words=f"one of the {cells.words}",
        meaning=Meaning(kind="filter", table=entity.name, column=cells.name),
    )
    order = [f"fold({column_of(label, links)})"] if label else []
    query = Query(
        entity=entity,
        shown=select(fields, links),
        links=links,
        order=[*order, *key_order(entity, links)],
        where=[f"EXISTS (SELECT 1 FROM json_each({column}) WHERE value = :{item})"],
    )
    helper, shown = shape_helper(fields)
    params = [param, page_param()]
    body = f"rows = {fetch(query, {item: item}, 'fetchall')}\nreturn paged([{shown} for row in rows], page, PAGE_SIZE)"
    tool = make_tool(
        environment=view.database.database_id,
        name=name,
        pattern="filter",
        what=f"List {entity.many} that have a certain value among their {cells.words}.",
        params=params,
        result=Result(fields=tuple(out_of(field) for field in fields), listing=entity.name),
        source=function(
            name,
            f"{entity.many.capitalize()} with `{item}` among their {cells.words}.",
            params,
            body,
            imports=["paged"],
            constants="PAGE_SIZE = 5",
            helpers=helper,
        ),
        tables=[entity.name, *(link.parent.name for link in links)],
        said=["having", "which"],
        nouns=[entity.one, cells.words],
    )
    sheet = TestSheet(name)

    def gives(said: str, kind: str, value: str, page: int = 1) -> None:
        rows = [row for number, row in enumerate(entity.rows) if value in members[number]]
        items = [answers.shown(row, fields) for row in answers.by_name(rows, entity, label)]
        page = page if page > 0 else max(1, -(-len(items) // answers.PAGE))
        sheet.gives(said, kind, {item: value} | ({"page": page} if page > 1 else {}), answers.paged(items, page))

    for value in rng.sample(sorted(every), 2):
        gives("finds who has it", "typical", value)
    gives("gives the last page of a common one", "edge", every.most_common(1)[0][0], page=0)
    gives("gives an empty page for an unknown one", "edge", f"{every.most_common(1)[0][0]} zzq")
    sheet.refuses("refuses an empty text", {item: ""})
    return Draft(tool=tool, tests=tuple(sheet.tests), about=entity.name, worth=1.0, unsure=True)


def ranked_text(view: View, entity: Entity, text: Column, rng: Random) -> Draft | None:
    """Rows by the number that a text such as `142 min` starts with."""
    numbers = [answers.number_in(value) for value in entity.values(text)]
    if entity.key is None or len(entity.rows) < 20 or sum(n is not None for n in numbers) < 0.9 * max(20, len(numbers)):
        return None
    if len(set(numbers)) < 8 or text.name in entity.wide:
        return None
    field = own_field(entity, text)
    fields = item_fields(entity, [field])
    links = links_of(fields)
    column = column_of(field, links)
    query = Query(
        entity=entity,
        shown=select(fields, links),
        links=links,
        where=[f"{column} IS NOT NULL"],
        order=[f"CAST({column} AS REAL) DESC", *key_order(entity, links)],
    )
    helper, shown = shape_helper(fields)
    params = [page_param()]
    name = snake(f"rank {entity.many} by {field.name}")
    body = f"rows = {fetch(query, {}, 'fetchall')}\nreturn paged([{shown} for row in rows], page, PAGE_SIZE)"
    tool = make_tool(
        environment=view.database.database_id,
        name=name,
        pattern="rank",
        what=f"Rank {entity.many} by the number in their {field.words}, highest first; "
        f"ties are in order of {fields[0].words}.",
        params=params,
        result=Result(fields=tuple(out_of(field) for field in fields), listing=entity.name),
        source=function(
            name,
            f"{entity.many.capitalize()} in order of {field.words}, highest first.",
            params,
            body,
            imports=["paged"],
            constants="PAGE_SIZE = 5",
            helpers=helper,
        ),
        tables=[entity.name, *(link.parent.name for link in links)],
        said=["most", "top"],
        nouns=[entity.one, field.words],
    )
    rows = [row for row in entity.rows if answers.number_in(row[text.name]) is not None]
    rows.sort(key=lambda row: -answers.number_in(row[text.name]))
    items: list[Json] = [answers.shown(row, fields) for row in rows]
    pages = -(-len(items) // answers.PAGE)
    sheet = TestSheet(name)
    sheet.gives("starts with the highest", "typical", {}, answers.paged(items, 1))
    sheet.gives("goes on to the second page", "typical", {"page": 2}, answers.paged(items, 2))
    middle = rng.randrange(2, max(3, pages))
    sheet.gives("is in order in the middle", "edge", {"page": middle}, answers.paged(items, middle))
    sheet.gives("ends with the lowest", "edge", {"page": pages}, answers.paged(items, pages))
    sheet.refuses("refuses page 0", {"page": 0})
    return Draft(tool=tool, tests=tuple(sheet.tests), about=entity.name, worth=0.9, unsure=True)
