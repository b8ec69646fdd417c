"""Tell which of several named rows reach a bound, or have a value in common."""

from __future__ import annotations

import random

from agent_world.environments.model import Json
from agent_world.tasks.phrases import capital
from agent_world.tasks.programs.draft import Bench, Draft
from agent_world.tasks.programs.parts import Access, reaching, superlative
from agent_world.tasks.programs.rows import draw_rows, draw_shared, fact_schema, name_schema, named, read_by_sql
from agent_world.tasks.saying import field_name

_MANY = (3, 3, 4, 4, 5, 6, 6)


def passing(bench: Bench, rng: random.Random) -> Draft | None:
    """Which of several rows reach a bound, and the extreme value among them."""
    drawn = draw_rows(bench, rng, rng.choice(_MANY))
    if drawn is None:
        return None
    access, members, output, column = drawn
    bound = sorted(member.row[column.name] for member in members)[rng.randrange(1, len(members))]
    level, those, top = rng.choice((0, 1, 1, 2)), reaching(column, bound), superlative(column, True)
    text = {
        0: f"Look up {named(access, members)}. Note those {those}. Report which they are and the {top} of all.",
        1: f"{capital(named(access, members))}: list those {those}, and give the {top} among all of them.",
        2: f"From {named(access, members)} I only want those {those}. Which are they, and what is the {top} of all "
        "that I named?",
    }[level]
    names, name = field_name(_plural(access)), field_name(top)
    return Draft(
        pattern="passing", text=text, level=level, functions=[access.code()],
        body=[
            "passed, top = [], None",
            f"for said in {[member.said for member in members]!r}:",
            f"    value = {access.name}(call, said)[{output.field!r}]",
            f"    if value >= {bound!r}:",
            "        passed.append(said)",
            "    if top is None or value > top:",
            "        top = value",
            f"return {{{names!r}: passed, {name!r}: top}}",
        ],
        logic=[
            *read_by_sql(access, members, [output]),
            f"own = {{{names!r}: [said for said, row in found if row[{output.field!r}] >= {bound!r}],",
            f"       {name!r}: max(row[{output.field!r}] for _, row in found)}}",
        ],
        fields={
            names: _names_schema(access, f"the {_plural(access)} {those}"),
            name: fact_schema(access, output, f"the {top} of all that were named"),
        },
        branches=2, loops=1, aggregates=1,
    )  # fmt: skip


def sharing(bench: Bench, rng: random.Random) -> Draft | None:
    """Which of several rows have a given value or mark, and how many they are."""
    drawn = draw_shared(bench, rng, rng.choice(_MANY))
    if drawn is None:
        return None
    access, members, trait, _ = drawn
    level, those, plural = rng.choice((0, 1, 1, 2)), trait.those, _plural(access)
    text = {
        0: f"Look up {named(access, members)}. Note those {those}. Report which they are and how many.",
        1: f"{capital(named(access, members))}: list those {those}, and say how many there are.",
        2: f"From {named(access, members)} I only want those {those}. Which are they, and how many?",
    }[level]
    names = field_name(plural)
    return Draft(
        pattern="sharing", text=text, level=level, functions=[access.code()],
        body=[
            "shared = []",
            f"for said in {[member.said for member in members]!r}:",
            f"    if {access.name}(call, said){trait.code}:",
            "        shared.append(said)",
            f"return {{{names!r}: shared, 'number': len(shared)}}",
        ],
        logic=[
            *read_by_sql(access, members, [trait.output]),
            f"shared = [said for said, row in found if row{trait.code}]",
            f"own = {{{names!r}: shared, 'number': len(shared)}}",
        ],
        fields={
            names: _names_schema(access, f"the {plural} {those}"),
            "number": {"type": "integer", "description": f"how many {plural} those are"},
        },
        branches=1, loops=1, aggregates=1,
    )  # fmt: skip


def _plural(access: Access) -> str:
    return access.catalogue.database.table(access.table).plural


def _names_schema(access: Access, words: str) -> dict[str, Json]:
    kind = name_schema(access, "")["type"]
    return {"type": "array", "items": {"type": kind}, "uniqueItems": True, "description": words}
