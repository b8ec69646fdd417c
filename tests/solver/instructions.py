"""Instructions that people wrote, with gold plans: how well a policy does on words that no template made.

The rows are a data file apart from the package (``tests/solver/natural``). Each names its environment by theme, so that
it can be bound to whatever version of that environment is at hand: its plan is run there, and what the plan says and
leaves behind must be what the row's facts, queries over the database alone, say. Half of the rows may be studied; the
other half is only ever scored.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agent_world.codec import decode
from agent_world.environments.model import SQLITE_FILE, Call, Environment, Json
from agent_world.environments.session import Session, open_session
from agent_world.environments.state import State
from agent_world.errors import AgentWorldError
from agent_world.identity import canonical_json, seed_of
from agent_world.rollouts.canonical import canonical
from agent_world.rollouts.loop import EpisodeSpec, roll_out
from agent_world.rollouts.model import Policy, Trajectory
from agent_world.rollouts.rewards import state_change
from agent_world.tasks.model import Criterion, Knobs, Task

if TYPE_CHECKING:
    from agent_world.sandbox import Sandbox

Half = Literal["study", "scored"]
RUNS = 5
AGREEING = 2
"""Of `RUNS` runs with different seeds so many must be right, in one answer and one final state (design.md 7)."""

_TOLERANCE = 0.005
_RESULT = re.compile(r"\$(\d+)\.(.+)")
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """What one answer field asks of the data: `column` of `table` for `row`, in words, and as a query.

    `sql` runs over the database as the plan leaves it and gives one value, or one column for a field that is a list.
    """

    field: str
    table: str
    column: str
    row: str
    sql: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NaturalTask:
    """One instruction in somebody's own words.

    `theme` is the key of the theme and the environment, `effect` what the plan does to the state in plain words, empty
    for a question. In `plan`, an argument like ``$2.items[0].track_id`` means that part of what the second call gave.
    """

    name: str
    environment: str
    theme: str
    shape: str
    half: Half
    instruction: str
    answer_schema: Mapping[str, Json]
    answer: Mapping[str, Json]
    plan: tuple[Call, ...]
    facts: tuple[Fact, ...]
    effect: str = ""


class PlanBrokenError(AgentWorldError):
    """The gold plan of a row no longer gives its answer in this environment."""

    def __init__(self, name: str, environment: str, why: str) -> None:
        super().__init__(name, environment, why)
        self.name, self.environment, self.why = name, environment, why

    def __str__(self) -> str:
        return f"natural task {self.name} on {self.environment}: {self.why}; write its plan anew"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """How a policy did on one row: `passes` of `RUNS` runs, `accepted` when enough of them agree."""

    task: NaturalTask
    passes: int
    accepted: bool
    trajectories: tuple[Trajectory, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Attempts at all rows that an environment was at hand for, and the rows whose plans are broken there."""

    attempts: tuple[Attempt, ...]
    broken: tuple[PlanBrokenError, ...]

    def rates(self, by: Literal["half", "environment", "shape"] = "half") -> dict[str, tuple[int, int]]:
        """Accepted and attempted rows of each group."""
        groups: dict[str, list[bool]] = defaultdict(list)
        for attempt in self.attempts:
            groups[getattr(attempt.task, by)].append(attempt.accepted)
        return {name: (sum(each), len(each)) for name, each in sorted(groups.items())}


def read_natural(path: Path) -> list[NaturalTask]:
    """The rows of a file of JSON lines, in order.

    Raises:
        pydantic.ValidationError: a row has another shape.
    """
    return [decode(NaturalTask, json.loads(line)) for line in path.read_text("utf-8").splitlines() if line]


def bind(row: NaturalTask, environment: Environment, sandbox: Sandbox | None = None) -> Task:
    """The row as a task pinned to `environment`: its plan is run, its answer checked against its facts.

    Raises:
        PlanBrokenError: a call fails, a fact says something else than the answer, or the state changes unasked.
    """
    seed = seed_of("natural", row.name)
    with open_session(environment, seed, sandbox) as session:
        calls = _run(row, environment, session)
        final = session.state()
    change = state_change(State(environment.files), final, environment.database)
    if bool(change) != bool(row.effect):
        raise PlanBrokenError(row.name, environment.title, f"it changes {', '.join(change) or 'nothing'}")
    _check_facts(row, environment, final)
    state = Criterion(name="state", kind="state_equals", expected=change)
    return Task(
        task_id=f"natural-{row.name}",
        kind="graph",
        environments=(environment.version,),
        instruction=row.instruction,
        answer_schema=row.answer_schema,
        answer=row.answer,
        plan=calls,
        shape=tuple(call.tool for call in calls),
        rubric=(*(_criterion(row, name) for name in row.answer), state),
        state_diff=change,
        knobs=_knobs(calls, environment),
        seed=seed,
        purpose="held_out",
    )


