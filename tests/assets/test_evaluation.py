from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest

from agent_world import world
from agent_world.arena.evaluation import evaluate
from agent_world.rollouts.policies import Gold, answer_step
from agent_world.world import save_task
from assets import evaluation
from assets.partitions import rounds
from assets.resources import EngineResource, LakeResource, RunResource, TrackerResource
from assets.settings import Settings
from assets.traces import SHOWN
from assets.tracking import MODEL
from assets.training import checkpoint
from tests.rollouts.cases import ENVIRONMENT, READING, WRITING
from tests.toy_lake import save_toy

SETTINGS = Settings(samples=4, control=True)
RIGHT = {
    "untrained": [], "sft": [], "pi0": ["toy-read"],
    "pi1-demonstrations": ["toy-read", "toy-write"], "pi1": [], "control1": ["toy-read", "toy-write"],
}  # fmt: skip
"""The tasks that each checkpoint can do."""


class Partly(Gold):
    """Plays gold in some tasks, and answers nothing in the others."""

    def __init__(self, tasks, version, right):
        super().__init__(tasks)
        self.version, self.right = version, right

    def play(self, turn):
        if self.task_of(turn).task_id in self.right:
            yield from super().play(turn)
        else:
            yield answer_step({})


def samples_of(lake, engine, settings, version, tasks, *, samples):
    policy = Partly([bound.task for bound in tasks], version, RIGHT[lake.payload(version)["name"]])
    return [each for mode, count in samples.items() for each in evaluate(policy, tasks, mode=mode, samples=count)]


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    opened = world.open(tmp_path_factory.mktemp("evaluation") / "lake", create=True)
    with opened.begin("toy", derivation="d0") as batch:
        environment, _ = save_toy(batch, ENVIRONMENT)
        tasks = [save_task(batch, replace(task, environments=(environment,))) for task in (READING, WRITING)]
        held_out = {"name": "held_out", "purpose": "held_out", "round": 0, "tasks": sorted(tasks), "size": 2}
        batch.create("task_set", "held_out", held_out, parents=[(task, "task") for task in tasks])
        made = {}
        for name in RIGHT:
            payload = {"name": name, "round": int("1" in name), "digest": name, "method": "grpo"}
            file = {"a/b.json": name.encode()}
            made[name] = batch.create("checkpoint", name, payload, files=file, blob_in_identity=False)
        collapsed = {"name": "pi2", "round": 2, "digest": "pi2", "method": "grpo", "base": made["pi1"]}
        rejected = batch.create("checkpoint", "pi2", collapsed, files={"a/b.json": b"pi2"}, blob_in_identity=False)
        batch.observe(rejected, {"accepted": False})
    return opened


@pytest.fixture(scope="module")
def log(lake):
    """The tracker after both rounds were evaluated, the second twice as a resumed loop does."""
    tracker = TrackerResource(lake_uri=lake.uri, settings_json="{}")
    log = tracker.open()
    for row in lake.read("checkpoints"):
        if row["name"] == "pi2":
            continue
        run = log.round_run(f"r{row['round']:02d}", {}, {})
        log.register(run, row["version_id"], lake.files(row["version_id"]), {"lake": lake.uri})
    given = {
        "lake": LakeResource(uri=lake.uri), "run": RunResource.of(SETTINGS), "tracker": tracker,
        "engine": EngineResource(workers=1),
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as patch, dg.DagsterInstance.ephemeral() as instance:
        patch.setattr(evaluation, "samples_of", samples_of)
        instance.add_dynamic_partitions(rounds.name, ["r00", "r01", "r02"])
        for key in ("r00", "r01", "r01", "r02"):
            evaluation.evaluation(dg.build_asset_context(partition_key=key, instance=instance), **given)
    return log


def test_the_champion_is_the_best_policy_of_a_round_and_no_control(lake, log):
    champion = log.client.get_model_version_by_alias(MODEL, "champion")
    assert champion.tags["lake_version"] == lake.resolve("checkpoint", "pi0") == evaluation.best_policy(lake)


def test_in_the_place_of_a_rejected_checkpoint_stands_what_it_was_trained_from(lake, log):
    assert checkpoint(lake, "pi2") == lake.resolve("checkpoint", "pi1")
    measured = lake.read("evaluations", where={"point": "pi2"})
    assert len(measured) == 2 * (1 + SETTINGS.samples)
    assert {row["policy_version"] for row in measured} == {lake.resolve("checkpoint", "pi1")}


def test_the_source_of_a_registered_checkpoint_can_be_fetched(log):
    from mlflow.artifacts import download_artifacts

    folder = download_artifacts(f"models:/{MODEL}@champion", tracking_uri=log.uri)
    assert Path(folder, "a/b.json").read_text() == "pi0"


def test_the_runs_of_the_rounds_are_finished(log):
    runs = {run.info.run_name: run.info.status for run in log.client.search_runs([log.experiment])}
    assert runs == {"r00": "FINISHED", "r01": "FINISHED", "r02": "FINISHED"}


def test_a_sample_of_each_checkpoints_episodes_is_traced_once_and_named_by_versions_of_the_lake(lake, log):
    traces = log.client.search_traces(locations=[log.experiment])
    outcomes = Counter((trace.info.tags["point"], trace.info.tags["outcome"]) for trace in traces)
    assert (outcomes["pi0", "pass"], outcomes["pi0", "fail"]) == (SHOWN // 2, SHOWN - SHOWN // 2)
    assert (outcomes["pi1", "fail"], outcomes["control1", "pass"]) == (SHOWN, SHOWN)
    assert sum(outcomes.values()) == SHOWN * (len(RIGHT) + 1)  # pi2 is shown as pi1 once more
    for trace in traces:
        tags = trace.info.tags
        kept = lake.trajectory(tags["lake/trajectory"])
        assert (kept.task, kept.environment, kept.policy_version) == (
            tags["lake/task"], tags["lake/environment"], tags["lake/policy"],
        )  # fmt: skip
        assert [span.name for span in trace.data.spans][1:] == [step.tool or step.kind for step, _ in kept.steps]
