"""What is kept of an order holds its shares, whichever candidates come through the gates."""

from dataclasses import replace

import pytest

from agent_world.arena.model import Guideline
from agent_world.sandbox import default_sandbox
from agent_world.solver import Solver
from agent_world.tasks import production
from agent_world.tasks.exclusions import TaskExclusions
from agent_world.tasks.production import Order, produce


def kept(environment, **order):
    """The tasks of tier train that an order comes to."""
    judged = produce(Order(environment=environment, round=1, **order), solver=Solver, sandbox=default_sandbox())
    return [task for task, verdict in judged if verdict.tier == "train"]


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_at_least_half_of_the_kept_arena_tasks_have_a_plan_shape_that_is_new(environment, candidates, seed):
    tasks = kept(environment, count=4, seed=seed, purpose="arena", exclude=tuple(candidates))
    known = TaskExclusions.of(candidates)
    assert len(tasks) == 4
    assert sum(map(known.know, tasks)) <= 2


def test_at_least_four_fifths_of_the_kept_targeted_tasks_serve_the_guideline(environment, candidates, monkeypatch):
    others = [replace(task, serves={}) for task in candidates[:4]]
    right = [replace(task, serves={"field": "tools"}) for task in candidates[4:10]]
    batches = iter([others[:2] + right + others[2:]])
    monkeypatch.setattr(production, "synthesise", lambda *_, **__: next(batches, []))
    guideline = Guideline(environment="toy-library", tools=("lend_book",))
    tasks = kept(environment, count=10, seed=3, purpose="targeted", guideline=guideline)
    assert len(tasks) > 4
    assert sum(not task.serves for task in tasks) == 1


def test_an_empty_guideline_keeps_what_an_order_without_one_keeps(environment):
    order = {"count": 2, "seed": 1, "purpose": "targeted"}
    plain = kept(environment, **order)
    assert plain
    assert kept(environment, guideline=Guideline(environment="toy-library"), **order) == plain