def score(
    rows: Iterable[NaturalTask],
    environments: Iterable[Environment],
    policy: Callable[[int], Policy],
    *,
    sandbox: Sandbox | None = None,
) -> Score:
    """Attempt every row that one of `environments` is there for, `RUNS` times each.

    `policy` gives the policy seeded by its argument. A row with a broken plan is kept apart; its neighbours go on.
    """
    at_hand = {environment.environment_id: environment for environment in environments}
    bound: list[tuple[NaturalTask, Task]] = []
    broken: list[PlanBrokenError] = []
    for row in rows:
        if row.theme in at_hand:
            try:
                bound.append((row, bind(row, at_hand[row.theme], sandbox)))
            except PlanBrokenError as error:
                broken.append(error)
    runs = []
    for seed in range(RUNS):
        specs = [EpisodeSpec(task=task, environment=at_hand[row.theme], seed=seed) for row, task in bound]
        runs.append(roll_out(specs, policy(seed), sandbox=sandbox))
    attempts = [_attempt(row, [run[index] for run in runs]) for index, (row, _) in enumerate(bound)]
    return Score(attempts=tuple(attempts), broken=tuple(broken))


def _attempt(row: NaturalTask, trajectories: Sequence[Trajectory]) -> Attempt:
    right = [each for each in trajectories if each.outcome.status == "pass"]
    ways = Counter(_way(row, each) for each in right)
    agreed = max(ways.values(), default=0) >= AGREEING
    return Attempt(task=row, passes=len(right), accepted=agreed, trajectories=tuple(trajectories))


def _way(row: NaturalTask, trajectory: Trajectory) -> tuple[Any, ...]:
    """What two right runs must share to agree: the canonical answer and the final state."""
    answer = trajectory.steps[-1][0].answer
    return canonical(answer, row.answer_schema), trajectory.final_digest


def _run(row: NaturalTask, environment: Environment, session: Session) -> tuple[Call, ...]:
    """The plan's calls with their arguments filled in, each of which the session granted."""
    calls: list[Call] = []
    results: list[Json] = []
    for number, call in enumerate(row.plan, 1):
        try:
            arguments = {name: _filled(value, results) for name, value in call.arguments.items()}
        except (KeyError, IndexError, TypeError) as error:
            why = f"call {number} ({call.tool}) wants what no call before it gave: {error}"
            raise PlanBrokenError(row.name, environment.title, why) from None
        seen = session.call(call.tool, arguments)
        if seen.status != "ok":
            why = f"call {number} ({call.tool}) was {seen.status}: {seen.value['error']['message']}"
            raise PlanBrokenError(row.name, environment.title, why)
        calls.append(Call(tool=call.tool, arguments=arguments))
        results.append(seen.value)
    return tuple(calls)


def _filled(value: Json, results: Sequence[Json]) -> Json:
    """The argument itself, or the part of an earlier result that it points at."""
    if not isinstance(value, str) or (found := _RESULT.fullmatch(value)) is None:
        return value
    part = results[int(found[1]) - 1]
    for name, position in _STEP.findall(found[2]):
        part = part[int(position)] if position else part[name]
    return part


def _check_facts(row: NaturalTask, environment: Environment, final: State) -> None:
    connection = sqlite3.connect(":memory:")
    connection.deserialize(final.files[SQLITE_FILE])
    try:
        for fact in row.facts:
            try:
                found = [value for (value, *_) in connection.execute(fact.sql)]
            except sqlite3.Error as error:
                raise PlanBrokenError(row.name, environment.title, f"the fact behind {fact.field}: {error}") from None
            answer = row.answer[fact.field]
            if not _same(found, answer if isinstance(answer, list) else [answer], row.answer_schema, fact.field):
                why = f"{fact.field} is {found}, not {canonical_json(answer)}"
                raise PlanBrokenError(row.name, environment.title, why)
    finally:
        connection.close()


def _same(found: list[Any], expected: list[Json], schema: Mapping[str, Any], field: str) -> bool:
    declared = schema["properties"][field]
    if declared["type"] == "boolean":
        found = [bool(value) for value in found]
    if declared["type"] == "array":
        return canonical(found, declared) == canonical(expected, declared)
    return len(found) == 1 and (
        canonical(found[0], declared) == canonical(expected[0], declared)
        or (declared["type"] == "number" and found[0] is not None and abs(found[0] - expected[0]) <= _TOLERANCE)
    )


def _criterion(row: NaturalTask, field: str) -> Criterion:
    declared, expected = row.answer_schema["properties"][field], row.answer[field]
    match declared["type"]:
        case "array":
            kind = "set_equals" if declared.get("uniqueItems") else "order"
            return Criterion(name=field, kind=kind, field=field, expected=expected)
        case "number":
            return Criterion(name=field, kind="numeric_tolerance", field=field, expected=expected, tolerance=_TOLERANCE)
    return Criterion(name=field, kind="field_equals", field=field, expected=expected)


def _knobs(calls: Sequence[Call], environment: Environment) -> Knobs:
    """The knobs that a sequence of calls shows; how its steps hang together is not known."""
    tools = [environment.tool(call.tool) for call in calls]
    return Knobs(
        calls=len(calls),
        distinct_tools=len({tool.name for tool in tools}),
        weak_share=0.0,
        independent_share=0.0,
        branches=0,
        loops=0,
        tables=len({table for tool in tools for table in tool.tables}),
        aggregates=0,
        writes=sum(tool.writes for tool in tools),
        rewriting=0,
    )
