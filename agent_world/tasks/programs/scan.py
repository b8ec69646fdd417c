"""Page through a list: find the extreme, count what passes a bound, read the details of each, or act on each."""

from __future__ import annotations

import random

from agent_world.environments.model import Json
from agent_world.tasks.catalogue import Output
from agent_world.tasks.phrases import plain, quote
from agent_world.tasks.programs.draft import Bench, Draft
from agent_world.tasks.programs.parts import (
    column_sql,
    measures,
    reaching,
    superlative,
)
from agent_world.tasks.programs.scanning import Listing
from agent_world.tasks.saying import field_name, schema_of, with_words

_SHORT, _LONG = (6, 20), (50, 75)


def scanned(bench: Bench, rng: random.Random) -> Draft | None:
    """The row with the extreme quantity of a list, and how many of the list pass a bound."""
    scan = bench.scan(rng)
    listing = scan.draw(rng, *(_LONG if rng.random() < 0.2 else _SHORT)) if scan else None
    if scan is None or listing is None:
        return None
    catalogue, table = bench.catalogue, bench.catalogue.database.table(scan.lister.table)
    name = _name_output(listing)
    quantities = measures(catalogue, table.name, scan.lister.facts)
    if name is None or not quantities:
        return None
    output, column = rng.choice(quantities)
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
    scan = bench.scan(rng)
    listing = scan.draw(rng, 3, 12) if scan else None
    if scan is None or listing is None:
        return None
    catalogue, table = bench.catalogue, bench.catalogue.database.table(scan.lister.table)
    key = next((o for o in scan.lister.facts if o.meaning.kind == "key" and o.meaning.table == table.name), None)
    getters = catalogue.getters.get(table.name, [])
    name = _name_output(listing)
    if key is None or name is None or not getters:
        return None
    getter = rng.choice(getters)
    shown = {output.field for output in scan.lister.facts}
    quantities = [pair for pair in measures(catalogue, table.name, getter.facts) if pair[0].field not in shown]
    if not quantities:
        return None
    output, column = rng.choice(quantities)
    rows = rows_of(listing, [name, output])
    values = sorted(row[output.field] for row in rows if row[output.field] is not None)
    highest = rng.random() < 0.5
    if len(values) < 2 or values[-1 if highest else 0] == values[-2 if highest else 1]:
        return None
    most, level, noun = superlative(column, highest), rng.choice((0, 1, 1, 2)), table.singular
    nulls = f" Leave out {table.plural} without {plain(column.words)}." if column.nullable else ""
    text = {
        0: f"Take the {listing.group.say()} and look into each. "
        f"Report the {noun} with the {most}, and that {plain(column.words)}.{nulls}",
        1: f"Which of the {listing.group.say()} has the {most}, and what is it?{nulls}",
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
    """How many rows of a list have a certain value, and how many rows there are."""
    scan = bench.scan(rng)
    listing = scan.draw(rng, *(_LONG if rng.random() < 0.1 else _SHORT)) if scan else None
    if scan is None or listing is None:
        return None
    table = bench.catalogue.database.table(scan.lister.table)
    found = []
    for output in scan.lister.facts:
        if output.meaning.table == table.name and output.meaning.kind in ("filter", "value") and output.meaning.column:
            values = [row[output.field] for row in rows_of(listing, [output])]
            if 1 < len(set(values)) and table.column(output.meaning.column).role == "category":
                found.append((output, [value for value in values if isinstance(value, str) and '"' not in value]))
    found = [(output, values) for output, values in found if values]
    if not found:
        return None
    output, values = rng.choice(found)
    value, words = rng.choice(values), plain(table.column(output.meaning.column or "").words)
    level, group, those = rng.choice((0, 1, 2)), listing.group.say(), f"whose {words} is {quote(value)}"
    text = {
        0: f"Go through all {group}. Report how many there are, and the number of them {those}.",
        1: f"How many {group} are there, and for how many of them is the {words} {quote(value)}?",
        2: f"I need the number of {group}, and among them the number of those {those}.",
    }[level]
    statement, bindings = listing.select([output])
    return Draft(
        pattern="tallied", text=text, level=level, functions=listing.functions,
        body=[
            *listing.code(), "number = 0", "for item in items:", f"    if item[{output.field!r}] == {value!r}:",
            "        number += 1", "return {'total': len(items), 'number': number}",
        ],
        logic=[
            f"rows = db.execute({statement!r}, {tuple(bindings)!r}).fetchall()",
            f"own = {{'total': len(rows), 'number': sum(row[{output.field!r}] == {value!r} for row in rows)}}",
        ],
        fields={
            "total": {"type": "integer", "description": f"the number of {group}"},
            "number": {"type": "integer", "description": f"the number of them {those}"},
        },
        branches=1, loops=1, aggregates=2,
    )  # fmt: skip


def rows_of(listing: Listing, fields: list[Output]) -> list[dict[str, Json]]:
    """The rows of a list as SQL finds them."""
    statement, values = listing.select(fields)
    return [dict(row) for row in listing.scan.catalogue.facts.db.execute(statement, values)]


def _name_output(listing: Listing) -> Output | None:
    """The item field by which a row is named in an answer: its label where labels are unique, else its key."""
    lister = listing.scan.lister
    catalogue = listing.scan.catalogue
    for kind in ("label", "key"):
        for output in lister.facts:
            if (
                output.meaning.kind == kind
                and output.meaning.table == lister.table
                and column_sql(catalogue, lister.table, output)
            ):
                values = [row[output.field] for row in rows_of(listing, [output])]
                if len(set(values)) == len(values) and all(
                    value is not None and len(str(value)) <= 60 for value in values
                ):
                    return output
    return None


def _name_schema(listing: Listing, output: Output, noun: str) -> dict[str, Json]:
    schema = schema_of(listing.scan.catalogue, listing.scan.lister.tool, output)
    return {**schema, "description": f"{schema['description']} (which {noun})"}
