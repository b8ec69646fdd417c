"""What belongs to one row: children by a foreign key, and partners across a table that only links."""

from __future__ import annotations

from collections import Counter
from random import Random

from agent_world.discovery.toolsmith.answers import reads as answers
from agent_world.discovery.toolsmith.contract import Result, make_tool, out_of, page_param
from agent_world.discovery.toolsmith.drafts import Draft, TestSheet
from agent_world.discovery.toolsmith.fields import item_fields
from agent_world.discovery.toolsmith.reads.lookup import key_param, unknown_key
from agent_world.discovery.toolsmith.source import (
    Query,
    column_of,
    fetch,
    function,
    key_order,
    links_of,
    quoted,
    refuse_unknown,
    select,
    shape_helper,
)
from agent_world.discovery.toolsmith.view import Entity, Field, Link, View, own_field
from agent_world.discovery.toolsmith.words import article, snake
from agent_world.environments.model import Column, Json


def children(view: View, child: Entity, link: Link, rng: Random) -> Draft | None:
    """Rows of `child` that refer to one row of its parent."""
    parent = link.parent
    if parent.key is None or link.key.parent_column != parent.key.name or len(child.rows) < 5:
        return None
    rivals = [other for other in child.links if other.parent.name == parent.name]
    ending = f"by {link.column.words}" if len(rivals) > 1 or parent.name == child.name else f"of {parent.one}"
    label = own_field(child, child.label) if child.label else None
    fields = item_fields(child, without=link.column.name)
    return _listing(view, child, link, fields, label, snake(f"list {child.many} {ending}"), child.many, rng)


def partners(view: View, middle: Entity, near: Link, far: Link, rng: Random) -> Draft | None:
    """Rows of the far parent that a linking table ties to one row of the near parent."""
    if near.parent.key is None or far.parent.key is None or near.key.parent_column != near.parent.key.name:
        return None
    if far.key.parent_column != far.parent.key.name:
        return None
    columns = [far.parent.key, *([far.parent.label] if far.parent.label else [])]
    fields = [_across(middle, far, column) for column in columns]
    own = [own_field(middle, c) for c in middle.with_roles("measure", "money", "category", "year")][:1]
    name = snake(f"list {far.parent.many} of {near.parent.one}")
    return _listing(
        view, middle, near, [*fields, *own], fields[-1] if far.parent.label else None, name, far.parent.many, rng
    )


def is_linking(entity: Entity) -> bool:
    """Whether a table is there to tie two others together."""
    return (
        len({link.parent.name for link in entity.links}) == 2
        and entity.label is None
        and len(entity.table.columns) <= 5
    )


def _across(middle: Entity, far: Link, column: Column) -> Field:
    own = own_field(far.parent, column)
    return Field(name=own.name, owner=middle, column=own.column, meaning=own.meaning, words=own.words, via=far)


def _listing(
    view: View, child: Entity, link: Link, fields: list[Field], label: Field | None, name: str, many: str, rng: Random
) -> Draft:
    parent = link.parent
    links = links_of([*fields, *([label] if label else [])])
    param = key_param(parent)
    prefix = f"{quoted(child.name)}." if links else ""
    order = [f"fold({column_of(label, links)})"] if label else []
    query = Query(
        entity=child,
        shown=select(fields, links),
        links=links,
        where=[f"{prefix}{quoted(link.column.name)} = :{param.name}"],
        order=[*order, *key_order(child, links)],
    )
    helper, shown = shape_helper(fields)
    params = [param, page_param()]
    body = (
        refuse_unknown(parent, param.name, f"search the {parent.many} for the right one.")
        + f"rows = {fetch(query, {param.name: param.name}, 'fetchall')}\n"
        f"return paged([{shown} for row in rows], page, PAGE_SIZE)"
    )
    role = f" (as {link.column.words})" if link.column.words not in {parent.one, parent.key.words} else ""
    tool = make_tool(
        environment=view.database.database_id,
        name=name,
        pattern="children",
        what=f"List the {many} of one {parent.one}{role}, in order of {(label or fields[0]).words}.",
        params=params,
        result=Result(fields=tuple(out_of(field) for field in fields), listing=child.name),
        source=function(
            name,
            f"{many.capitalize()} that belong to {article(parent.one)}.",
            params,
            body,
            imports=["Refused", "paged"],
            constants="PAGE_SIZE = 5",
            helpers=helper,
        ),
        tables=[child.name, parent.name, *(other.parent.name for other in links)],
        refusals=[f"an unknown {param.words} (not_found)"],
        said=["belonging to", "how many", "which"],
        nouns=[many, parent.one],
    )
    sheet = TestSheet(name)
    known = child.values(link.column)
    counts = Counter(known)

    def gives(said: str, kind: str, value: Json, page: int = 1) -> None:
        rows = answers.by_name(answers.referring(child, link, value), child, label)
        items = [answers.shown(row, fields) for row in rows]
        page = page if page > 0 else max(1, -(-len(items) // answers.PAGE))
        arguments = {param.name: value} | ({"page": page} if page > 1 else {})
        sheet.gives(said, kind, arguments, answers.paged(items, page))

    # Drawn from the children, whether or not their parent is there: a guessed or torn link shows here.
    for value in rng.sample(known, min(2, len(known))):
        gives(f"lists the {many}", "typical", value)
    gives("gives the last page", "edge", counts.most_common(1)[0][0], page=0)
    childless = [key for key in parent.values(parent.key) if key not in counts]
    if childless:
        gives("gives an empty page where there are none", "edge", rng.choice(childless))
    sheet.refuses(f"refuses an unknown {parent.one}", {param.name: unknown_key(parent)}, "not_found")
    sheet.refuses("refuses page 0", {param.name: known[0], "page": 0})
    worth = 0.7 + 0.4 * bool(parent.label) + 0.4 * bool(label) - 0.2 * (link.key.origin == "guessed")
    return Draft(tool=tool, tests=tuple(sheet.tests), about=child.name, worth=worth)
