"""Compare a few named rows and tell which stands out, or act on it."""

from __future__ import annotations

import random
from collections.abc import Sequence

from agent_world.environments.model import Column
from agent_world.tasks.catalogue import Output
from agent_world.tasks.phrases import Thing, capital, plain
from agent_world.tasks.programs.deeds import draw_deed
from agent_world.tasks.programs.draft import Bench, Draft
from agent_world.tasks.programs.parts import Access, Member, leads
from agent_world.tasks.programs.rows import draw_rows, fact_schema, name_schema, named, read_by_sql
from agent_world.tasks.saying import fact_words, field_name

_FEW = (2, 2, 2, 3, 3, 4)


def best_of(bench: Bench, rng: random.Random) -> Draft | None:
    """Which of a few rows has the highest or lowest quantity, and one fact about it."""
    drawn = draw_rows(bench, rng, rng.choice(_FEW))
    if drawn is None:
        return None
    access, members, output, column = drawn
    highest = rng.random() < 0.5
    more = _another_fact(access, _winner(members, column, highest), output, rng)
    noun, level = access.catalogue.database.table(access.table).singular, rng.choice((0, 1, 1, 2))
    which = leads(column, highest, len(members))
    words = fact_words(access.catalogue, access.getter.tool, more, access.table) if access.getter else more.field
    text = {
        0: f"Look up {named(access, members)}. Pick the one with {which}. Report the {noun} and its {words}.",
        1: f"Which of {named(access, members)} has {which}? Give the {noun} and its {words}.",
        2: f"I am choosing between {named(access, members)} and want the one with {which}. Tell me the {noun} and "
        f"its {words}.",
    }[level]
    name, fact = field_name(noun), field_name(words)
    fact = f"its_{fact}" if fact == name else fact
    answer = f"{{{name!r}: best[0], {fact!r}: best[1][{more.field!r}]}}"
    return Draft(
        pattern="best_of", text=text, level=level, functions=[access.code()],
        body=[*_best_by_code(access, members, output, highest), f"return {answer}"],
        logic=[*_best_by_sql(access, members, [output, more], highest), f"own = {answer}"],
        fields={name: name_schema(access, noun), fact: fact_schema(access, more, f"the {words} of that {noun}")},
        branches=1, loops=1, aggregates=1,
    )  # fmt: skip


def act_on_best(bench: Bench, rng: random.Random) -> Draft | None:
    """Do something about whichever of a few rows has the highest or lowest quantity."""
    way = bench.way(rng)
    access = bench.access(rng, way.table) if way else None
    drawn = draw_rows(bench, rng, rng.choice((2, 2, 3)), access) if access else None
    if way is None or drawn is None:
        return None
    access, members, output, column = drawn
    highest = rng.random() < 0.5
    deed = draw_deed(bench.catalogue, way, bench.names, rng, about=_winner(members, column, highest).row)
    if deed is None:
        return None
    noun, level = access.catalogue.database.table(access.table).singular, rng.choice((0, 1, 1, 2))
    which = leads(column, highest, len(members))
    one = Thing(noun=noun, phrase=f"the one with {which}" if level != 2 else f"the {noun} with {which}")
    opening, (request,) = deed.apart(one)
    more = deed.outcome
    words = f"the {more.words}" if more else f"its {plain(column.words)}"
    text = {
        0: f"Look up {named(access, members)}. {opening}{capital(request)}. Report which {noun} that is, and {words}.",
        1: f"{opening}Compare {named(access, members)} and {request}. Tell me which {noun} it was and {words}.",
        2: f"{opening}Between {named(access, members)}, please {request}. Name the {noun} and give me {words}.",
    }[level]
    name, fact = field_name(noun), more.field if more else field_name(plain(column.words))
    value = more.code if more else f"best[1][{output.field!r}]"
    own = f"{{{name!r}: best[0]}}" if more else f"{{{name!r}: best[0], {fact!r}: {value}}}"
    schema = more.schema if more else fact_schema(access, output, f"the {plain(column.words)} of that {noun}")
    return Draft(
        pattern="act_on_best", text=text, level=level, deed=deed, functions=[access.code(), *deed.functions],
        body=[
            *_best_by_code(access, members, output, highest), *deed.prepare(),
            f"made = {deed.code(f'best[1][{access.key!r}]')}",
            f"return {{{name!r}: best[0], {fact!r}: {value}}}",
        ],
        logic=[
            *_best_by_sql(access, members, [output], highest), f"own = {own}", f"chosen = [best[1][{access.key!r}]]",
        ],
        fields={name: name_schema(access, noun), fact: schema}, branches=1, loops=1, aggregates=1,
    )  # fmt: skip


def _winner(members: Sequence[Member], column: Column, highest: bool) -> Member:
    return (max if highest else min)(members, key=lambda member: member.row[column.name])


def _another_fact(access: Access, winner: Member, but: Output, rng: random.Random) -> Output:
    """A fact of the winner that is set and not the quantity compared; now and then the quantity itself."""
    label = access.catalogue.database.table(access.table).label
    rest = [
        item
        for item in access.facts
        if item.field != but.field
        and item.meaning.kind != "key"
        and (item.meaning.table != access.table or (item.meaning.column != label and _is_told(winner, item)))
    ]
    return rng.choice(rest) if rest and rng.random() < 0.7 else but


def _is_told(member: Member, item: Output) -> bool:
    value = member.row.get(item.meaning.column or "")
    return value not in (None, "") and not (isinstance(value, str) and (len(value) > 60 or set('"\\\n') & set(value)))


def _best_by_code(access: Access, members: Sequence[Member], output: Output, highest: bool) -> list[str]:
    return [
        "best = None",
        f"for said in {[member.said for member in members]!r}:",
        f"    found = {access.name}(call, said)",
        f"    if best is None or found[{output.field!r}] {'>' if highest else '<'} best[1][{output.field!r}]:",
        "        best = (said, found)",
    ]


def _best_by_sql(access: Access, members: Sequence[Member], fields: Sequence[Output], highest: bool) -> list[str]:
    return [
        *read_by_sql(access, members, fields),
        f"best = {'max' if highest else 'min'}(found, key=lambda pair: pair[1][{fields[0].field!r}])",
    ]
