"""Gets a wished value: by the likeliest reading of the tools, or from what was seen and done before."""

from __future__ import annotations

from collections.abc import Generator

from agent_world.environments.model import Json
from agent_world.rollouts.model import Observation, Step
from agent_world.solver.answers import text_of
from agent_world.solver.fields import Parameter, merge
from agent_world.solver.goals import IDENTITY_ASKED, Goal, Reading, Wish, readings
from agent_world.solver.model import Clause, Mention
from agent_world.solver.run import SetbackError, value_at
from agent_world.solver.situation import Situation

Thinking = Generator[Step, Observation, Json]

TRIES = 4
"""How often another way is tried when one leads nowhere."""


def first_value(situation: Situation, wish: Wish, goal: Goal | None = None, clause: Clause | None = None) -> Thinking:
    """The value of the likeliest reading that leads to one."""
    zero: Json = None
    dead: list[Reading] = []
    for _ in range(TRIES):
        found = [one for one in readings(wish, situation.planner) if one.query not in [other.query for other in dead]]
        seen = _seen(situation, wish, goal, clause) if goal is not None else []
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


def _seen(situation: Situation, wish: Wish, goal: Goal, clause: Clause | None) -> list[tuple[float, Json]]:
    """Values of deeds and of rows that orders were about, with scores like those of readings."""
    found: list[tuple[float, int, Json]] = []
    names = [one for one in wish.constraints if isinstance(one, Mention) and one.kind in ("name", "value")]
    done = [deed for deed in situation.deeds if deed.result is not None]
    for age, deed in enumerate(reversed(done)):
        spoken = {one.text for one in deed.constraints if isinstance(one, Mention)}
        named = sum(0.5 if one.text in spoken else -1.0 for one in names)
        base = 0.5 - 0.25 * age + named
        for name, value in {**deed.arguments, **deed.result}.items():
            one = next((field for field in deed.tool.fields if field.name == name), None) or deed.tool.parameter(name)
            if one is None or isinstance(value, list | dict) or (wish.numeric and not isinstance(value, int | float)):
                continue
            if goal.kind == "array":
                continue
            recall = situation.box.match(
                wish.words, merge(one.words, {w: 0.45 * v for w, v in deed.tool.nouns.items()})
            )
            precision = situation.box.match(one.names, merge(wish.words, wish.around))
            score = 0.6 * recall + 0.3 * precision
            keyed = one.role == "id" if isinstance(one, Parameter) else one.key
            if keyed and not IDENTITY_ASKED & (wish.words.keys() | wish.head.keys()):
                score -= 0.25
            if max(recall, precision) > 0.4:
                found.append((2 * score + base + situation.chance("deed", deed.tool.name, name), -age, value))
    batch = situation.acted.get(clause.position) if clause else None
    if batch is None and done:
        batch = situation.acted.get(done[-1].clause.position)
    if wish.numeric and batch and (len(batch) > 1 or batch[0].clause.each) and not wish.own & {"sum", "mean"}:
        made = [deed for deed in batch if deed.result is not None]
        noun = (
            situation.box.match(wish.words, merge(made[0].tool.words, made[0].tool.nouns))
            if made and wish.words
            else 0.5
        )
        explained = sum(0.9 for one in wish.constraints if one in batch[0].constraints)
        found.append((0.6 + 1.2 * noun + explained + 0.2 * ("count" in wish.own | wish.summaries), 0, len(made)))
    if not names:
        for age, fact in enumerate(reversed(situation.runner.facts[-40:])):
            tool = next((one for one in situation.box.tools if one.name == fact.tool), None)
            one = next((field for field in tool.fields if field.name == fact.name), None) if tool else None
            if (
                one is None
                or tool.writes
                or (wish.numeric and not isinstance(fact.value, int | float))
                or goal.kind == "array"
            ):
                continue
            recall = situation.box.match(wish.words, merge(one.words, {w: 0.45 * v for w, v in tool.nouns.items()}))
            precision = situation.box.match(one.names, merge(wish.words, wish.around))
            if max(recall, precision) > 0.5:
                found.append((2 * (0.6 * recall + 0.3 * precision) + 0.25 - 0.01 * age, -age, fact.value))
    return [(score, value) for score, _, value in sorted(found, key=lambda entry: (-entry[0], -entry[1]))]
