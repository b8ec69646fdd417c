"""Graph tasks: a walk, pruned and executed again, becomes a question with answer and typed rubric (method.md 5a)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from agent_world.environments.errors import CorruptStateError
from agent_world.environments.model import Call, Environment, Json
from agent_world.environments.session import open_session
from agent_world.identity import canonical_json, sha256
from agent_world.sandbox import Sandbox
from agent_world.tasks.catalogue import Catalogue
from agent_world.tasks.execution import run_plan
from agent_world.tasks.model import Criterion, Knobs, Task, TaskKind
from agent_world.tasks.phrases import Ask, Meet, Thing
from agent_world.tasks.reading import AGGREGATE_GUESS, Askable
from agent_world.tasks.requests import act
from agent_world.tasks.saying import with_words
from agent_world.tasks.walk import Bias, Move, Walker, edge_weights
from agent_world.tasks.wording import Beat, instruction

_LUCK = 0.03
_FACTS = {False: (2, 2, 2, 3), True: (1, 1, 2, 2)}
"""How many facts a task asks for, by whether it writes."""
_SAME_AGAIN = 0.8
_LENGTHS = (1, 2, 2, 3, 3, 3, 4, 4, 5, 6, 7)
_LEVELS = (0, 1, 1, 1, 2, 2)
TOLERANCE = 0.011


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A fact that is asked for, the move that shows it, and its public name."""

    move: int
    asked: Askable
    field: str


def graph_task(
    catalogue: Catalogue, *, seed: int, rng: random.Random, bias: Bias, writing: bool, sandbox: Sandbox | None = None
) -> Task | None:
    """One candidate from one walk; None when the walk led nowhere.

    `writing` asks for a walk that changes the state; the other kind changes nothing.
    """
    with open_session(catalogue.environment, seed, sandbox) as session:
        walker = Walker(catalogue=catalogue, session=session, rng=rng, bias=bias, writes=writing)
        moves = walker.walk(rng.choice(_LENGTHS))
    chosen = choose(moves, rng)
    moves, chosen = prune(moves, chosen)
    if not moves or (writing != any(move.tool.writes for move in moves)) or not _is_enough(moves, chosen):
        return None
    try:
        trace = run_plan(catalogue.environment, [move.call for move in moves], seed, sandbox)
    except CorruptStateError:
        return None
    if any(
        observation.value != move.observation.value for observation, move in zip(trace.observations, moves, strict=True)
    ):
        return None
    if writing != bool(trace.change) or _is_overwritten(moves, chosen, trace.change.keys()):
        return None
    level = rng.choice(_LEVELS)
    text = instruction(beats(moves, chosen), level, rng)
    answer = {item.field: item.asked.value for item in chosen}
    schema = answer_schema({item.field: with_words(item.asked.schema, item.asked.fact.say()) for item in chosen})
    return Task(
        task_id=task_id(catalogue.environment, "graph", text, trace.calls),
        kind="graph",
        environments=(catalogue.environment.version,),
        instruction=text,
        answer_schema=schema,
        answer=answer,
        plan=trace.calls,
        shape=tuple(call.tool for call in trace.calls),
        rubric=rubric(answer, schema, trace.change),
        state_diff=trace.change,
        knobs=knobs_of(catalogue, moves, chosen, level),
        seed=seed,
    )


def choose(moves: Sequence[Move], rng: random.Random) -> list[Chosen]:
    """Facts to ask for, one to three: of the last informative move first, then of others.

    A fact that holds whatever was given (the highest of a whole table) would be the same in many tasks: rarely taken.
    """
    writes = any(move.tool.writes for move in moves)
    most = rng.choice(_FACTS[writes])
    taken: list[tuple[int, Askable]] = []
    for index in reversed(range(len(moves))):
        if _is_outdated(moves, index) or (not _is_particular(moves, index) and rng.random() < _SAME_AGAIN):
            continue
        options = list(moves[index].reading.askable)
        rng.shuffle(options)
        wanted = min(most - len(taken), 2 if rng.random() < 0.6 else 1)
        for item in options:
            if wanted > 0 and _is_new(item, taken):
                taken.append((index, item))
                wanted -= 1
    taken.sort(key=lambda pair: pair[0])
    used: dict[str, int] = {}
    chosen = []
    for index, item in taken:
        used[item.field] = used.get(item.field, 0) + 1
        name = item.field if used[item.field] == 1 else f"{item.field}_{used[item.field]}"
        chosen.append(Chosen(move=index, asked=item, field=name))
    return chosen


def prune(moves: Sequence[Move], chosen: Sequence[Chosen]) -> tuple[list[Move], list[Chosen]]:
    """The moves that a fact asked for or a change of state depends on, in order (method.md 5a: review and prune)."""
    needed = {item.move for item in chosen} | {i for i, move in enumerate(moves) if move.tool.writes}
    for index in reversed(range(len(moves))):
        if index in needed:
            needed |= set(moves[index].origins.values())
    place = {old: new for new, old in enumerate(sorted(needed))}
    kept = [
        Move(
            tool=moves[old].tool,
            given=moves[old].given,
            observation=moves[old].observation,
            reading=moves[old].reading,
            origins={parameter: place[source] for parameter, source in moves[old].origins.items()},
        )
        for old in place
    ]  # fmt: skip
    return kept, [Chosen(move=place[item.move], asked=item.asked, field=item.field) for item in chosen]


