"""A stage of the loop over a lake in a bucket: what MLflow keeps lies beside the lake, in the same store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import dagster as dg

from agent_world import world
from agent_world.home import artifact_root, service_home
from agent_world.lake.storage import open_storage
from agent_world.world import save_task
from assets import evaluation
from assets.partitions import rounds
from assets.resources import EngineResource, LakeResource, RunResource, TrackerResource
from assets.settings import Settings
from assets.tracking import MODEL
from tests.assets.test_evaluation import samples_of
from tests.rollouts.cases import ENVIRONMENT, READING
from tests.toy_lake import save_toy

SETTINGS = Settings(samples=2)


def test_a_checkpoint_is_evaluated_and_all_that_mlflow_keeps_lies_in_the_bucket(s3: str, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    lake = world.open(f"{s3}/run", create=True)
    with lake.begin("toy", derivation="d0") as batch:
        environment, _ = save_toy(batch, ENVIRONMENT)
        task = save_task(batch, replace(READING, environments=(environment,)))
        held_out = {"name": "held_out", "purpose": "held_out", "round": 0, "tasks": [task], "size": 1}
        batch.create("task_set", "held_out", held_out, parents=[(task, "task")])
        for name in ("untrained", "sft", "pi0"):
            payload = {"name": name, "round": 0, "digest": name, "method": "grpo"}
            batch.create("checkpoint", name, payload, files={"a/b.json": name.encode()}, blob_in_identity=False)
    tracker = TrackerResource(lake_uri=f"{lake.uri}/", settings_json="{}")
    log = tracker.open()
    best = lake.resolve("checkpoint", "pi0")
    log.register(log.round_run("r00", {}, {}), best, lake.files(best), {"lake": lake.uri})
    monkeypatch.setattr(evaluation, "samples_of", samples_of)
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions(rounds.name, ["r00"])
        evaluation.evaluation(
            dg.build_asset_context(partition_key="r00", instance=instance), lake=LakeResource(uri=lake.uri),
            run=RunResource.of(SETTINGS), tracker=tracker, engine=EngineResource(workers=1),
        )  # fmt: skip
    assert len(lake.read("evaluations")) == 3 * (1 + SETTINGS.samples)
    source = log.client.get_model_version_by_alias(MODEL, "champion").source
    assert source.endswith(f"checkpoints/{best}")
    kept = [item.key for item in open_storage(artifact_root(lake.uri)).list()]
    assert any(key.endswith(f"checkpoints/{best}/a/b.json") for key in kept)
    traces = log.client.search_traces(locations=[log.experiment])
    assert len(traces) == 3 * SETTINGS.samples and all(trace.data.spans for trace in traces)
    assert [path.name for path in service_home(lake.uri).iterdir()] == ["mlflow.db"]


def test_two_ways_to_write_one_address_mean_one_place(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert service_home("s3://bucket/lake/") == service_home("s3://bucket/lake") != service_home("s3://bucket/other")
    assert service_home(f"file://{tmp_path}/lake") == service_home(f"{tmp_path}/lake")
    assert artifact_root("s3://bucket/lake/") == "s3://bucket/lake.mlflow"
    assert artifact_root("s3://bucket") == "s3://bucket/.mlflow"
    assert artifact_root(f"{tmp_path}/lake") == (tmp_path / "lake.services" / "mlflow-artifacts").as_uri()
