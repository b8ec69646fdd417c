"""Decide by a looked-up quantity, or by whether a first attempt is refused, and then do one thing or another."""

from __future__ import annotations

import random
from dataclasses import dataclass

from agent_world.environments.model import Column, Json
from agent_world.environments.session import open_session
from agent_world.tasks.catalogue import Output
from agent_world.tasks.phrases import capital, listed, number, plain, quote
from agent_world.tasks.programs.deeds import Deed, Way, draw_deed
from agent_world.tasks.programs.draft import Bench, Draft
from agent_world.tasks.programs.parts import Access, Member, draw_member, is_many
from agent_world.tasks.programs.rows import draw_rows, draw_shared, fact_schema, name_schema, read_by_sql
from agent_world.tasks.saying import field_name

_ATTEMPTS = 6


def if_above(bench: Bench, rng: random.Random) -> Draft | None:
    """Do something about one row if its quantity is above a bound, about another row otherwise."""
    way = bench.way(rng)
    access = bench.access(rng, way.table) if way else None
    drawn = draw_rows(bench, rng, 2, access) if access else None
    if way is None or drawn is None:
        return None
    access, (first, second), output, column = drawn
    value, words = first.row[column.name], plain(column.words)
    bound = second.row[column.name] if rng.random() < 0.5 else _near(value, column, rng)
    if bound == value:
        return None
    above = f"after {number(bound)}" if column.role == "year" else f"more than {number(bound)}"
    verb, pronoun, those = ("are", "they are", "those") if is_many(column) else ("is", "it is", "that")
    whose = f"the {words} of {first.thing.say(typed=True)}"
    test = _Test(
        pattern="if_above", clause=f"{whose} {verb} {above}", look=whose, short=f"{pronoun} {above}",
        report=f"{those} {words}", field=field_name(words), output=output, schema=fact_schema(access, output, whose),
        code=f"[{output.field!r}] > {bound!r}", holds=value > bound,
    )  # fmt: skip
    return _decided(bench, rng, way, (access, first, second), test)


def if_is(bench: Bench, rng: random.Random) -> Draft | None:
    """Do something about one row if it has a certain value or mark, about another row otherwise."""
    way = bench.way(rng)
    access = bench.access(rng, way.table) if way else None
    drawn = draw_shared(bench, rng, 2, access) if access else None
    if way is None or drawn is None:
        return None
    access, (first, second), trait, have = drawn
    who = first.thing.say(typed=True)
    is_mark = isinstance(trait.value, bool)
    whose = who if is_mark else f"the {trait.words} of {who}"
    test = _Test(
        pattern="if_is", clause=trait.of(who), look=whose, report="" if is_mark else f"that {trait.words}",
        short=f"it is {trait.those}" if is_mark else f"it is {quote(trait.value)}",
        field="" if is_mark else field_name(trait.words), output=trait.output,
        schema=fact_schema(access, trait.output, whose), code=trait.code, holds=have[0],
    )  # fmt: skip
    return _decided(bench, rng, way, (access, first, second), test)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Test:
    """A condition on a fact of the first row, in words and in code, and whether it holds.

    `clause` says it in full; `look` and `short` say it in two steps. `report` and `field` name the fact where it can be
    asked for.
    """

    pattern: str
    clause: str
    look: str
    short: str
    report: str
    field: str
    output: Output
    schema: dict[str, Json]
    code: str
    holds: bool


def _decided(
    bench: Bench, rng: random.Random, way: Way, rows: tuple[Access, Member, Member], test: _Test
) -> Draft | None:
    access, first, second = rows
    deed = draw_deed(bench.catalogue, way, bench.names, rng, about=(first if test.holds else second).row)
    if deed is None:
        return None
    level, noun = rng.choice((0, 1, 2)), access.catalogue.database.table(access.table).singular
    opening, (one, other) = deed.apart(first.thing, second.thing)
    more, name = deed.outcome, field_name(noun)
    asked, answer, own, fields = [], [], [], {}
    if test.field:
        asked.append(test.report)
        answer.append(f"{test.field!r}: first[{test.output.field!r}]")
        own.append(answer[0])
        fields[test.field] = test.schema
    if more is None or not test.field:
        asked.append(f"which {noun} it was")
        answer.append(f"{name!r}: said")
        own.append(f"{name!r}: {first.said!r} if first{test.code} else {second.said!r}")
        fields[name] = name_schema(access, noun)
    if more is not None:
        asked.append(f"the {more.words}")
        answer.append(f"{more.field!r}: {more.code}")
        fields[more.field] = more.schema
    tell = listed(asked)
    text = {
        0: f"{opening}Look up {test.look}. If {test.short}, {one}; otherwise {other}. Report {tell}.",
        1: f"{opening}If {test.clause}, {one}. If not, {other}. Tell me {tell}.",
        2: f"{opening}I would rather {other}, unless {test.clause}: then {one}. Give me {tell}.",
    }[level]
    return Draft(
        pattern=test.pattern, text=text, level=level, deed=deed, functions=[access.code(), *deed.functions],
        body=[
            f"said = {first.said!r}",
            f"subject = first = {access.name}(call, said)",
            f"if not first{test.code}:",
            f"    said = {second.said!r}",
            f"    subject = {access.name}(call, said)",
            *deed.prepare(),
            f"made = {deed.code(f'subject[{access.key!r}]')}",
            f"return {{{', '.join(answer)}}}",
        ],
        logic=[
            *read_by_sql(access, [first, second], [test.output]),
            "first, second = (row for _, row in found)",
            f"own = {{{', '.join(own)}}}",
            f"chosen = [(first if first{test.code} else second)[{access.key!r}]]",
        ],
        fields=fields, branches=1,
    )  # fmt: skip


def if_refused(bench: Bench, rng: random.Random) -> Draft | None:
    """Try something about one row; where a rule refuses it, do it about another."""
    way = bench.way(rng)
    readable = [item for item in bench.names if way and item.table == way.table]
    if way is None or not readable:
        return None
    access = rng.choice(readable)
    about = draw_member(access, rng)
    deed = draw_deed(bench.catalogue, way, bench.names, rng, about=about.row) if about else None
    found = _refused_and_not(bench, deed, access, about, rng) if deed and about else None
    if deed is None or found is None:
        return None
    refused, allowed = found
    noun, level = access.catalogue.database.table(access.table).singular, rng.choice((0, 1, 2))
    opening, (one, other) = deed.apart(refused.thing, allowed.thing)
    more = deed.outcome
    then = f", and the {more.words}" if more else ""
    text = {
        0: f"{opening}Try to {one}. If that is refused, {other} instead. Report for which {noun} it worked{then}.",
        1: f"{opening}{capital(one)}, or, where that is not possible, {other}. Tell me which {noun} it was{then}.",
        2: f"{opening}My first choice is to {one}; otherwise {other}. Tell me which {noun} it was{then}.",
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


def _refused_and_not(
    bench: Bench, deed: Deed, access: Access, about: Member, rng: random.Random
) -> tuple[Member, Member] | None:
    """A row for which a rule refuses the deed, and one for which none does; `about` is the first to be tried."""
    verdicts: dict[bool, Member] = {}
    for attempt in range(_ATTEMPTS):
        member = about if attempt == 0 else draw_member(access, rng, list(verdicts.values()))
        if member is None:
            return None
        with open_session(bench.environment, attempt, bench.sandbox) as session:
            done = deed.attempt(session, member.row)
        if done is not None:
            verdicts.setdefault(done, member)
        if len(verdicts) == 2:
            return verdicts[False], verdicts[True]
    return None
