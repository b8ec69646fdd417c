"""What the task stage keeps of a candidate: a demonstration is imitated only where its replay held."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent_world import world
from agent_world.rollouts.loop import version_of
from agent_world.rollouts.policies import Gold
from agent_world.tasks.gates import practise
from agent_world.tasks.production import Judged, Order
from agent_world.tasks.verdicts import GateVerdict
from assets.tasks import save_judged
from assets.training import demonstrations
from tests.rollouts.cases import ENVIRONMENT, READING
from tests.toy_lake import save_toy

TASK = replace(READING, purpose="practice")


@pytest.mark.parametrize(("reason", "purpose"), [(None, "demonstration"), ("other_observation", "solver")])
def test_a_demonstration_that_did_not_replay_is_kept_with_its_verdict_and_never_imitated(tmp_path, reason, purpose):
    lake = world.open(tmp_path / "lake", create=True)
    replay = GateVerdict(gate="trajectory", accepted=reason is None, reason=reason)
    found = practise(TASK, ENVIRONMENT, solver=lambda seed: Gold([TASK]), seed=5)
    with lake.begin("toy", derivation="d0") as batch:
        environment, _ = save_toy(batch, ENVIRONMENT)
        task = replace(TASK, environments=(environment,))
        shown = replace(found.demonstration, environment=environment, task=version_of(task))
        order = Order(environment=replace(ENVIRONMENT, version=environment), count=1, seed=5, purpose="practice")
        save_judged(order, [Judged(task, replace(found, trajectories=(), demonstration=shown, replay=replay))], batch)
    [row] = lake.read("trajectories")
    [verdict] = lake.read("gate_verdicts", where={"gate": "trajectory"})
    assert (row["purpose"], verdict["subject"], verdict["reason"]) == (purpose, row["version_id"], reason)
    assert demonstrations(lake, "practice") == (() if reason else (row["version_id"],))
