"""Page through a list: find the extreme, count what passes a bound, read the details of each, or act on each."""

from __future__ import annotations

import random

from agent_world.environments.model import Json, Tool
from agent_world.tasks.catalogue import Output
from agent_world.tasks.phrases import Thing, capital, plain
from agent_world.tasks.programs.deeds import draw_deed
from agent_world.tasks.programs.draft import Bench, Draft
from agent_world.tasks.programs.parts import (
    column_sql,
    measures,
    reaching,
    superlative,
)
from agent_world.tasks.programs.scanning import Listing
from agent_world.tasks.saying import field_name, schema_of

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
    rows = _rows(listing, [name, output])
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
        field_name(noun): _name_schema(scan.lister.tool, name, noun),
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
            f"own = {{{field_name(noun)!r}: best[{name.field!r}], 'number': sum(row[{output.field!r}] >= {bound!r} for row in known)}}",
        ],
        fields=fields, branches=2, loops=1, aggregates=2,
    )  # fmt: skip


def looked_into(bench: Bench, rng: random.Random) -> Draft | None:
    """Read each row of a short list in full, and tell which has the extreme of a quantity that the list does not show."""
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
    rows = _rows(listing, [name, output])
    values = sorted(row[output.field] for row in rows if row[output.field] is not None)
    highest = rng.random() < 0.5
    if len(values) < 2 or values[-1 if highest else 0] == values[-2 if highest else 1]:
        return None
    most, level, noun = superlative(column, highest), rng.choice((0, 1, 1, 2)), table.singular
    nulls = f" Leave out {table.plural} without {plain(column.words)}." if column.nullable else ""
    text = {
        0: f"List the {listing.group.say()} and look into each. Report the {noun} with the {most}, and that {plain(column.words)}.{nulls}",
        1: f"Which of the {listing.group.say()} has the {most}, and what is it?{nulls}",
        2: f"I want to know the {most} among the {listing.group.say()} and which {noun} has it.{nulls}",
    }[level]
    if level == 0 and text.lower().startswith(scan.lister.tool.name.replace("_", " ")):
        text = text.replace("List the", "Take the", 1)
    quantity = field_name(plain(column.words))
    fields = {
        field_name(noun): _name_schema(scan.lister.tool, name, noun),
        quantity: {**schema_of(getter.tool, output), "description": f"the {plain(column.words)} of that {noun}"},
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


def for_each(bench: Bench, rng: random.Random) -> Draft | None:
    """Do something about every row of a short list."""
    scan = bench.scan(rng)
    way = bench.way(rng, scan.lister.table) if scan else None
    listing = scan.draw(rng, 2, 4) if scan and way else None
    deed = draw_deed(bench.catalogue, way, bench.names, rng) if way and listing else None
    if scan is None or listing is None or deed is None:
        return None
    table = bench.catalogue.database.table(scan.lister.table)
    key = next((o for o in scan.lister.facts if o.meaning.kind == "key" and o.meaning.table == table.name), None)
    if key is None or (listing.owner and any(access.table == listing.owner[1].table for _, access, _ in deed.holders)):
        return None
    group, level = listing.group.say(), rng.choice((0, 1, 2))
    opening, (them,) = deed.apart(Thing(noun=table.singular, phrase="each of them"))
    request = deed.say(Thing(noun=table.singular, phrase=f"each of the {group}"))
    text = {
        0: f"{opening}Find the {group}. Then {them}.",
        1: f"{capital(request)}.",
        2: f"Please {request}, without leaving any out.",
    }[level]
    asked, fields = (
        [f"how many {table.plural} there were"],
        {"number": {"type": "integer", "description": f"how many {table.plural} there were"}},
    )
    answer, own, outputs = ["'number': len(items)"], ["'number': len(rows)"], [key]
    quantities = measures(bench.catalogue, table.name, scan.lister.facts)
    if quantities:
        output, column = rng.choice(quantities)
        highest = rng.random() < 0.5
        if all(row[output.field] is not None for row in _rows(listing, [output])):
            most, pick = superlative(column, highest), "max" if highest else "min"
            asked.append(f"the {most} among them")
            answer.append(f"{field_name(most)!r}: {pick}(item[{output.field!r}] for item in items)")
            own.append(f"{field_name(most)!r}: {pick}(row[{output.field!r}] for row in rows)")
            fields[field_name(most)] = {**schema_of(scan.lister.tool, output), "description": f"the {most} among them"}
            outputs.append(output)
    text += f" {rng.choice(('Tell me', 'Report', 'Then report', 'At the end give me'))} {' and '.join(asked)}."
    statement, bindings = listing.select(outputs)
    return Draft(
        pattern="for_each", text=text, level=level, deed=deed, functions=[*listing.functions, *deed.functions],
        body=[
            *listing.code(), *deed.prepare(), "for item in items:",
            f"    made = {deed.code(f'item[{key.field!r}]')}",
            "    if 'error' in made:", "        raise ValueError(made['error']['message'])",
            f"return {{{', '.join(answer)}}}",
        ],
        logic=[
            f"rows = db.execute({statement!r}, {tuple(bindings)!r}).fetchall()",
            f"chosen = [row[{key.field!r}] for row in rows]",
            f"own = {{{', '.join(own)}}}",
        ],
        fields=fields, loops=1, aggregates=len(fields),
    )  # fmt: skip


def _rows(listing: Listing, fields: list[Output]) -> list[dict[str, Json]]:
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
                values = [row[output.field] for row in _rows(listing, [output])]
                if len(set(values)) == len(values) and all(
                    value is not None and len(str(value)) <= 60 for value in values
                ):
                    return output
    return None


def _name_schema(tool: Tool, output: Output, noun: str) -> dict[str, Json]:
    return {**schema_of(tool, output), "description": f"{schema_of(tool, output)['description']} (which {noun})"}
