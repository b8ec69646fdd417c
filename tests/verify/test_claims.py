"""What a run must show, read off its lake: how much there is and whether it holds, and for `full` what was learnt."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from agent_world import world
from agent_world.arena.evaluation import paired_difference
from agent_world.environments.model import Environment
from agent_world.reporting.figures import differences_table, weak_environments
from agent_world.reporting.rounds import trainings_table
from agent_world.world import World
from tests.command import agent_world

pytestmark = pytest.mark.long

_HOURS = 4 * 3600


def ran(lake: Path, profile: str) -> World:
    """A lake after a run of the profile."""
    done = agent_world("run", "--profile", profile, lake=lake, timeout=_HOURS)
    assert done.returncode == 0, done.stderr[-3000:]
    return world.open(lake)


@pytest.fixture(scope="module")
def default(tmp_path_factory: pytest.TempPathFactory) -> World:
    return ran(tmp_path_factory.mktemp("default") / "lake", "default")


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> World:
    return ran(tmp_path_factory.mktemp("full") / "lake", "full")


def created(lake: World, table: str, **where: object) -> list[dict]:
    return lake.read(table, where={"state": "created", **where})


def test_a_default_run_rejects_by_evidence_the_themes_that_no_data_answers(default):
    rejected = default.read("gate_verdicts", where={"gate": "match", "accepted": False})
    assert len(created(default, "themes")) >= 60
    assert len({row["subject"] for row in rejected}) >= 20
    assert {row["reason"] for row in rejected} <= {"no_data", "weak_evidence"}
    assert all(row["evidence"] for row in rejected)


def test_a_default_run_has_environments_of_many_sources_and_categories(default):
    environments = created(default, "environments", round=0)
    databases = {row["version_id"]: row for row in created(default, "databases")}
    themes = {row["version_id"]: row for row in created(default, "themes")}
    tables = [table for row in environments for table in databases[row["database_version"]]["tables"]]
    assert len(environments) >= 12
    assert len({table["source"]["package"] for table in tables if table["source"]}) >= 8
    assert {themes[row["theme"]]["source"] for row in environments} == {"M1", "M2", "M3"}
    assert len({row["category"] for row in environments}) >= 6


def additions(environment: Environment) -> dict[str, int]:
    """The tables and documents that complexification added, by name, with the round of each."""
    database = environment.database
    added = {table.name: table.added_in for table in database.tables if table.workflow is None}
    added |= {document.path: document.added_in for document in database.documents}
    return {name: round for name, round in added.items() if round > 0}


def test_a_default_run_enriches_every_database_at_least_twice(default):
    counted = defaultdict(set)
    for row in default.read("gate_verdicts", where={"gate": "complexify", "accepted": True}):
        if "new" in row["evidence"]["added"].values():
            counted[row["environment"]].add(row["subject"])
    for environment in default.environments():
        key = environment.environment_id
        assert len(counted[key]) >= 2 and len(set(additions(environment).values())) >= 2, key


def test_a_kept_tool_and_a_kept_task_of_a_default_run_use_each_addition(default):
    played = defaultdict(set)
    for row in created(default, "tasks", accepted=True):
        played[row["partition"]] |= set(row["shape"])
    idle = []
    for environment in default.environments():
        for name in additions(environment):
            over = {tool.name for tool in environment.tools if name in (*tool.tables, *tool.documents)}
            if not over & played[environment.environment_id]:
                idle.append((environment.environment_id, name, over))
    assert idle == []


def test_a_default_run_reads_documents_of_four_formats_and_writes_some(default):
    over = [
        (tool, document.format)
        for environment in default.environments()
        for tool in environment.tools
        for document in environment.database.documents
        if document.path in tool.documents
    ]
    assert len({format for _, format in over} & {"json", "csv", "sql", "html", "tex", "yaml"}) >= 4
    assert any(tool.writes for tool, _ in over)


def test_a_default_run_has_more_than_ten_tools_an_environment_and_a_third_of_them_write(default):
    environments = created(default, "environments")
    tools = sum(row["tools"] for row in environments)
    assert tools > 10 * len(environments)
    assert 3 * sum(row["writing_tools"] for row in environments) >= tools


def test_a_default_run_has_tasks_of_both_kinds_everywhere_and_a_third_change_state(default):
    tasks = created(default, "tasks", accepted=True)
    kinds = defaultdict(set)
    for row in tasks:
        kinds[row["partition"]].add(row["kind"])
    assert len(tasks) >= 300
    assert {row["artifact_id"] for row in created(default, "environments")} <= kinds.keys()
    assert all(found == {"graph", "program"} for found in kinds.values()), kinds
    assert 3 * sum(bool(row["state_diff"]) for row in tasks) >= len(tasks)
    calls = [len(row["plan"]) for row in tasks]
    assert min(calls) == 1 and max(calls) >= 12


def in_set(lake: World, name: str) -> list[dict]:
    """The tasks of a named set."""
    (found,) = created(lake, "task_sets", name=name)
    return lake.read("tasks", where={"version_id": found["tasks"]})


def test_a_default_run_trains_and_evaluates_in_half_of_its_environments(default):
    environments = len(created(default, "environments"))
    trained, held_out = in_set(default, "training"), in_set(default, "held_out")
    for tasks in (trained, held_out):
        assert 2 * len({row["partition"] for row in tasks}) >= environments
    assert len(held_out) >= 100 and {row["kind"] for row in held_out} == {"graph", "program"}


def test_a_default_run_measures_five_points_on_a_hundred_tasks(default):
    samples = defaultdict(lambda: defaultdict(int))
    for row in default.read("evaluations", where={"mode": "sampled"}):
        samples[row["point"]][row["task"]] += 1
    for point in ("untrained", "sft", "pi0", "pi1", "pi2"):
        assert len(samples[point]) >= 100 and set(samples[point].values()) == {8}, point


def test_a_default_run_reports_its_gains_on_the_weak_environments_apart(default):
    reported = {(row["from"], row["to"]) for row in differences_table(default) if row["environments"] == "weak"}
    assert weak_environments(default)
    assert reported >= {("sft", "pi0"), ("pi0", "pi1"), ("pi1", "pi2"), ("pi0", "pi2")}


def test_every_accepted_artifact_of_a_default_run_passes_its_gates_again(default):
    done = agent_world("audit", lake=default.uri, timeout=_HOURS)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def gain(lake: World, before: str, after: str, environments: set[str] | None = None) -> float:
    """The lower end of the paired 95 % interval of what a policy gained on the held-out set."""
    rows = lake.read("evaluations", where={"mode": "sampled", "point": [before, after]})
    kept = [row for row in rows if environments is None or row["environment"] in environments]
    found = paired_difference(*([row for row in kept if row["point"] == point] for point in (after, before)))
    assert found
    return found.low


def test_grpo_on_the_general_set_gains_beyond_its_interval(full):
    assert gain(full, "sft", "pi0") > 0


def test_two_rounds_gain_beyond_their_interval(full):
    assert gain(full, "pi0", "pi2") > 0


def test_two_rounds_gain_beyond_their_interval_where_they_aimed(full):
    targeted = created(full, "tasks", purpose="targeted", accepted=True)
    assert gain(full, "pi0", "pi2", {row["partition"] for row in targeted}) > 0


@pytest.mark.parametrize(("before", "after"), [("sft", "pi0"), ("pi0", "pi2")])
def test_the_gains_on_the_weak_environments_are_beyond_their_intervals_too(full, before, after):
    assert gain(full, before, after, weak_environments(full)) > 0


@pytest.mark.parametrize("name", ["1-demonstrations", "1", "2-demonstrations", "2"])
def test_the_control_had_the_same_budget(full, name):
    made = {row["checkpoint"]: row for row in trainings_table(full)}
    for spent in ("steps", "new demonstrations"):
        assert made[f"pi{name}"][spent] == made[f"control{name}"][spent], spent
