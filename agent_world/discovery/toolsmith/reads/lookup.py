"""Find an entity by its name, read one by its key."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from agent_world.discovery.toolsmith.answers import reads as answers
from agent_world.discovery.toolsmith.contract import Param, Result, kind_of, make_tool, out_of, page_param
from agent_world.discovery.toolsmith.drafts import Draft, TestSheet
from agent_world.discovery.toolsmith.fields import item_fields, record_fields
from agent_world.discovery.toolsmith.source import (
    Query,
    column_of,
    fetch,
    function,
    key_order,
    links_of,
    quoted,
    select,
    shape_helper,
)
from agent_world.discovery.toolsmith.view import Entity, Field, View, own_field
from agent_world.discovery.toolsmith.words import article, ascii_words, snake
from agent_world.environments.model import Json

_SHORTEST = 60


def key_param(entity: Entity, name: str | None = None, words: str | None = None) -> Param:
    """The parameter by which a tool is told which row of `entity` is meant."""
    assert entity.key is not None
    return Param(
        name=name or entity.key_name,
        kind=kind_of(entity.key),
        words=words or entity.key_words,
        meaning=entity.meaning(entity.key, "key"),
    )


def unknown_key(entity: Entity) -> Json:
    """A key of the right type that no row has."""
    assert entity.key is not None
    return unlike(entity.values(entity.key), entity.key.type)


def unlike(values: Sequence[Json], type_: str) -> Json:
    """A value of the same type as `values` that is none of them."""
    if type_ == "text":
        return f"{max(values, key=lambda value: (len(value), value))}-0"
    return int(max(values)) + 1


def get(view: View, entity: Entity, rng: Random) -> Draft | None:
    """One row by its key, with the names of what it refers to."""
    if entity.key is None or not entity.rows:
        return None
    name = snake(f"get {entity.one}")
    param = key_param(entity)
    fields = record_fields(entity)
    if len(fields) < 2:  # then a row says nothing but its key
        return None
    links = links_of(fields)
    prefix = f"{quoted(entity.name)}." if links else ""
    query = Query(
        entity=entity,
        shown=select(fields, links),
        links=links,
        where=[f"{prefix}{quoted(entity.key.name)} = :{param.name}"],
    )
    helper, shown = shape_helper(fields)
    body = (
        f"row = {fetch(query, {param.name: param.name}, 'fetchone')}\n"
        "if row is None:\n"
        f'    raise Refused("not_found", f"There is no {entity.one} {{{param.name}}}; '
        f'search the {entity.many} for the right one.")\n'
        f"return {shown}"
    )
    tool = make_tool(
        environment=view.database.database_id,
        name=name,
        pattern="get",
        what=f"All facts about one {entity.one}.",
        params=[param],
        result=Result(fields=tuple(out_of(field) for field in fields)),
        source=function(
            name, f"One {entity.one} by its {param.words}.", [param], body, imports=["Refused"], helpers=helper
        ),
        tables=[entity.name, *(link.parent.name for link in links)],
        refusals=[f"an unknown {param.words} (not_found)"],
        said=["details", "look up", "show"],
        nouns=[entity.one, *(field.words for field in fields)],
    )
    sheet = TestSheet(name)
    typical, other = rng.sample(entity.rows, 2) if len(entity.rows) > 1 else (entity.rows[0],) * 2
    barest = max(entity.rows, key=lambda row: sum(row[field.column.name] is None for field in fields if not field.via))
    cases = [
        ("typical", f"reads {article(entity.one)}", typical),
        ("typical", f"reads another {entity.one}", other),
        ("edge", "reads the last one by key", entity.rows[-1]),
        ("edge", "keeps missing values as null", barest),
    ]
    cases += [("edge", "keeps letters beyond ASCII", row) for row in entity.rows if not _is_ascii(row, entity)][:1]
    for kind, said, row in cases:
        sheet.gives(said, kind, {param.name: row[entity.key.name]}, answers.shown(row, fields))
    sheet.refuses("refuses an unknown key", {param.name: unknown_key(entity)}, "not_found")
    sheet.refuses("refuses to guess the key", {})
    return Draft(tool=tool, tests=tuple(sheet.tests), about=entity.name)


def search(view: View, entity: Entity, rng: Random) -> Draft | None:
    """Rows whose label contains a text."""
    if entity.label is None or entity.key is None or len(entity.rows) < 3:
        return None
    name = snake(f"search {entity.many}")
    label = own_field(entity, entity.label)
    fields = item_fields(entity)
    links = links_of(fields)
    column = column_of(label, links)
    param = Param(
        name=label.name,
        kind="string",
        words=f"{label.words} of the {entity.one}, or a part of it",
        meaning=entity.meaning(entity.label, "label"),
    )
    query = Query(
        entity=entity,
        shown=select(fields, links),
        links=links,
        where=[f"fold({column}) LIKE fold(:pattern) ESCAPE '\\'"],
        order=[f"fold({column}) = fold(:{label.name}) DESC", f"fold({column})", *key_order(entity, links)],
    )
    helper, shown = shape_helper(fields)
    bound = {label.name: label.name, "pattern": f'f"%{{escape_like({label.name})}}%"'}
    body = f"rows = {fetch(query, bound, 'fetchall')}\nreturn paged([{shown} for row in rows], page, PAGE_SIZE)"
    params = [param, page_param()]
    tool = make_tool(
        environment=view.database.database_id,
        name=name,
        pattern="search",
        what=f"Find {entity.many} by {label.words} or a part of it; capital letters and accents do not matter, "
        "exact hits come first.",
        params=params,
        result=Result(fields=tuple(out_of(field) for field in fields), listing=entity.name),
        source=function(
            name,
            f"{entity.many.capitalize()} whose {label.words} contains `{label.name}`, exact hits first.",
            params,
            body,
            imports=["escape_like", "paged"],
            constants="PAGE_SIZE = 5",
            helpers=helper,
        ),
        tables=[entity.name, *(link.parent.name for link in links)],
        said=["look for", "look up"],
        nouns=[entity.one, label.words],
    )
    sheet = TestSheet(name)

    def gives(said: str, kind: str, text: str, page: int = 1) -> None:
        items = [answers.shown(row, fields) for row in answers.with_text(entity, label, text)]
        arguments = {label.name: text} | ({"page": page} if page > 1 else {})
        sheet.gives(said, kind, arguments, answers.paged(items, page))

    labels = [row[entity.label.name] for row in entity.rows if row[entity.label.name]]
    gives("finds an exact name", "typical", rng.choice(labels))
    word = _common_part(labels)
    gives("finds by a part that many share", "typical", word)
    hits = len(answers.with_text(entity, label, word))
    gives("gives the last page", "edge", word, max(1, -(-hits // answers.PAGE)))
    for text in labels:
        if not text.isascii():
            gives("ignores case and accents", "edge", answers.folded(text).upper())
            gives("takes accents and capitals", "edge", text.upper())
            break
    long = next((text for text in labels if len(text) >= 4), labels[0])
    gives("takes % as a plain character", "edge", f"{long[:1]}%{long[-1:]}")
    gives("takes _ as a plain character", "edge", f"{long[:1]}_{long[2:]}")
    for text in [text for text in labels if "%" in text or "_" in text][:1]:
        gives("finds a name with a wildcard in it", "edge", text)
    if inner := _inside_another(entity, label, labels):
        gives("puts the exact name first, whatever its case", "edge", inner.swapcase())
    gives("gives an empty page when nothing fits", "edge", f"{rng.choice(labels)} zzq")
    sheet.refuses("refuses an empty text", {label.name: ""})
    return Draft(tool=tool, tests=tuple(sheet.tests), about=entity.name)


def _inside_another(entity: Entity, label: Field, labels: Sequence[str]) -> str | None:
    """A label that is a part of another one which comes before it in the alphabet."""
    for text in sorted(set(labels), key=lambda known: (len(known), known))[:_SHORTEST]:
        hits = answers.with_text(entity, label, text)
        first = answers.by_name(hits, entity, label)[0]
        if len(hits) > 1 and answers.folded(first[label.column.name]) != answers.folded(text):
            return text
    return None


def _common_part(labels: list[str]) -> str:
    """The longest word that the most labels share; the first letters of a label when they share none."""
    counts: dict[str, int] = {}
    for label in labels:
        for word in set(ascii_words(label)):
            if len(word) >= 3:
                counts[word] = counts.get(word, 0) + 1
    if not counts:
        return labels[0][:2]
    return max(sorted(counts), key=lambda word: (min(counts[word], 40), len(word)))


def _is_ascii(row: dict[str, Json], entity: Entity) -> bool:
    return all(str(value).isascii() for value in row.values())
