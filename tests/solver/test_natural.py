"""The naturally worded instructions are well-formed and balanced, and their plans are held against real data."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from agent_world.discovery import builds
from agent_world.discovery.model import Mined, Theme, environment_key
from agent_world.discovery.themes.selection import collect_themes
from agent_world.environments.model import Call, Environment
from agent_world.environments.tool_gate import candidate
from agent_world.identity import VersionId, artifact_id_of
from agent_world.rollouts.loop import EpisodeSpec, roll_out
from agent_world.rollouts.policies import Gold, Null
from agent_world.solver import Solver
from assets.settings import Settings, settings_for
from tests.solver.instructions import Fact, NaturalTask, PlanBrokenError, bind, read_natural, score
from tests.toy import toy_environment

NATURAL = Path(__file__).parent / "natural" / "natural.jsonl"
TYPES = {"string", "integer", "number", "boolean", "array"}


@pytest.fixture(scope="module")
def rows() -> list[NaturalTask]:
    return read_natural(NATURAL)


def test_there_are_enough_rows_over_enough_environments(rows):
    assert len(rows) >= 150
    assert len({row.theme for row in rows}) >= 6
    assert min(Counter(row.theme for row in rows).values()) >= 15


def test_names_and_instructions_are_unique(rows):
    for values in ([row.name for row in rows], [row.instruction for row in rows]):
        assert [value for value, times in Counter(values).items() if times > 1] == []


@pytest.mark.parametrize("group", ["theme", "shape"])
def test_the_halves_are_balanced_in_every_environment_and_shape(rows, group):
    halves = defaultdict(Counter)
    for row in rows:
        halves[getattr(row, group)][row.half] += 1
    uneven = {name: dict(found) for name, found in halves.items() if abs(found["study"] - found["scored"]) > 2}
    assert uneven == {}


def test_a_third_of_the_rows_change_state(rows):
    assert sum(bool(row.effect) for row in rows) >= len(rows) / 3


def test_every_row_is_well_formed(rows):
    for row in rows:
        schema = row.answer_schema
        assert schema["additionalProperties"] is False, row.name
        assert list(schema["required"]) == list(schema["properties"]) == list(row.answer), row.name
        assert {field["type"] for field in schema["properties"].values()} <= TYPES, row.name
        assert all(field["description"] for field in schema["properties"].values()), row.name
        assert row.plan and {fact.field for fact in row.facts} == set(row.answer), row.name


def test_no_instruction_names_a_tool(rows):
    tools = {call.tool for row in rows for call in row.plan}
    named = [row.name for row in rows if tools & set(re.findall(r"\w+", row.instruction))]
    assert named == []


def _fact(field: str, sql: str) -> Fact:
    return Fact(field=field, table="books", column=field, row="Winter Maps", sql=sql)


def _toy(**changes) -> NaturalTask:
    row = NaturalTask(
        name="toy-01",
        environment="City library",
        theme="toy-library",
        shape="lookup",
        half="study",
        instruction="How many copies of Winter Maps does the library own, and when did it come out?",
        answer_schema={
            "type": "object",
            "properties": {
                "copies": {"type": "integer", "description": "copies the library owns"},
                "year": {"type": "integer", "description": "year of publication"},
            },
            "required": ["copies", "year"],
            "additionalProperties": False,
        },
        answer={"copies": 1, "year": 2011},
        plan=(
            Call(tool="search_books", arguments={"title": "Winter Maps"}),
            Call(tool="get_book", arguments={"book_id": "$1.items[0].book_id"}),
        ),
        facts=(
            _fact("copies", "SELECT copies FROM books WHERE title = 'Winter Maps'"),
            _fact("year", "SELECT year FROM books WHERE title = 'Winter Maps'"),
        ),
    )
    return dataclasses.replace(row, **changes)


def test_a_row_becomes_a_task_with_its_plan_filled_in():
    task = bind(_toy(), toy_environment())
    assert task.plan[1].arguments == {"book_id": "B3"}
    assert {item.name for item in task.rubric} == {"copies", "year", "state"} and task.state_diff == {}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"plan": (Call(tool="get_book", arguments={"book_id": "B99"}),)}, "call 1 (get_book) was refused"),
        ({"plan": (Call(tool="gone", arguments={}),)}, "call 1 (gone) was invalid"),
        ({"plan": (Call(tool="get_book", arguments={"book_id": "$1.book_id"}),)}, "wants what no call before it gave"),
        ({"answer": {"copies": 7, "year": 2011}}, "copies is [1], not 7"),
        ({"effect": "a loan"}, "it changes nothing"),
        ({"facts": (_fact("copies", "SELECT copies FROM shelves"),)}, "the fact behind copies: no such table"),
    ],
)
def test_a_row_that_no_longer_holds_is_reported_by_name(changes, why):
    with pytest.raises(PlanBrokenError) as error:
        bind(_toy(**changes), toy_environment())
    assert "toy-01" in str(error.value) and why in str(error.value)


def test_a_broken_row_does_not_stop_its_neighbours():
    gone = _toy(name="toy-02", plan=(Call(tool="gone", arguments={}),))
    elsewhere = _toy(name="toy-03", theme="another-library")
    found = score([gone, elsewhere, _toy()], [toy_environment()], Solver)
    assert [error.name for error in found.broken] == ["toy-02"]
    assert [attempt.task.name for attempt in found.attempts] == ["toy-01"]


def test_a_policy_that_cannot_answer_is_accepted_on_nothing():
    class Silent:
        name, version = "silent", "0"

        def __init__(self, seed: int) -> None:
            self.seed = seed

        def act(self, turns):
            raise RuntimeError("nothing to say")

        def forget(self, episodes):
            pass

    assert score([_toy()], [toy_environment()], Silent).rates() == {"study": (0, 1)}


@pytest.fixture(scope="module")
def environments(rows) -> list[Environment]:
    """The environments of the rows, made anew from their themes and the data packages as a run makes them."""
    settings = settings_for("default")
    keys = {row.theme for row in rows}
    themes = collect_themes(settings.seed, settings.themes, corpus=builds.corpus()).themes
    return [_built(theme, settings) for theme in themes if environment_key(theme) in keys]


def _built(theme: Theme, settings: Settings) -> Environment:
    seed = builds.Seed(version=VersionId(theme.theme_id), theme=theme)
    mined = builds.mine_theme(seed)
    assert isinstance(mined, Mined), f"no data for {theme.title}"
    snapshot = builds.Snapshot(version=VersionId(theme.theme_id), database=mined.database, files=mined.files, seed=seed)
    for richer in builds.enrich(snapshot, rounds=settings.complexification_rounds):
        if isinstance(richer, builds.Enriched):  # a refused round leaves the database as it was
            snapshot = dataclasses.replace(snapshot, database=richer.database, files=richer.files)
    made = builds.make_tools(snapshot, seed=settings.seed)
    kept = [verdict.tool for verdict in made.verdicts if verdict.accepted]
    return candidate(made.proposal.database, made.proposal.files, kept)


@pytest.mark.long
def test_every_plan_still_gives_its_answer_and_no_answer_comes_for_nothing(rows, environments):
    assert len(environments) >= 6
    at_hand = {environment.environment_id: environment for environment in environments}
    tasks, broken = [], []
    for row in (row for row in rows if row.theme in at_hand):
        try:
            tasks.append(bind(row, at_hand[row.theme]))
        except PlanBrokenError as error:
            broken.append(str(error))
    specs = [EpisodeSpec(task=task, environment=at_hand[artifact_id_of(task.environments[0])]) for task in tasks]
    for policy, outcome in ((Gold(tasks), "pass"), (Null(tasks), "fail")):
        played = zip(tasks, roll_out(specs, policy), strict=True)
        assert [task.task_id for task, trajectory in played if trajectory.outcome.status != outcome] == []
    assert not broken, "\n".join(broken)


@pytest.mark.long
def test_the_solver_does_some_of_either_half(rows, environments):
    rates = score(rows, environments, Solver).rates()
    assert set(rates) == {"study", "scored"}
    assert all(accepted >= 0.05 * attempted for accepted, attempted in rates.values()), rates
