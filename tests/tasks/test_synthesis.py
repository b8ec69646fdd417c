from dataclasses import replace
from itertools import pairwise

import pytest

from agent_world.arena.model import Guideline
from agent_world.tasks.exclusions import TaskExclusions, plan_key, shape_key, text_key
from agent_world.tasks.synthesis import synthesise


def test_an_empty_guideline_gives_the_untargeted_tasks(environment, candidates):
    targeted = synthesise(environment, count=40, seed=1, guideline=Guideline(environment="toy-library"))
    assert targeted == candidates


@pytest.mark.parametrize(
    ("guideline", "holds"),
    [
        (Guideline(environment="toy", tools=("return_book",)), lambda task: "return_book" in task.shape),
        (
            Guideline(environment="toy", edges=(("lend_book", "return_book"),)),
            lambda task: ("lend_book", "return_book") in pairwise(task.shape),
        ),
        (Guideline(environment="toy", patterns=("summary",)), lambda task: "count_books_by_genre" in task.shape),
        (Guideline(environment="toy", writes=True), lambda task: task.writes),
        (Guideline(environment="toy", kinds=("program",)), lambda task: task.kind == "program"),
        (Guideline(environment="toy", knobs={"calls": (5, 7)}), lambda task: 5 <= task.knobs.calls <= 7),
    ],
)
def test_targeted_tasks_exercise_what_the_guideline_names(environment, guideline, holds):
    tasks = synthesise(environment, count=10, seed=5, purpose="targeted", round=1, guideline=guideline)
    assert len(tasks) >= 5
    assert sum(map(holds, tasks)) >= 0.8 * len(tasks)
    assert all(task.serves["field"] for task in tasks if holds(task))
    assert {(task.purpose, task.round) for task in tasks} == {("targeted", 1)}


def test_no_task_is_made_of_a_tool_that_breaks_the_state(environment):
    source = environment.tool("lend_book").source.replace("def lend_book(", "def lent(")
    source += """

def lend_book(world, **given):
    __import__("os").pwrite(5, b"nonsense" * 1000, 0)
    return {"loan_id": world.new_id("LN"), "status": "out"}
"""
    breaking = [replace(tool, source=source) if tool.name == "lend_book" else tool for tool in environment.tools]
    tasks = synthesise(replace(environment, tools=tuple(breaking)), count=10, seed=1)
    assert {task.kind for task in tasks} == {"graph", "program"}
    assert not [task for task in tasks if "lend_book" in task.shape]


def test_what_is_excluded_does_not_come_again(environment, candidates):
    again = synthesise(environment, count=30, seed=1, exclude=TaskExclusions.of(candidates))
    assert {text_key(t) for t in again}.isdisjoint(text_key(t) for t in candidates)
    assert {plan_key(t) for t in again}.isdisjoint(plan_key(t) for t in candidates)


def test_at_least_half_have_a_plan_shape_that_is_new(environment, candidates):
    exclude = TaskExclusions.of(candidates)
    fresh = synthesise(environment, count=10, seed=8, purpose="arena", exclude=exclude)
    assert fresh
    assert sum(exclude.know(task) for task in fresh) <= len(fresh) / 2


def test_a_new_version_of_an_environment_is_the_same_environment_to_an_exclusion(candidates):
    task = candidates[0]
    newer = replace(task, environments=(task.environments[0].replace("@0", "@1"),))
    assert TaskExclusions.of([task]).forbid(newer)
    assert shape_key(task) == shape_key(newer)


def test_an_environment_without_writers_gets_reading_tasks_of_both_kinds(environment):
    reads = tuple(tool for tool in environment.tools if not tool.writes)
    readonly = replace(environment, tools=reads, tool_versions=environment.tool_versions[: len(reads)])
    tasks = synthesise(readonly, count=12, seed=2)
    assert {(task.kind, task.writes) for task in tasks} == {("graph", False), ("program", False)}
