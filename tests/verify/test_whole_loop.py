"""The long checks of the whole loop: killed anywhere it ends with the same artifacts; two lakes from one seed agree."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from agent_world import world
from agent_world.home import service_home
from agent_world.identity import rng
from agent_world.lake.faults import KILL_AT
from agent_world.lake.lineage import impact
from tests.command import agent_world

pytestmark = pytest.mark.long

MADE = ("themes", "databases", "tools", "tool_tests", "environments", "taxonomy", "tasks", "task_sets", "trajectories",
        "checkpoints", "diagnoses", "diagnosis_scores")  # fmt: skip
MOMENTS = (
    ("blob_write", 6), ("event_commit", 20), ("event_commit", 60), ("after_event_commit", 20), ("projection", 10),
    ("projection", 20), ("training", 4), ("after_stage_commit", 10), ("after_stage_commit", 30),
    ("after_stage_commit", 60),
)  # fmt: skip
"""Where a run is killed, and how often it comes there for sure."""
KILLS = tuple(f"{point}:{rng('kill', place).randint(1, most)}" for place, (point, most) in enumerate(MOMENTS))


def run(lake: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """One smoke run on one thread, so that checkpoints are comparable."""
    profile = ("run", "--profile", "smoke", "--threads", "1")
    return agent_world(*profile, *options, lake=lake, timeout=1800, **{"OMP_NUM_THREADS": "1", **environment})


def verified(lake: Path) -> subprocess.CompletedProcess[str]:
    """Every projection folded again from the events and compared."""
    return agent_world("replay", "--verify", lake=lake)


def versions(lake: Path) -> dict[str, list[str]]:
    """Every version in the lake, by table."""
    opened = world.open(lake)
    return {table: sorted(row["version_id"] for row in opened.read(table, columns=["version_id"])) for table in MADE}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Path:
    lake = tmp_path_factory.mktemp("undisturbed") / "lake"
    done = run(lake)
    assert done.returncode == 0, done.stderr[-3000:]
    return lake


def test_two_fresh_lakes_from_one_seed_hold_the_same_versions(undisturbed, tmp_path):
    assert run(tmp_path / "lake").returncode == 0
    assert versions(tmp_path / "lake") == versions(undisturbed)


@pytest.mark.parametrize("point", KILLS)
def test_a_killed_run_resumes_to_the_same_versions(undisturbed, tmp_path, point):
    lake = tmp_path / "lake"
    killed = run(lake, **{KILL_AT: point})
    assert killed.returncode == -signal.SIGKILL, f"{point} was never reached: {killed.stderr[-500:]}"
    resumed = run(lake, "--resume")
    assert resumed.returncode == 0, resumed.stderr[-3000:]
    assert versions(lake) == versions(undisturbed)
    opened = world.open(lake)
    events = [row["event_id"] for row in opened.read("events", columns=["event_id"])]
    assert len(events) == len(set(events))
    done = verified(lake)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_lake_answers_with_the_databases_of_dagster_and_mlflow_deleted(undisturbed, tmp_path):
    lake = tmp_path / "lake"
    shutil.copytree(undisturbed, lake)
    assert not Path(f"{lake}.services").exists()
    for command in (("replay", "--verify"), ("lineage", "upstream", "pi1")):
        done = agent_world(*command, lake=lake)
        assert done.returncode == 0, done.stderr
    assert service_home(str(undisturbed)).exists()


def test_the_impact_of_fifty_tools_is_what_the_stored_calls_say(undisturbed):
    lake = world.open(undisturbed)
    pins = {row["version_id"]: set(row["tool_versions"]) for row in lake.read("environments")}
    calls = {
        row["version_id"]: (row["environments"], {call["tool"] for call in row["plan"]})
        for row in lake.read("tasks", columns=["version_id", "environments", "plan"])
    } | {
        row["version_id"]: ([row["environment"]], {step["tool"] for step, _ in row["steps"]})
        for row in lake.read("trajectories", columns=["version_id", "environment", "steps"])
    }
    tools = lake.read("tools", columns=["version_id", "name"])
    asked = rng("impact", 0).sample(tools, 50)
    for tool in asked:
        used_by = {
            version
            for version, (environments, names) in calls.items()
            if tool["name"] in names and any(tool["version_id"] in pins[pinned] for pinned in environments)
        }
        assert {link.child for link in impact(lake, tool["version_id"]).used_by} == used_by, tool
    assert any(not impact(lake, tool["version_id"]).used_by for tool in tools)  # walked past, or never walked to
