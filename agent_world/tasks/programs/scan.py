"""Page through a list: find the extreme, count what passes a test, or read the details of each row."""

from __future__ import annotations

import random

from agent_world.environments.model import Column, Json
from agent_world.tasks.catalogue import Getter, Output
from agent_world.tasks.phrases import plain, quote
from agent_world.tasks.programs.draft import Bench, Draft
from agent_world.tasks.programs.parts import (
    column_sql,
    is_many,
    measures,
    reaching,
    superlative,
)
from agent_world.tasks.programs.scanning import Listing, Scan
from agent_world.tasks.saying import fact_words, field_name, schema_of, with_words

_LONG_SHARE = 0.4
"""How often a list of ten pages and more is asked for; few filters let through so many rows."""
_SHORT, _LONG = (6, 20), (46, 95)


def scanned(bench: Bench, rng: random.Random) -> Draft | None:
    """The row with the extreme quantity of a list, and how many of the list pass a bound."""
    scan = bench.scan(rng, _measured)
    listing = scan.draw(rng, *(_LONG if rng.random() < _LONG_SHARE else _SHORT)) if scan else None
    if scan is None or listing is None:
        return None
    table = bench.catalogue.database.table(scan.lister.table)
    name = _name_output(listing)
    if name is None:
        return None
    output, column = rng.choice(_measured(scan))
    rows = rows_of(listing, [name, output])
    values = sorted(row[output.field] for row in rows if row[output.field] is not None)
    if len(values) < 4:
        return None
    highest = rng.random() < 0.5
    if values[-1 if highest else 0] == values[-2 if highest else 1]:
        return None
    bound = rng.choice(values[1:-1])
    most, level = superlative(column, highest), rng.choice((0, 1, 1, 2))
    noun, group = table.singular, listing.group
    nulls = f" Leave out {table.plural} without {plain(column.words)}." if column.nullable else ""
    over = reaching(column, bound)
    text = {
        0: f"Go through all {group.say()}. Report the {noun} with the {most}, and the number of them {over}.{nulls}",
        1: f"Among the {group.say()}, which {noun} has the {most}, and how many are there {over}?{nulls}",
        2: f"I need the {noun} with the {most} of the {group.say()}, and the number of them {over}.{nulls}",
    }[level]
    fields = {
        field_name(noun): _name_schema(listing, name, noun),
        "number": {"type": "integer", "description": f"the number of them {over}"},
    }
    sign = ">" if highest else "<"
    statement, bindings = listing.select([name, output])
    return Draft(
        pattern="scanned", text=text, level=level, functions=listing.functions,
        body=[
            *listing.code(), "best, number = None, 0", "for item in items:",
            f"    value = item[{output.field!r}]", "    if value is None:", "        continue",
            f"    if value >= {bound!r}:", "        number += 1",
            f"    if best is None or value {sign} best[{output.field!r}]:", "        best = item",
            f"return {{{field_name(noun)!r}: best[{name.field!r}], 'number': number}}",
        ],
        logic=[
            f"rows = db.execute({statement!r}, {tuple(bindings)!r}).fetchall()",
            f"known = [row for row in rows if row[{output.field!r}] is not None]",
            f"best = {'max' if highest else 'min'}(known, key=lambda row: row[{output.field!r}])",
            f"number = sum(row[{output.field!r}] >= {bound!r} for row in known)",
            f"own = {{{field_name(noun)!r}: best[{name.field!r}], 'number': number}}",
        ],
        fields=fields, branches=2, loops=1, aggregates=2,
    )  # fmt: skip


def looked_into(bench: Bench, rng: random.Random) -> Draft | None:
    """Read each row of a short list in full: which has the extreme of a quantity that the list does not show."""
    scan = bench.scan(rng, _hidden)
    listing = scan.draw(rng, *rng.choice(((3, 8), (9, 16)))) if scan else None
    if scan is None or listing is None:
        return None
    catalogue, table = bench.catalogue, bench.catalogue.database.table(scan.lister.table)
    key = next((o for o in scan.lister.facts if o.meaning.kind == "key" and o.meaning.table == table.name), None)
    name = _name_output(listing)
    if key is None or name is None:
        return None
    getter, output, column = rng.choice(_hidden(scan))
    rows = rows_of(listing, [name, output])
    values = sorted(row[output.field] for row in rows if row[output.field] is not None)
    highest = rng.random() < 0.5
    if len(values) < 2 or values[-1 if highest else 0] == values[-2 if highest else 1]:
        return None
    most, level, noun = superlative(column, highest), rng.choice((0, 1, 1, 2)), table.singular
    nulls = f" Leave out {table.plural} without {plain(column.words)}." if column.nullable else ""
    that = "those" if is_many(column) else "that"
    text = {
        0: f"Take the {listing.group.say()} and look into each. "
        f"Report the {noun} with the {most}, and {that} {plain(column.words)}.{nulls}",
        1: f"Which of the {listing.group.say()} has the {most}, and what is that figure?{nulls}",
        2: f"I want to know the {most} among the {listing.group.say()} and which {noun} has it.{nulls}",
    }[level]
    quantity = field_name(plain(column.words))
    fields = {
        field_name(noun): _name_schema(listing, name, noun),
        quantity: with_words(schema_of(catalogue, getter.tool, output), f"the {plain(column.words)} of that {noun}"),
    }
    statement, bindings = listing.select([name, output])
    return Draft(
        pattern="looked_into", text=text, level=level, functions=listing.functions,
        body=[
            *listing.code(), "best = None", "for item in items:",
            f"    found = call({getter.tool.name!r}, {{{getter.parameter!r}: item[{key.field!r}]}})",
            f"    if found[{output.field!r}] is None:", "        continue",
            f"    if best is None or found[{output.field!r}] {'>' if highest else '<'} best[1]:",
            f"        best = (item[{name.field!r}], found[{output.field!r}])",
            f"return {{{field_name(noun)!r}: best[0], {quantity!r}: best[1]}}",
        ],
        logic=[
            f"rows = db.execute({statement!r}, {tuple(bindings)!r}).fetchall()",
            f"known = [row for row in rows if row[{output.field!r}] is not None]",
            f"best = {'max' if highest else 'min'}(known, key=lambda row: row[{output.field!r}])",
            f"own = {{{field_name(noun)!r}: best[{name.field!r}], {quantity!r}: best[{output.field!r}]}}",
        ],
        fields=fields, branches=2, loops=2, aggregates=1,
    )  # fmt: skip