def beats(moves: Sequence[Move], chosen: Sequence[Chosen]) -> list[Beat]:
    """What the text must say, in the order of the plan."""
    found: list[Beat] = []
    met: list[Thing] = []
    changed: Thing | None = None
    for index, move in enumerate(moves):
        facts = tuple(item.asked.fact for item in chosen if item.move == index)
        if move.tool.writes:
            found.append(act(move.tool, move.given, changed))
            changed = found[-1].about
        elif move.reading.met is not None and move.reading.met not in met and not move.reading.met.made:
            met.append(move.reading.met)
            found.append(Meet(thing=move.reading.met))
        if facts:
            found.append(Ask(facts=facts))
    return found


def task_id(environment: Environment, kind: TaskKind, text: str, calls: Sequence[Call]) -> str:
    """The id of a task: what it asks and how it is done."""
    identity = sha256(canonical_json([text, [[call.tool, dict(call.arguments)] for call in calls]]))
    return f"{environment.environment_id}/{kind}-{identity[:12]}"


def answer_schema(fields: Mapping[str, Mapping[str, Json]]) -> dict[str, Json]:
    """A flat, closed object of these fields, all of them required."""
    return {
        "type": "object", "properties": {name: dict(schema) for name, schema in fields.items()},
        "required": list(fields), "additionalProperties": False,
    }  # fmt: skip


def rubric(answer: Mapping[str, Json], schema: Mapping[str, Any], change: Mapping[str, Any]) -> tuple[Criterion, ...]:
    """One typed criterion a field, by its type, and the state."""
    found = []
    for name, value in answer.items():
        declared = schema["properties"][name]
        if isinstance(value, list):
            kind = "set_equals" if declared.get("uniqueItems") else "order"
            found.append(Criterion(name=name, kind=kind, field=name, expected=value))
        elif isinstance(value, float):
            found.append(
                Criterion(name=name, kind="numeric_tolerance", field=name, expected=value, tolerance=TOLERANCE)
            )
        else:
            found.append(Criterion(name=name, kind="field_equals", field=name, expected=value))
    return (*found, Criterion(name="state", kind="state_equals", expected=change))


def knobs_of(catalogue: Catalogue, moves: Sequence[Move], chosen: Sequence[Chosen], level: int) -> Knobs:
    """The difficulty of a walked task as numbers."""
    weights = edge_weights(catalogue, list(moves)) or [1]
    return Knobs(
        calls=len(moves),
        distinct_tools=len({move.tool.name for move in moves}),
        weak_share=round(weights.count(2) / len(weights), 3),
        independent_share=round(weights.count(1) / len(weights), 3),
        branches=0,
        loops=0,
        tables=len({table for move in moves for table in move.tool.tables}),
        aggregates=sum(item.asked.guess == AGGREGATE_GUESS for item in chosen),
        writes=sum(move.tool.writes for move in moves),
        rewriting=level,
    )


def _is_outdated(moves: Sequence[Move], index: int) -> bool:
    """Whether a later change of the same workflow may have made what a move shows untrue."""
    workflow = moves[index].tool.workflow
    return workflow is not None and any(m.tool.writes and m.tool.workflow == workflow for m in moves[index + 1 :])


def _is_overwritten(moves: Sequence[Move], chosen: Sequence[Chosen], changed: Set[str]) -> bool:
    """Whether a later call writes a table that changed and that a fact asked for was read from."""
    return any(
        set(moves[item.move].tool.tables) & set(later.tool.tables) & changed
        for item in chosen
        for later in moves[item.move + 1 :]
        if later.tool.writes
    )


def _is_particular(moves: Sequence[Move], index: int) -> bool:
    """Whether what a move shows depends on a value that the task chose: a name, a filter, a made row."""
    move = moves[index]
    chosen = {"key", "label", "filter", "threshold", "text"}
    return any(
        item.meaning.kind in chosen and (name not in move.origins or _is_particular(moves, move.origins[name]))
        for name, item in move.given.items()
    )


def _is_new(item: Askable, taken: Sequence[tuple[int, Askable]]) -> bool:
    return all(item.value != other.value and item.fact != other.fact for _, other in taken)


def _is_enough(moves: Sequence[Move], chosen: Sequence[Chosen]) -> bool:
    """Enough to get right.

    Reading: two facts that luck would rarely hit. Writing: two writes, or one that is about a row to be looked up and a
    fact from another call; a record that is opened and left empty is not worth asking for.
    """
    luck = 1.0
    for item in chosen:
        luck *= item.asked.guess
    writers = [index for index, move in enumerate(moves) if move.tool.writes]
    if not writers:
        return len(chosen) >= 2 and luck <= _LUCK
    about_rows = any(
        (item.thing is not None and not item.thing.made) or moves[index].tool.pattern == "document_update"
        for index in writers
        for item in moves[index].given.values()
    )
    elsewhere = any(item.move not in writers for item in chosen)
    return bool(chosen) and about_rows and (len(writers) > 1 or elsewhere) and len(moves) > 1
