"""Compare several named rows: tell which stands out, act on it, or tell which pass a bound."""

from __future__ import annotations

import random
from collections.abc import Sequence

from agent_world.environments.model import Column, Json
from agent_world.tasks.catalogue import Output
from agent_world.tasks.phrases import Thing, capital, listed, plain
from agent_world.tasks.programs.deeds import draw_deed
from agent_world.tasks.programs.draft import Bench, Draft
from agent_world.tasks.programs.parts import (
    Access,
    Member,
    draw_member,
    leads,
    measures,
    reaching,
    superlative,
)
from agent_world.tasks.saying import fact_words, field_name, schema_of

_FEW, _MANY = (2, 2, 2, 3, 3, 4), (3, 4, 4, 5, 6)


def best_of(bench: Bench, rng: random.Random) -> Draft | None:
    """Which of a few rows has the highest or lowest quantity, and one more fact about it."""
    drawn = draw_rows(bench, rng, rng.choice(_FEW))
    if drawn is None:
        return None
    access, members, output, column = drawn
    highest = rng.random() < 0.5
    winner = _winner(members, column, highest)
    more = _another_fact(access, winner, output, rng)
    if winner is None or more is None:
        return None
    noun, level = access.catalogue.database.table(access.table).singular, rng.choice((0, 1, 1, 2))
    which = leads(column, highest, len(members))
    words = (
        [fact_words(access.catalogue, access.getter.tool, item, access.table) for item in more] if access.getter else []
    )
    fields = {field_name(noun): name_schema(access, noun)}
    fields |= {
        name: described(access, item, f"the {word} of that {noun}") for name, item, word in _fields(more, words, fields)
    }
    asked = listed(f"its {word}" if i else f"the {noun} and its {word}" for i, word in enumerate(words))
    text = {
        0: f"Look up {named(access, members)}. Pick the one with {which}. Report {asked}.",
        1: f"Which of {named(access, members)} has {which}? Give {asked}.",
        2: f"I am choosing between {named(access, members)} and want the one with {which}. Tell me {asked}.",
    }[level]
    answer = [f"{field_name(noun)!r}: best[0]"]
    answer += [f"{name!r}: best[1][{item.field!r}]" for name, item, _ in _fields(more, words, [field_name(noun)])]
    own = [f"{field_name(noun)!r}: best[0]"]
    own += [f"{name!r}: best[1][{item.field!r}]" for name, item, _ in _fields(more, words, [field_name(noun)])]
    return Draft(
        pattern="best_of", text=text, level=level, functions=[access.code()],
        body=[*_loop(access, members, output, highest), f"return {{{', '.join(answer)}}}"],
        logic=[*_own_best(access, members, output, more, highest), f"own = {{{', '.join(own)}}}"],
        fields=fields, branches=1, loops=1, aggregates=1,
    )  # fmt: skip


def act_on_best(bench: Bench, rng: random.Random) -> Draft | None:
    """Do something about whichever of a few rows has the highest or lowest quantity."""
    way = bench.way(rng)
    access = bench.access(rng, way.table) if way else None
    deed = draw_deed(bench.catalogue, way, bench.names, rng) if way and access else None
    drawn = draw_rows(bench, rng, rng.choice((2, 2, 3)), access) if deed else None
    if deed is None or drawn is None:
        return None
    access, members, output, column = drawn
    highest = rng.random() < 0.5
    noun, level = access.catalogue.database.table(access.table).singular, rng.choice((0, 1, 1, 2))
    which = leads(column, highest, len(members))
    one = Thing(noun=noun, phrase=f"the one with {which}" if level != 2 else f"the {noun} with {which}")
    opening, (request,) = deed.apart(one)
    more = deed.outcome
    quantity = field_name(plain(column.words))
    words = f"the {more.words}" if more else f"its {plain(column.words)}"
    text = {
        0: f"Look up {named(access, members)}. {opening}{capital(request)}. Report which {noun} that is, and {words}.",
        1: f"{opening}Compare {named(access, members)} and {request}. Tell me which {noun} it was and {words}.",
        2: f"{opening}Between {named(access, members)}, please {request}. Name the {noun} and give me {words}.",
    }[level]
    fields = {field_name(noun): name_schema(access, noun)}
    fields |= {more.field: more.schema} if more else {quantity: described(access, output, f"{words} of that {noun}")}
    own = [f"{field_name(noun)!r}: best[0]", *([] if more else [f"{quantity!r}: best[1][{output.field!r}]"])]
    answer = [*own, *([f"{more.field!r}: {more.code}"] if more else [])]
    return Draft(
        pattern="act_on_best", text=text, level=level, deed=deed, functions=[access.code(), *deed.functions],
        body=[
            *_loop(access, members, output, highest), *deed.prepare(),
            f"made = {deed.code(f'best[1][{access.key!r}]')}",
            f"return {{{', '.join(answer)}}}",
        ],
        logic=[
            *_own_best(access, members, output, [], highest), f"own = {{{', '.join(own)}}}",
            f"chosen = [best[1][{access.key!r}]]",
        ],
        fields=fields, branches=1, loops=1, aggregates=1,
    )  # fmt: skip


