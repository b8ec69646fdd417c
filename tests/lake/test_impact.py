"""The impact of a tool, asked of the catalog, is what the stored calls say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from agent_world import world
from agent_world.lake.lineage import impact
from agent_world.rollouts.model import Outcome, Step, Trajectory
from agent_world.tasks import graph_tasks
from agent_world.tasks.catalogue import Catalogue
from agent_world.tasks.production import Judged, Order
from agent_world.tasks.verdicts import TaskVerdict
from assets.tasks import save_judged
from tests.toy import toy_environment, toy_tasks
from tests.toy_lake import save_toy


def test_the_impact_of_each_tool_is_what_a_search_through_all_stored_calls_finds(tmp_path: Path):
    lake = world.open(tmp_path / "lake", create=True)
    toy = toy_environment()
    with lake.begin("environments", derivation="d") as batch:
        environment, tools = save_toy(batch, toy)
        first = world.save_task(batch, replace(toy_tasks()[0], environments=(environment,)))
    with lake.begin("tasks", derivation="d") as batch:
        for number, task in enumerate(toy_tasks()[1:]):
            version = world.save_task(batch, replace(task, environments=(environment,)))
            called = Step(kind="tool", tool=toy.tools[number % 2].name)
            steps = ((called, None), (Step(kind="tool", tool="no_such_tool"), None), (Step(kind="answer"), None))
            outcome = Outcome(status="fail", failed=("x",), detail="")
            trajectory = Trajectory(
                trajectory_id=f"t{number}", task=version, environment=environment, policy="p", policy_version="1",
                sample=0, seed=0, steps=steps, outcome=outcome, final_digest=None,
            )  # fmt: skip
            world.save_trajectory(batch, trajectory, purpose="solver", round=0)

    rows = lake.read("tasks", columns=["version_id", "plan"])
    calls = {row["version_id"]: {call["tool"] for call in row["plan"]} for row in rows}
    rows = lake.read("trajectories", columns=["version_id", "steps"])
    calls |= {row["version_id"]: {step["tool"] for step, _ in row["steps"]} for row in rows}
    assert first in calls and len(calls) > len(toy_tasks())
    touched = 0
    for tool, version in zip(toy.tools, tools, strict=True):
        answer = impact(lake, version)
        assert {link.child for link in answer.used_by} == {made for made, names in calls.items() if tool.name in names}
        assert [link.child for link in answer.held_by] == [environment]
        touched += len(answer.used_by)
    assert 0 < touched


def test_a_tool_that_was_walked_and_then_pruned_does_not_count_a_task_among_its_impact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    toy = toy_environment()
    task, walked = task_with_a_pruned_tool(Catalogue(toy), monkeypatch)
    lake = world.open(tmp_path / "lake", create=True)
    with lake.begin("tasks", derivation="d") as batch:
        environment, tools = save_toy(batch, toy)
        task = replace(task, environments=(environment,))
        order = Order(environment=replace(toy, version=environment), count=1, seed=1)
        save_judged(order, [Judged(task, TaskVerdict(task_id=task.task_id, tier="train", gates=()))], batch)

    (made,) = [row["version_id"] for row in lake.read("tasks")]
    of = {tool.name: impact(lake, version) for tool, version in zip(toy.tools, tools, strict=True)}
    touching = {name for name, answer in of.items() if made in {hop.version_id for hop in answer.affected}}
    assert touching == set(task.shape) == {name for name, answer in of.items() if answer.used_by}
    assert touching < walked


def task_with_a_pruned_tool(catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch):
    """A task of the first walk that called a tool which its pruned plan does not, and the tools that were walked."""
    walks: list[set[str]] = []
    prune = graph_tasks.prune

    def listening(moves, chosen):
        walks.append({move.tool.name for move in moves})
        return prune(moves, chosen)

    monkeypatch.setattr(graph_tasks, "prune", listening)
    for seed in range(200):
        task = graph_tasks.graph_task(catalogue, seed=seed, rng=Random(seed), bias=lambda *_: 1.0, writing=False)
        if task and walks[-1] - set(task.shape):
            return task, walks[-1]
    raise AssertionError("no walk was pruned of a tool")
