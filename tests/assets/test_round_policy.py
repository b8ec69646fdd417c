"""What a round trains on, and what its control gets instead."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import dagster as dg
import pytest

from agent_world import world
from agent_world.engine import Engine
from agent_world.tasks.exclusions import plan_key, text_key
from assets import round_policy, screening
from assets.partitions import rounds
from assets.resources import EngineResource, LakeResource, RunResource, TrackerResource
from assets.settings import Settings
from assets.targeted import set_name
from assets.tasks import _rank, order_for, produce_all, save_set
from assets.training import task_set
from tests.toy import toy_environment
from tests.toy_lake import save_toy


class Tried(NamedTuple):
    task: str
    status: str


KEY = toy_environment().environment_id
SETTINGS = Settings(control=True)


def make(lake, purpose, count, round=0):
    order = order_for(lake, SETTINGS, KEY, count=count, purpose=purpose, round=round)
    produce_all(dg.build_asset_context(), lake, Engine(1), SETTINGS, f"{purpose}/{round}", [order])


def shown(lake, versions):
    """Purpose and round of the tasks that these trajectories demonstrate."""
    tasks = {row["version_id"]: (row["purpose"], row["round"]) for row in lake.read("tasks")}
    played = {row["version_id"]: row for row in lake.read("trajectories")}
    assert all(played[version]["purpose"] == "demonstration" for version in versions)
    return [tasks[played[version]["task"]] for version in versions]


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    opened = world.open(tmp_path_factory.mktemp("round") / "lake", create=True)
    with opened.begin("toy", derivation="d0") as batch:
        save_toy(batch, toy_environment())
        batch.create("checkpoint", "pi0", {"name": "pi0", "round": 0, "digest": "0", "method": "grpo"})
    for purpose, count in (("general", 3), ("held_out", 2), ("practice", 5)):
        make(opened, purpose, count)
    for purpose, count in (("targeted", 2), ("practice", 4)):
        make(opened, purpose, count, round=1)
    context = dg.build_asset_context()
    save_set(context, opened, SETTINGS, "training", purpose="general")
    save_set(context, opened, SETTINGS, set_name(1), purpose="targeted", round=1)
    return opened


@pytest.fixture(scope="module")
def jobs(lake):
    """The jobs of round 1 by the names of what they train; nothing is trained."""
    jobs = {}

    def train(context, lake, tracker, settings, *, name, round, job):
        jobs[name] = job
        with lake.begin("trained", name, derivation=job.job_hash) as batch:
            payload = {"name": name, "round": round, "digest": name, "method": job.method}
            return batch.create("checkpoint", name, payload)

    def samples_of(lake, engine, settings, policy, tasks, *, samples):
        """One task is passed every other time, the others never."""
        one, *rest = tasks
        return [Tried(one.version, "pass" if n % 2 else "fail") for n in range(samples["sampled"])] + [
            Tried(task.version, "fail") for task in rest
        ]

    given = {
        "lake": LakeResource(uri=lake.uri), "run": RunResource.of(SETTINGS), "engine": EngineResource(workers=1),
        "tracker": TrackerResource(lake_uri=lake.uri, settings_json="{}"),
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as patch, dg.DagsterInstance.ephemeral() as instance:
        patch.setattr(round_policy, "train", train)
        patch.setattr(screening, "samples_of", samples_of)
        instance.add_dynamic_partitions(rounds.name, ["r01"])
        round_policy.round_policy(dg.build_asset_context(partition_key="r01", instance=instance), **given)
    return jobs


def test_a_round_imitates_its_practice_tasks_beside_old_ones_and_nothing_that_is_rewarded(lake, jobs):
    seen = shown(lake, jobs["pi1-demonstrations"].trajectories)
    fresh = [each for each in seen if each[1] == 1]
    assert set(fresh) == {("practice", 1)}
    old = [purpose for purpose, round in seen if round == 0]
    assert set(old) == {"practice"}
    assert 0 < len(old) <= round_policy._REHEARSED * len(fresh)


def test_the_control_gets_as_many_new_demonstrations_but_none_that_a_diagnosis_asked_for(lake, jobs):
    targeted, control = (shown(lake, jobs[f"{name}-demonstrations"].trajectories) for name in ("pi1", "control1"))
    fresh = [each for each in control if each[1] == 1]
    assert set(fresh) == {("control", 1)}
    assert len(fresh) == len([each for each in targeted if each[1] == 1])
    assert jobs["control1"].task_set != jobs["pi1"].task_set
    assert jobs["control1"].hyper.steps == jobs["pi1"].hyper.steps


def test_grpo_tries_the_targeted_set_beside_the_general_one_and_the_control_the_general_one_alone(lake, jobs):
    purposes = {row["version_id"]: row["purpose"] for row in lake.read("tasks")}
    tried = {}
    for line in ("pi1", "control1"):
        chosen = task_set(lake, f"learnable-{line}")
        assert jobs[line].task_set == chosen["version_id"]
        tried[line] = Counter(purposes[task] for task in chosen["passes"])
    targeted, general = (task_set(lake, name)["size"] for name in (set_name(1), "training"))
    assert tried == {"pi1": {"targeted": targeted, "general": general}, "control1": {"general": general}}


def test_both_start_from_the_same_policy_and_pin_what_they_train_on(lake, jobs):
    assert jobs["pi1-demonstrations"].base == jobs["control1-demonstrations"].base == lake.resolve("checkpoint", "pi0")
    assert jobs["pi1"].base == lake.resolve("checkpoint", "pi1-demonstrations")
    assert {job.environments for job in jobs.values()} == {(lake.environment(KEY).version,)}


def test_no_task_repeats_one_that_was_made_before(lake, jobs):
    tasks = [lake.task(row["version_id"]).task for row in lake.read("tasks") if row["tier"]]
    for key in (text_key, plan_key):
        assert len({key(task) for task in tasks}) == len(tasks)


def test_what_is_evaluated_comes_before_what_is_imitated_and_a_round_knows_all_that_came_before_it():
    made = [
        ("general", 0), ("held_out", 0), ("practice", 0), ("arena", 1), ("targeted", 1), ("practice", 1),
        ("control", 1), ("arena", 2),
    ]  # fmt: skip
    assert sorted(reversed(made), key=lambda each: _rank(*each)) == made