def tallied(bench: Bench, rng: random.Random) -> Draft | None:
    """How many rows of a list have a certain value or reach a bound, and how many rows there are."""
    scan = bench.scan(rng, _tellable)
    listing = scan.draw(rng, *(_LONG if rng.random() < _LONG_SHARE else _SHORT)) if scan else None
    if scan is None or listing is None:
        return None
    table = bench.catalogue.database.table(scan.lister.table)
    output = rng.choice(_tellable(scan))
    values = [value for row in rows_of(listing, [output]) if _is_sayable(value := row[output.field])]
    if len(set(values)) < 2:
        return None
    value, words = rng.choice(values), fact_words(bench.catalogue, scan.lister.tool, output, table.name)
    level, group = rng.choice((0, 1, 2)), listing.group.say()
    if isinstance(value, str):
        those, sign = f"whose {words} is {quote(value)}", "=="
        check = f"for how many of them is the {words} {quote(value)}"
    else:
        those, sign = reaching(table.column(output.meaning.column or ""), value), ">="
        check = f"how many are there {those}"
    text = {
        0: f"Go through all {group}. Report how many there are, and the number of them {those}.",
        1: f"How many {group} are there in all, and {check}?",
        2: f"I need the number of {group}, and among them the number of those {those}.",
    }[level]
    statement, bindings = listing.select([output])
    test = f"[{output.field!r}] is not None and {{0}}[{output.field!r}] {sign} {value!r}"
    return Draft(
        pattern="tallied", text=text, level=level, functions=listing.functions,
        body=[
            *listing.code(), "number = 0", "for item in items:", f"    if item{test.format('item')}:",
            "        number += 1", "return {'total': len(items), 'number': number}",
        ],
        logic=[
            f"rows = db.execute({statement!r}, {tuple(bindings)!r}).fetchall()",
            f"own = {{'total': len(rows), 'number': sum(row{test.format('row')} for row in rows)}}",
        ],
        fields={
            "total": {"type": "integer", "description": f"the number of {group}"},
            "number": {"type": "integer", "description": f"the number of them {those}"},
        },
        branches=1, loops=1, aggregates=2,
    )  # fmt: skip


def _measured(scan: Scan) -> list[tuple[Output, Column]]:
    """The quantities that a list shows of its rows."""
    return measures(scan.catalogue, scan.lister.table, scan.lister.facts)


def _hidden(scan: Scan) -> list[tuple[Getter, Output, Column]]:
    """The quantities of its rows that a list does not show, with the tool that gives them."""
    shown = {output.field for output in scan.lister.facts}
    return [
        (getter, output, column)
        for getter in scan.catalogue.getters.get(scan.lister.table, [])
        for output, column in measures(scan.catalogue, scan.lister.table, getter.facts)
        if output.field not in shown
    ]


def _tellable(scan: Scan) -> list[Output]:
    """The fields of a list by whose value its rows can be told apart: categories, names of parents, quantities."""
    table = scan.catalogue.database.table(scan.lister.table)
    categories = {column.name for column in table.columns if column.role == "category" and column.type == "text"}
    found = [output for output, _ in _measured(scan)]
    for output in scan.lister.facts:
        meaning = output.meaning
        is_own = meaning.table == table.name and meaning.column in categories and meaning.kind in ("filter", "value")
        is_parent = meaning.table != table.name and meaning.kind == "label"
        if (is_own or is_parent) and column_sql(scan.catalogue, table.name, output):
            found.append(output)
    return found


def _is_sayable(value: Json) -> bool:
    if isinstance(value, str):
        return 0 < len(value) <= 48 and not set('"\\\n') & set(value)
    return value is not None


def rows_of(listing: Listing, fields: list[Output]) -> list[dict[str, Json]]:
    """The rows of a list as SQL finds them."""
    statement, values = listing.select(fields)
    return [dict(row) for row in listing.scan.catalogue.facts.db.execute(statement, values)]


def _name_output(listing: Listing) -> Output | None:
    """The item field by which an answer names a row: its label, or its key where rows have none."""
    lister, catalogue = listing.scan.lister, listing.scan.catalogue
    kind = "label" if catalogue.database.table(lister.table).label else "key"
    for output in lister.facts:
        is_own = output.meaning.kind == kind and output.meaning.table == lister.table
        if is_own and column_sql(catalogue, lister.table, output):
            values = [row[output.field] for row in rows_of(listing, [output])]
            short = all(value is not None and len(str(value)) <= 60 for value in values)
            return output if short and len(set(values)) == len(values) else None
    return None


def _name_schema(listing: Listing, output: Output, noun: str) -> dict[str, Json]:
    schema = schema_of(listing.scan.catalogue, listing.scan.lister.tool, output)
    return {**schema, "description": f"{schema['description']} (which {noun})"}
