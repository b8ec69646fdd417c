"""Gets a wished value: by the likeliest reading of the tools, or from what was seen and done before."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

from agent_world.environments.model import Json
from agent_world.rollouts.model import Observation, Step
from agent_world.solver.answers import text_of
from agent_world.solver.fields import Field, merge
from agent_world.solver.goals import Reading, Wish, readings, suits
from agent_world.solver.model import Clause, Mention
from agent_world.solver.run import SetbackError, value_at
from agent_world.solver.situation import Situation

Thinking = Generator[Step, Observation, Json]

_REMEMBERED = 40  # facts looked through for a value that was seen before
TRIES = 6
"""How often another way is tried when one leads nowhere."""


def first_value(
    situation: Situation, wish: Wish, clause: Clause | None = None, *, seen_before: bool = False
) -> Thinking:
    """The value of the likeliest reading that leads to one.

    With `seen_before` what orders gave and what was seen on the way counts too; `clause` is where the wish comes from.
    """
    zero: Json = None
    dead: list[Reading] = []
    for _ in range(TRIES):
        found = [one for one in readings(wish, situation.planner) if one.query not in [other.query for other in dead]]
        seen = _seen(situation, wish, clause) if seen_before else []
        if seen and (not found or seen[0][0] >= found[0].score):
            return seen[0][1]
        if not found:
            return zero
        reading = found[0]
        try:
            value = yield from _take(situation, reading, wish)
        except SetbackError as setback:
            fresh = set(setback.blame) - situation.places.banned
            if fresh:
                situation.places.ban(fresh)
            else:
                dead.append(reading)
            continue
        if value not in (None, [], 0) or (value == 0 and not reading.query.blame):
            return value
        zero = value if zero is None else zero
        doubtful = [entry for entry in reading.query.blame if entry not in situation.places.banned]
        if not doubtful or reading.mode != "count":
            return value
        # Nothing at all may be true, or a name went to the wrong place: look once at the next way.
        situation.places.ban(set(doubtful))
        others = readings(wish, situation.planner)
        situation.places.unban(set(doubtful))
        if not others or others[0].score < reading.score - 0.6 or others[0].query == reading.query:
            return value
        try:
            other = yield from _take(situation, others[0], wish)
        except SetbackError:
            return value
        return other or value
    return zero


def _take(situation: Situation, reading: Reading, wish: Wish) -> Thinking:
    """Carries a reading out."""
    query, place = reading.query, reading.place
    if reading.mode == "count" and not query.keeps and query.order is None and not query.wanted:
        rows = yield from situation.runner.rows(query, whole=True)
        totals = [row.get("total") for row in rows]
        if rows and all(isinstance(total, int) for total in totals):
            return sum(totals)
    only = 1 if reading.mode == "value" else None
    rows = yield from situation.runner.rows(query, only=only, whole=reading.whole)
    if reading.mode == "count":
        return len(rows)
    if not rows and query.blame:
        raise SetbackError(query.blame, "nothing_found", "")
    if place is not None and place.detail is not None:
        rows = yield from situation.runner.detailed(rows[:1] if reading.mode == "value" else rows, place.detail)
    if len(rows) == 1 or (rows and reading.mode == "value"):
        situation.runner.note(query.tool, rows[0], query.marks)
    values = [value for value in (value_at(row, place) for row in rows) if value is not None]
    if reading.mode == "list":
        return list(dict.fromkeys(value if not isinstance(value, list) else text_of(value) for value in values))
    if not values:
        return None
    if reading.mode == "value":
        return values[0]
    numbers = [value for value in values if isinstance(value, int | float)]
    return sum(numbers) if reading.mode == "sum" else sum(numbers) / len(numbers) if numbers else None


def _seen(situation: Situation, wish: Wish, clause: Clause | None) -> list[tuple[float, Json]]:
    """Values of deeds and of rows that orders were about, with scores like those of readings, best first."""
    if wish.kind == "array":
        return []
    names = [one for one in wish.constraints if isinstance(one, Mention) and one.kind in ("name", "value")]
    found = [*_of_deeds(situation, wish, names), *_number_done(situation, wish, clause)]
    if not names:
        found += _of_rows(situation, wish)
    return [(score, value) for score, _, value in sorted(found, key=lambda entry: (-entry[0], entry[1]))]


def _of_deeds(situation: Situation, wish: Wish, names: Sequence[Mention]) -> Iterator[tuple[float, int, Json]]:
    """(score, age, value) of what deeds were given and gave; the last deed counts most."""
    for age, deed in enumerate(reversed(situation.done)):
        spoken = {one.text for one in deed.constraints if isinstance(one, Mention)}
        base = 0.5 - 0.25 * age + sum(0.5 if one.text in spoken else -1.0 for one in names)
        for name, value in {**deed.arguments, **(deed.result or {})}.items():
            one = deed.tool.result_field(name) or deed.tool.parameter(name)
            if isinstance(one, Field) and one.key and name not in deed.arguments:
                continue  # an id that was made now is nothing that anybody asks for
            score = suits(wish, one, deed.tool.nouns, situation.box) if one is not None else None
            if score is not None and _fits(wish, value):
                yield 2 * score + base + situation.chance("deed", deed.tool.name, name), age, value


def _number_done(situation: Situation, wish: Wish, clause: Clause | None) -> Iterator[tuple[float, int, Json]]:
    """How many calls an order took that was about each of several things."""
    batch = situation.acted.get(clause.position, []) if clause else []
    if not batch and situation.done:
        batch = situation.acted.get(situation.done[-1].clause.position, [])
    made = [deed for deed in batch if deed.result is not None]
    if wish.numeric and made and (len(batch) > 1 or made[0].clause.each) and not wish.own & {"sum", "mean"}:
        about = merge(made[0].tool.words, made[0].tool.nouns)
        noun = situation.box.match(wish.words, about) if wish.words else 0.5
        explained = sum(0.9 for one in wish.constraints if one in made[0].constraints)
        yield 0.6 + 1.2 * noun + explained + 0.2 * ("count" in wish.own | wish.summaries), 0, len(made)


def _of_rows(situation: Situation, wish: Wish) -> Iterator[tuple[float, int, Json]]:
    """Values of rows that were singled out on the way."""
    for age, fact in enumerate(reversed(situation.runner.facts[-_REMEMBERED:])):
        tool = situation.box.tool(fact.tool)
        one = tool.result_field(fact.name) if tool is not None and not tool.writes else None
        score = suits(wish, one, tool.nouns, situation.box) if one is not None and tool is not None else None
        if score is not None and _fits(wish, fact.value):
            yield 2 * score + 0.25 - 0.01 * age, age, fact.value


def _fits(wish: Wish, value: Json) -> bool:
    return not isinstance(value, list | dict) and (not wish.numeric or isinstance(value, int | float))