def passing(bench: Bench, rng: random.Random) -> Draft | None:
    """Which of several rows reach a bound, and the extreme value among them."""
    drawn = draw_rows(bench, rng, rng.choice(_MANY))
    if drawn is None:
        return None
    access, members, output, column = drawn
    values = sorted(member.row[column.name] for member in members)
    cut = rng.randrange(1, len(values))
    bound = values[cut]
    passed = [member for member in members if member.row[column.name] >= bound]
    if len(passed) == len(members):
        return None
    noun, plural = (getattr(access.catalogue.database.table(access.table), form) for form in ("singular", "plural"))
    level = rng.choice((0, 1, 1, 2))
    said = reaching(column, bound)
    top = superlative(column, True)
    text = {
        0: f"Look up {named(access, members)}. Note those {said}. Report which they are and the {top} of all.",
        1: f"{capital(named(access, members))}: list those {said}, and give the {top} among all of them.",
        2: f"From {named(access, members)} I only want those {said}. Which are they, and what is the {top} of all I named?",
    }[level]
    names, name = field_name(plural), field_name(top)
    item = {key: value for key, value in name_schema(access, noun).items() if key != "description"}
    fields = {
        names: {
            "type": "array",
            "items": item,
            "uniqueItems": True,
            "description": f"the {plural} that reach the bound",
        },
        name: described(access, output, f"the {top} of all that were named"),
    }
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
            *_own_rows(access, members, [output]),
            f"own = {{{names!r}: [said for said, row in found if row[{output.field!r}] >= {bound!r}],",
            f"       {name!r}: max(row[{output.field!r}] for _, row in found)}}",
        ],
        fields=fields, branches=2, loops=1, aggregates=1,
    )  # fmt: skip


def named(access: Access, members: Sequence[Member]) -> str:
    """Several rows as a person lists them: `the albums "A" and "B"`, `flights 12, 40 and 7`."""
    plural = access.catalogue.database.table(access.table).plural
    if access.finder is None:
        return f"{plural} {listed(str(member.said) for member in members)}"
    return f"the {plural} {listed(f'{chr(34)}{member.said}{chr(34)}' for member in members)}"


def draw_rows(
    bench: Bench, rng: random.Random, count: int, access: Access | None = None
) -> tuple[Access, list[Member], Output, Column] | None:
    """Rows of one table and a quantity by which no two of them tie at either end."""
    access = access or bench.access(rng)
    if access is None:
        return None
    quantities = measures(bench.catalogue, access.table, access.facts)
    if not quantities:
        return None
    output, column = rng.choice(quantities)
    members: list[Member] = []
    for _ in range(4 * count):
        member = draw_member(access, rng, members)
        value = member.row[column.name] if member else None
        if member is not None and value is not None and all(value != other.row[column.name] for other in members):
            members.append(member)
        if len(members) == count:
            return access, members, output, column
    return None


def _winner(members: Sequence[Member], column: Column, highest: bool) -> Member | None:
    return (max if highest else min)(members, key=lambda member: member.row[column.name])


def _another_fact(access: Access, winner: Member | None, but: Output, rng: random.Random) -> list[Output] | None:
    """One fact of the winner that is set and not the quantity compared; else the quantity itself."""
    if winner is None:
        return None
    label = access.catalogue.database.table(access.table).label
    rest = [
        item for item in access.facts
        if item.field != but.field and item.meaning.kind != "key" and item.meaning.column != label
        and (item.meaning.table != access.table or _plain(winner.row.get(item.meaning.column or "")))
    ]  # fmt: skip
    return [rng.choice(rest)] if rest and rng.random() < 0.7 else [but]


def _plain(value: Json) -> bool:
    return value not in (None, "") and not (
        isinstance(value, str) and (len(value) > 60 or '"' in value or "\n" in value)
    )


def _loop(access: Access, members: Sequence[Member], output: Output, highest: bool) -> list[str]:
    return [
        "best = None",
        f"for said in {[member.said for member in members]!r}:",
        f"    found = {access.name}(call, said)",
        f"    if best is None or found[{output.field!r}] {'>' if highest else '<'} best[1][{output.field!r}]:",
        "        best = (said, found)",
    ]


def _own_rows(access: Access, members: Sequence[Member], fields: Sequence[Output]) -> list[str]:
    distinct = list({item.field: item for item in fields}.values())
    return [
        f"statement = {access.sql(distinct)!r}",
        f"found = [(said, db.execute(statement, (said,)).fetchone()) for said in {[member.said for member in members]!r}]",
    ]


def _own_best(
    access: Access, members: Sequence[Member], output: Output, more: Sequence[Output], highest: bool
) -> list[str]:
    return [
        *_own_rows(access, members, [output, *more]),
        f"best = {'max' if highest else 'min'}(found, key=lambda pair: pair[1][{output.field!r}])",
    ]


def name_schema(access: Access, noun: str) -> dict[str, Json]:
    """The schema of an answer field that names a row as the instruction does."""
    table = access.catalogue.database.table(access.table)
    if access.finder is not None and table.label is not None:
        return {"type": "string", "description": f"{table.column(table.label).words} of the {noun}"}
    kind = {"text": "string", "integer": "integer", "real": "number"}[table.column(table.primary_key[0]).type]
    return {"type": kind, "description": f"which {noun} it is, as it was named"}


def described(access: Access, output: Output, words: str) -> dict[str, Json]:
    """The schema of an answer field that holds a fact which `access` reads."""
    assert access.getter is not None
    return {**schema_of(access.getter.tool, output), "description": words}


def _fields(items: Sequence[Output], words: Sequence[str], taken) -> list[tuple[str, Output, str]]:
    found = []
    for item, word in zip(items, words, strict=True):
        name = field_name(word)
        found.append((f"its_{name}" if name in taken else name, item, word))
    return found
