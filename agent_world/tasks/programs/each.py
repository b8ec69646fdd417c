"""Do something about every row of a short list."""

from __future__ import annotations

import random

from agent_world.environments.model import Json
from agent_world.tasks.phrases import Thing, capital
from agent_world.tasks.programs.deeds import draw_deed
from agent_world.tasks.programs.draft import Bench, Draft
from agent_world.tasks.programs.parts import measures, superlative
from agent_world.tasks.programs.scan import rows_of
from agent_world.tasks.programs.scanning import Listing
from agent_world.tasks.saying import field_name, schema_of, with_words


def for_each(bench: Bench, rng: random.Random) -> Draft | None:
    """Do something about every row of a short list."""
    scan = bench.scan(rng)
    way = bench.way(rng, scan.lister.table) if scan else None
    listing = scan.draw(rng, 2, 4) if scan and way else None
    row = _first_row(listing) if listing else None
    deed = draw_deed(bench.catalogue, way, bench.names, rng, about=row) if way and row else None
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
        if all(row[output.field] is not None for row in rows_of(listing, [output])):
            most, pick = superlative(column, highest), "max" if highest else "min"
            asked.append(f"the {most} among them")
            answer.append(f"{field_name(most)!r}: {pick}(item[{output.field!r}] for item in items)")
            own.append(f"{field_name(most)!r}: {pick}(row[{output.field!r}] for row in rows)")
            fields[field_name(most)] = with_words(
                schema_of(scan.catalogue, scan.lister.tool, output), f"the {most} among them"
            )
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


def _first_row(listing: Listing) -> dict[str, Json] | None:
    """The first row of a list, whole."""
    where, values = listing.where()
    statement = f'SELECT t.* FROM "{listing.scan.lister.table}" t WHERE {where}'
    row = listing.scan.catalogue.facts.db.execute(statement, values).fetchone()
    return None if row is None else dict(row)
