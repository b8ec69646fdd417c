"""Decide by a looked-up quantity, or by whether a first attempt is refused, and then do one thing or another."""

from __future__ import annotations

import random

from agent_world.environments.model import Column, Json
from agent_world.environments.session import open_session
from agent_world.tasks.phrases import capital, number, plain
from agent_world.tasks.programs.choose import described, draw_rows, name_schema
from agent_world.tasks.programs.deeds import Deed, draw_deed
from agent_world.tasks.programs.draft import Bench, Draft
from agent_world.tasks.programs.parts import Access, Member, draw_member, is_plural
from agent_world.tasks.saying import field_name

_ATTEMPTS = 6


def if_above(bench: Bench, rng: random.Random) -> Draft | None:
    """Do something about one row if its quantity is above a bound, about another row otherwise."""
    way = bench.way(rng)
    access = bench.access(rng, way.table) if way else None
    deed = draw_deed(bench.catalogue, way, bench.names, rng) if way and access else None
    drawn = draw_rows(bench, rng, 2, access) if deed else None
    if deed is None or drawn is None:
        return None
    access, (first, second), output, column = drawn
    value = first.row[column.name]
    bound = second.row[column.name] if rng.random() < 0.5 else _near(value, column, rng)
    if bound == value:
        return None
    level, words = rng.choice((0, 1, 2)), plain(column.words)
    above = f"more than {number(bound)}" if column.role != "year" else f"after {number(bound)}"
    verb, pronoun, those = ("are", "they are", "those") if is_plural(column) else ("is", "it is", "that")
    opening, (one, other) = deed.apart(first.thing, second.thing)
    whose = f"the {words} of {first.thing.say(typed=True)}"
    more = deed.outcome
    then = f" and the {more.words}" if more else ""
    text = {
        0: f"{opening}Look up {whose}. If {pronoun} {above}, {one}; otherwise {other}. Report {those} {words}{then}.",
        1: f"{opening}If {whose} {verb} {above}, {one}. If not, {other}. Tell me the {words} of {first.thing.say()}{then}.",
        2: f"{opening}I would rather {other}, unless {whose} {verb} {above}: then {one}. Give me {those} {words}{then}.",
    }[level]
    quantity = field_name(words)
    fields = {quantity: described(access, output, whose), **({more.field: more.schema} if more else {})}
    answer = [f"{quantity!r}: first[{output.field!r}]", *([f"{more.field!r}: {more.code}"] if more else [])]
    return Draft(
        pattern="if_above", text=text, level=level, deed=deed, functions=[access.code(), *deed.functions],
        body=[
            f"first = {access.name}(call, {first.said!r})",
            f"if first[{output.field!r}] > {bound!r}:",
            "    subject = first",
            "else:",
            f"    subject = {access.name}(call, {second.said!r})",
            *deed.prepare(),
            f"made = {deed.code(f'subject[{access.key!r}]')}",
            f"return {{{', '.join(answer)}}}",
        ],
        logic=[
            f"statement = {access.sql([output])!r}",
            f"first, second = (db.execute(statement, (said,)).fetchone() for said in ({first.said!r}, {second.said!r}))",
            f"own = {{{quantity!r}: first[{output.field!r}]}}",
            f"chosen = [(first if first[{output.field!r}] > {bound!r} else second)[{access.key!r}]]",
        ],
        fields=fields, branches=1,
    )  # fmt: skip


def if_refused(bench: Bench, rng: random.Random) -> Draft | None:
    """Try something about one row; where a rule refuses it, do it about another."""
    way = bench.way(rng)
    readable = [item for item in bench.names if way and item.table == way.table]
    deed = draw_deed(bench.catalogue, way, bench.names, rng) if way and readable else None
    if deed is None:
        return None
    access = rng.choice(readable)
    found = _refused_and_not(bench, deed, access, rng)
    if found is None:
        return None
    refused, allowed = found
    noun, level = access.catalogue.database.table(access.table).singular, rng.choice((0, 1, 2))
    opening, (one, other) = deed.apart(refused.thing, allowed.thing)
    more = deed.outcome
    then = f", and the {more.words}" if more else ""
    text = {
        0: f"{opening}Try to {one}. If that is refused, {other} instead. Report for which {noun} it worked{then}.",
        1: f"{opening}{capital(one)}, or, where that is not possible, {other}. Tell me which {noun} it was{then}.",
        2: f"{opening}My first choice is to {one}; my second choice is to {other}. Tell me which {noun} it was{then}.",
    }[level]
    choices: list[Json] = [refused.said, allowed.said]
    fields = {field_name(noun): name_schema(access, noun), **({more.field: more.schema} if more else {})}
    answer = [f"{field_name(noun)!r}: said", *([f"{more.field!r}: {more.code}"] if more else [])]
    return Draft(
        pattern="if_refused", text=text, level=level, functions=[access.code(), *deed.functions],
        body=[
            *deed.prepare(),
            f"for said in {choices!r}:",
            f"    made = {deed.code(f'{access.name}(call, said)[{access.key!r}]')}",
            "    if 'error' not in made:",
            f"        return {{{', '.join(answer)}}}",
        ],
        logic=[],
        fields=fields, branches=1, loops=1,
    )  # fmt: skip


def _near(value: Json, column: Column, rng: random.Random) -> Json:
    """A round bound a little above or below `value`."""
    share = rng.choice((0.1, 0.2, 0.5))
    step = rng.randint(1, 15) if column.role == "year" else max(1, round(abs(value) * share))
    return round(value) + rng.choice((-1, 1)) * step


def _refused_and_not(bench: Bench, deed: Deed, access: Access, rng: random.Random) -> tuple[Member, Member] | None:
    """A row for which a rule refuses the deed, and one for which none does."""
    verdicts: dict[bool, Member] = {}
    for attempt in range(_ATTEMPTS):
        member = draw_member(access, rng, list(verdicts.values()))
        if member is None:
            return None
        with open_session(bench.environment, attempt, bench.sandbox) as session:
            done = deed.attempt(session, member.row)
        if done is not None:
            verdicts.setdefault(done, member)
        if len(verdicts) == 2:
            return verdicts[False], verdicts[True]
    return None
