"""The whole loop, small: one real run through Dagster, and what must hold of it afterwards."""

from __future__ import annotations

import json

import pytest

from agent_world import world
from agent_world.home import service_home
from agent_world.tasks.exclusions import TaskExclusions
from tests.command import agent_world


def versions(lake: world.World) -> list[dict[str, str]]:
    """Every version of every artifact in the lake."""
    return sorted(lake.read("versions", columns=["version_id"]), key=lambda row: row["version_id"])


@pytest.mark.timeout(900)
def test_the_run_ends_with_a_table_of_the_rounds_and_a_report(ran):
    lake, done = ran
    assert "pi1" in done.stdout + done.stderr
    page = (service_home(str(lake)) / "report.html").read_text("utf-8")
    assert "Validity ladder" in page
    assert "<svg" in page
    assert not any(outside in page for outside in ("<script", "<link", 'src="http', "url(http"))


def test_every_stage_left_its_artifacts(lake):
    for table in ("themes", "databases", "tools", "tool_tests", "environments", "taxonomy", "tasks", "task_sets",
                  "trajectories", "checkpoints", "evaluations", "training_metrics", "diagnoses", "diagnosis_scores",
                  "tool_graph_edges", "gate_verdicts", "rewards", "runs"):  # fmt: skip
        assert lake.read(table), table
    kept = lake.read("trajectories", where={"purpose": "training"})
    played_from = {lake.resolve("checkpoint", name) for name in ("sft", "pi1-demonstrations")}
    assert {row["policy_version"] for row in kept} <= played_from
    assert kept


def test_themes_without_data_are_rejected_by_evidence(lake):
    rejected = lake.read("gate_verdicts", where={"gate": "match", "accepted": False})
    assert rejected
    assert all(row["reason"] for row in rejected)


def test_every_environment_can_be_used_and_has_tools_that_write(lake):
    for environment in lake.environments():
        assert any(tool.writes for tool in environment.tools)
        with environment.session(seed=7) as session:
            assert session.digest() == environment.database.digest


def test_accepted_tasks_are_of_both_kinds_and_some_change_the_state(lake):
    accepted = lake.read("tasks", where={"accepted": True})
    assert {row["kind"] for row in accepted} == {"graph", "program"}
    assert any(row["state_diff"] for row in accepted)


def test_every_demonstration_and_every_attempt_in_the_arena_was_replayed(lake):
    verdicts = {row["subject"]: row["accepted"] for row in lake.read("gate_verdicts", where={"gate": "trajectory"})}
    for purpose in ("demonstration", "arena"):
        rows = lake.read("trajectories", where={"purpose": purpose})
        rows = [row for row in rows if row["status"] != "infra_error"]
        assert rows
        assert all(verdicts.pop(row["version_id"]) for row in rows)
    assert not verdicts


def test_no_evaluation_task_was_trained_on(lake):
    rows = lake.read("tasks", columns=["version_id", "purpose", "tier"])
    made = {row["version_id"]: lake.task(row["version_id"]).task for row in rows if row["tier"]}
    trained = TaskExclusions.of(task for task in made.values() if task.purpose not in ("held_out", "arena"))
    sets = {row["name"]: row["tasks"] for row in lake.read("task_sets")}
    for name in ("held_out", "arena-r01"):
        assert sets[name]
        assert not any(trained.forbid(made[version]) for version in sets[name])


def test_checkpoints_follow_each_other(lake):
    rows = {row["name"]: row for row in lake.read("checkpoints")}
    assert rows["sft"]["base"] == rows["untrained"]["version_id"]
    assert rows["pi0"]["base"] == rows["sft"]["version_id"]
    assert rows["untrained"]["digest"] != rows["sft"]["digest"]


def test_a_second_run_makes_nothing_new(ran, lake):
    before = versions(lake)
    again = agent_world("run", "--profile", "smoke", lake=ran[0])
    assert again.returncode == 0, again.stderr[-2000:]
    assert versions(world.open(ran[0])) == before


def test_the_projections_are_what_the_events_say(ran):
    done = agent_world("replay", "--verify", lake=ran[0])
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_audit_finds_nothing_broken(ran):
    sample = ("--tasks", "12", "--trajectories", "60", "--seed", "99")
    done = agent_world("audit", *sample, "--format", "json", lake=ran[0])
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert {row["gate"] for row in json.loads(done.stdout)} >= {
        "tool",
        "environment",
        "gold",
        "null",
        "random",
        "trajectory",
    }


def test_a_checkpoint_can_be_followed_to_the_source_of_its_data(ran, lake):
    version = lake.resolve("checkpoint", "pi1")
    done = agent_world("lineage", "upstream", version, "--format", "json", lake=ran[0])
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    kinds = {lake.kind_of(hop["version_id"]) for hop in found["hops"]}
    assert {"theme", "database", "tool", "environment", "task", "task_set"} <= kinds


def test_the_tracking_and_the_lake_name_each_other(ran, lake):
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{service_home(str(ran[0])) / 'mlflow.db'}")
    (experiment,) = (e for e in client.search_experiments() if e.name == "agent-world")
    runs = {run.info.run_id: run for run in client.search_runs([experiment.experiment_id])}
    checkpoint = lake.read("checkpoints", where={"name": "pi1"})[-1]
    run = runs[checkpoint["mlflow_run"]]
    assert run.data.tags["dagster/run_id"]
    assert run.data.tags["mlflow.parentRunId"] in runs
