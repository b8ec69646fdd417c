"""What was accepted is audited, all of it, and what is planted against a gate is found."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import save_file

from agent_world import world
from agent_world.auditing import audit_lake
from agent_world.codec import encode
from agent_world.engine import Engine
from agent_world.environments.model import SQLITE_FILE, Call, Document, ToolTest
from agent_world.environments.state import logical_digest
from agent_world.rollouts.loop import EpisodeSpec, roll_out
from agent_world.rollouts.policies import Gold
from agent_world.world import save_database, save_environment, save_task, save_trajectory
from assets.verdicts import verdict
from dagster_project.cli.audit import command
from tests.auditing.test_databases import changed
from tests.rollouts.cases import ENVIRONMENT, PROGRAM, READING, WRITING
from tests.toy_lake import THEME
from trainers.checkpoint import checkpoint_digest
from trainers.gate import objections_now

TOPIC = {**THEME, "theme_id": THEME["origin"], "tools": [{"name": "lend", "input_schema": {"type": "object"}}]}
RICHER = changed("INSERT INTO books VALUES ('B7', 'Low Tide', 'A1', 'novel', 2020, 2)")
EMPTIED = changed("DELETE FROM members")
MAPS = {"book_id": "B3", "title": "Winter Maps"}
MEMBER = {"member_id": "M2", "name": "Tom Okafor"}


def expecting(tool, arguments, value):
    return ToolTest(
        name=f"{tool} once", tool=tool, kind="typical", call=Call(tool=tool, arguments=arguments), expect=value
    )


def refusing(tool, arguments):
    call = Call(tool=tool, arguments=arguments)
    return ToolTest(name=f"{tool} of nothing", tool=tool, kind="refusal", call=call, refusal="not_found")


def unit_tests(books, copies):
    """A test for each tool. What one of them expects depends on the database."""
    return (
        expecting("search_books", {"title": "Maps"}, {"items": [MAPS], "total": 1}),
        expecting("count_books_by_genre", {"genre": "novel"}, {"books": books, "copies": copies}),
        expecting("find_member", {"name": "Tom Okafor"}, MEMBER),
        refusing("get_book", {"book_id": "B99"}),
        refusing("lend_book", {"book_id": "B99", "member_id": "M1"}),
        refusing("return_book", {"loan_id": "L1"}),
    )


def add_database(batch, files, *, round, **rows):
    theme = batch.create("theme", "toy-theme", TOPIC)
    tables = tuple(replace(table, rows=rows.get(table.name, table.rows)) for table in ENVIRONMENT.database.tables)
    made = replace(ENVIRONMENT.database, theme=theme, round=round, tables=tables, digest=logical_digest(files))
    return save_database(batch, made, files, [(theme, "theme")])


def add_tool(batch, database, tool, test):
    version = batch.create("tool", tool.tool_id, encode(tool), parents=[(database, "database")])
    batch.observe(version, {"accepted": True, "accuracy": 1.0, "tests": 1})
    batch.create("tool_test", f"{tool.tool_id}/01", encode(test), parents=[(version, "tool")])
    return version


def add_environment(batch, database, tests):
    tools = [add_tool(batch, database, ENVIRONMENT.tool(test.tool), test) for test in tests]
    return save_environment(
        batch, environment_id="toy-library", title="City library", description="",
        theme=batch.create("theme", "toy-theme", TOPIC), database=database, tools=tools,
    )  # fmt: skip


def add_task(batch, task, environment, tier="train"):
    bound = replace(task, environments=(environment,))
    saved = save_task(batch, bound)
    batch.observe(saved, {"accepted": tier != "practice", "tier": tier})
    return saved, bound


def checkpoint_files(folder: Path, weight: float) -> dict[str, bytes]:
    folder.mkdir()
    save_file({"weight": torch.tensor([1.0, weight])}, folder / "model.safetensors")
    (folder / "config.json").write_text('{"model_type": "toy"}')
    (folder / "tokenizer.json").write_text("{}")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def add_checkpoint(batch, folder, *, weight=2.0, digest=None, method="sft", asked=5, steps=5, spread=()):
    """A checkpoint that its gate accepted, with metrics of `steps` of the steps that were `asked` for."""
    files = checkpoint_files(folder, weight)
    payload = {
        "name": folder.name, "round": 0, "digest": digest or checkpoint_digest(folder), "method": method,
        "job": folder.name, "steps_done": asked,
    }  # fmt: skip
    version = batch.create("checkpoint", folder.name, payload, files=files, blob_in_identity=False)
    verdict(batch, "checkpoint", "checkpoint", version, accepted=True, evidence={"steps_done": asked, "asked": asked})
    for step in range(1, steps + 1):
        row = {"job": folder.name, "stage": folder.name, "step": step}
        batch.record("training_metrics", {**row, "metric": "loss", "value": 1.0})
        if spread:
            batch.record("training_metrics", {**row, "metric": "zero_spread_groups", "value": spread[step - 1]})
    return version


@pytest.fixture
def lake(tmp_path):
    """Two versions of one environment; tasks pinned to the first; their runs; a checkpoint. All of it sound."""
    opened = world.open(tmp_path / "lake", create=True)
    with opened.begin("toy", derivation="d0") as batch:
        first = add_environment(batch, add_database(batch, ENVIRONMENT.files, round=0), unit_tests(3, 9))
        kept = [add_task(batch, READING, first), add_task(batch, WRITING, first, "hard")]
        kept.append(add_task(batch, PROGRAM, first, "practice"))
        pinned = replace(ENVIRONMENT, version=first)
        for version, task in kept:
            spec = EpisodeSpec(task=task, environment=pinned, task_version=version)
            [trajectory] = roll_out([spec], Gold([task]))
            save_trajectory(batch, trajectory, purpose="solver", round=0)
        add_checkpoint(batch, tmp_path / "checkpoint", steps=5)
    with opened.begin("enriched", derivation="d1") as batch:
        add_environment(batch, add_database(batch, RICHER, round=1, books=7), unit_tests(4, 11))
    return opened


def add_mined(batch, *, round=0, previous=None, package="toy", licence="CC0-1.0"):
    """A database without workflow tables; a later round adds a document of some package."""
    source = replace(ENVIRONMENT.database.tables[0].source, licence=licence)
    tables = tuple(replace(table, source=source) for table in ENVIRONMENT.database.tables if table.workflow is None)
    files, documents = changed("DROP TABLE loans"), list(ENVIRONMENT.database.documents)
    if previous:
        documents.append(Document(path="more.txt", format="txt", title="More", source=replace(source, package=package)))
        files["documents/more.txt"] = b"More about books."
    theme = batch.create("theme", "toy-theme", TOPIC)
    made = replace(
        ENVIRONMENT.database, database_id="mined", theme=theme, round=round, tables=tables,
        documents=tuple(documents), digest=logical_digest(files),
    )  # fmt: skip
    return save_database(batch, made, files, [(theme, "theme"), *([(previous, "previous")] if previous else [])])


def audited(lake, **options):
    """Findings by (gate, kind)."""
    with Engine(1) as engine:
        found = audit_lake(lake, engine=engine, seed=5, checkpoint_gate=objections_now, **options)
    return {(finding.gate, finding.kind): finding for finding in found}


def broken(findings):
    return {key: [word.reason for word in finding.broken] for key, finding in findings.items() if finding.broken}


def test_everything_accepted_is_audited_superseded_versions_and_their_own_tests_included(lake):
    assert [row["state"] for row in lake.read("environments")] == ["superseded", "created"]
    told = []
    findings = audited(lake, on_progress=lambda part, done, count: told.append((part, done, count)))
    assert broken(findings) == {}
    assert {kind: finding.audited for (_, kind), finding in findings.items()} == {
        "theme": 1, "database": 2, "tool": 6, "environment": 2, "checkpoint": 1, "task": 2, "practice task": 1,
        "trajectory": 3, "training task": 1,
    }  # fmt: skip
    assert all(finding.audited == finding.accepted for finding in findings.values())
    assert ("random", "task") in findings
    assert ("random", "practice task") not in findings
    assert "of 40 runs pass" in findings["random", "task"].bound
    assert told[:3] == [("theme", 1, 1), ("database", 1, 2), ("database", 2, 2)]


def test_a_sample_is_drawn_by_seed_and_says_so(lake):
    findings = audited(lake, tasks=1, trajectories=2, solver=False)
    assert (findings["trajectory", "trajectory"].audited, findings["trajectory", "trajectory"].accepted) == (2, 3)
    assert sum(kind in ("task", "practice task") for gate, kind in findings if gate == "gold") == 1
    assert ("solver", "training task") not in findings
    assert findings["tool", "tool"].audited == 6


def test_mined_databases_and_their_rounds_go_through_their_own_gates(lake):
    with lake.begin("mined", derivation="d2") as batch:
        first = add_mined(batch)
        add_mined(batch, round=1, previous=first, package="other")
    findings = audited(lake, tasks=0, trajectories=0)
    assert broken(findings) == {}
    assert (findings["database", "database"].audited, findings["complexify", "richer database"].audited) == (4, 1)
    with lake.begin("planted", derivation="d3") as batch:
        add_mined(batch, round=2, previous=first)
        add_mined(batch, licence="")
    assert broken(audited(lake, tasks=0, trajectories=0)) == {
        ("complexify", "richer database"): ["known_source"], ("database", "database"): ["no_provenance"],
    }  # fmt: skip


def test_a_tool_that_fails_in_a_superseded_version_only_is_found(lake):
    """Its version is the same in all three environments: it is the database under it that differs."""
    with lake.begin("emptied", derivation="d2") as batch:
        add_environment(batch, add_database(batch, EMPTIED, round=2, members=0), unit_tests(3, 9))
    with lake.begin("again", derivation="d3") as batch:
        add_environment(batch, add_database(batch, RICHER, round=1, books=7), unit_tests(4, 11))
    assert lake.environment("toy-library").files == RICHER
    findings = audited(lake, tasks=0, trajectories=0)
    assert broken(findings) == {("tool", "tool"): ["low_accuracy"]}
    assert (findings["tool", "tool"].audited, findings["environment", "environment"].audited) == (6, 3)


def test_a_kept_tool_that_no_environment_pins_is_found(lake):
    other = replace(ENVIRONMENT.tool("find_member"), tool_id="loose/find_member", description="Find somebody.")
    with lake.begin("loose", derivation="d2") as batch:
        database = add_database(batch, ENVIRONMENT.files, round=3)
        tool = add_tool(
            batch, database, other, expecting(other.name, {"name": "Tom Okafor"}, {**MEMBER, "member_id": "M9"})
        )
    findings = audited(lake, tasks=0, trajectories=0)
    assert [word.subject for word in findings["tool", "tool"].broken] == [tool]
    assert findings["tool", "tool"].audited == 7


@pytest.mark.parametrize(
    ("task", "tier", "key", "reason"),
    [
        (replace(READING, instruction="Ask search_books who wrote it."), "train", ("leak", "task"), "tool_name"),
        (replace(PROGRAM, plan=PROGRAM.plan[:1]), "practice", ("gold", "practice task"), "other_answer"),
        (replace(READING, instruction="Say what I think."), "train", ("solver", "training task"), "not_consistent"),
    ],
)
def test_a_task_that_a_gate_no_longer_takes_is_found(lake, task, tier, key, reason):
    with lake.begin("planted", derivation="d2") as batch:
        add_task(batch, task, lake.read("environments")[0]["version_id"], tier)
    assert broken(audited(lake, trajectories=0))[key] == [reason]


def test_a_retired_task_is_not_audited_but_the_retired_environment_of_an_accepted_one_is(lake):
    with lake.begin("retired", derivation="d2") as batch:
        batch.retire(lake.read("tasks")[0]["version_id"], "out of date")
        batch.retire(lake.read("environments")[0]["version_id"], "out of date")
    findings = audited(lake, trajectories=0, solver=False)
    assert findings["gold", "task"].accepted == 1
    assert findings["environment", "environment"].audited == 2


def test_a_trajectory_that_replays_to_something_else_is_found(lake):
    stored = lake.trajectory(lake.read("trajectories")[1]["version_id"])
    step, observation = stored.steps[-2]
    steps = (*stored.steps[:-2], (step, replace(observation, value={"loan_id": "LN-1"})), stored.steps[-1])
    with lake.begin("planted", derivation="d2") as batch:
        for number, planted in enumerate((replace(stored, steps=steps), replace(stored, final_digest="0" * 64))):
            save_trajectory(batch, replace(planted, trajectory_id=f"planted-{number}"), purpose="solver", round=0)
    assert broken(audited(lake, tasks=0)) == {("trajectory", "trajectory"): ["other_observation", "other_digest"]}


def test_a_harness_error_is_no_trajectory_to_replay(lake):
    stored = lake.trajectory(lake.read("trajectories")[0]["version_id"])
    outcome = replace(stored.outcome, status="infra_error")
    with lake.begin("planted", derivation="d2") as batch:
        save_trajectory(
            batch,
            replace(stored, outcome=outcome, trajectory_id="planted", final_digest=None),
            purpose="solver",
            round=0,
        )
    assert audited(lake, tasks=0)["trajectory", "trajectory"].audited == 3


def test_a_trajectory_that_its_gate_rejected_is_kept_but_was_never_accepted(lake):
    rejected = lake.read("trajectories")[0]["version_id"]
    with lake.begin("planted", derivation="d2") as batch:
        verdict(batch, "trajectory", "trajectory", rejected, accepted=False, reason="other_digest")
    assert audited(lake, tasks=0)["trajectory", "trajectory"].audited == 2


def test_checkpoints_with_other_files_or_without_numbers_are_found(lake, tmp_path):
    with lake.begin("planted", derivation="d2") as batch:
        add_checkpoint(batch, tmp_path / "pi0", weight=3.0, digest="0" * 64)
        add_checkpoint(batch, tmp_path / "pi1", weight=float("nan"))
    findings = audited(lake, tasks=0, trajectories=0)
    assert broken(findings) == {("checkpoint", "checkpoint"): ["other_digest", "not_finite"]}


def test_a_checkpoint_whose_metrics_end_early_or_never_show_spread_is_found(lake, tmp_path):
    with lake.begin("planted", derivation="d2") as batch:
        add_checkpoint(batch, tmp_path / "untrained", method="init", asked=0, steps=0)
        add_checkpoint(batch, tmp_path / "sound", method="grpo", spread=[1.0, 1.0, 0.5, 1.0, 1.0])
        short = add_checkpoint(batch, tmp_path / "short", steps=4)
        flat = add_checkpoint(batch, tmp_path / "flat", method="grpo", spread=[1.0] * 5)
        both = add_checkpoint(batch, tmp_path / "both", method="grpo", steps=2, spread=[1.0] * 2)
    (found,) = [finding for finding in audited(lake, tasks=0, trajectories=0).values() if finding.kind == "checkpoint"]
    assert {word.subject: word.reason for word in found.broken} == {
        short: "steps_missing", flat: "no_spread", both: "steps_missing, no_spread",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"title": " "}, "no_title"),
        ({"description": ""}, "no_description"),
        ({"tools": [{"name": "lend"}]}, "no_tools, no_input_schema"),
        ({"tools": [*TOPIC["tools"], {"name": "x", "input_schema": {"type": "array"}}]}, "bad_input_schema"),
    ],
)
def test_a_theme_that_its_gate_no_longer_takes_is_found(lake, fields, reason):
    with lake.begin("planted", derivation="d2") as batch:
        batch.create("theme", "planted", {**TOPIC, **fields})
    findings = audited(lake, tasks=0, trajectories=0)
    assert broken(findings) == {("theme", "theme"): [reason]}
    assert findings["theme", "theme"].audited == 2


def test_what_cannot_be_audited_counts_as_broken(lake):
    with lake.begin("planted", derivation="d2") as batch:
        theme = batch.create("theme", "toy-theme", TOPIC)
        made = replace(ENVIRONMENT.database, database_id="bad", theme=theme)
        database = save_database(batch, made, {SQLITE_FILE: b"nothing"}, [])
        bad = save_environment(
            batch, environment_id="bad", title="", description="", theme=theme, database=database, tools=[]
        )
    findings = audited(lake, tasks=0, trajectories=0)
    assert broken(findings)["database", "database"][0].startswith("unreadable")
    assert [word.subject for word in findings["audit", "environment"].broken] == [bad]
    assert findings["environment", "environment"].audited == 2


def test_the_command_says_what_was_a_sample_and_ends_badly_when_something_broke(lake):
    def run(*options):
        return CliRunner().invoke(command, ["--lake", lake.uri, "--workers", "1", "--format", "json", *options])

    sound = run()
    assert (sound.exit_code, "Everything accepted was audited." in sound.stderr) == (0, True)
    assert "Not run again: match," in sound.stderr
    sample = run("--tasks", "1", "--trajectories", "0", "--no-solver")
    assert sample.exit_code == 0
    assert "A sample only:" in sample.stderr
    with lake.begin("planted", derivation="d2") as batch:
        planted, _ = add_task(
            batch, replace(READING, instruction="Use get_book."), lake.read("environments")[0]["version_id"]
        )
    failed = run("--trajectories", "0", "--no-solver")
    assert failed.exit_code == 1
    (row,) = [row for row in json.loads(failed.stdout) if row["broken"]]
    assert (row["gate"], row["examples"]) == ("leak", [f"{planted}: tool_name"])


def test_workers_find_the_same(lake):
    with Engine(2) as engine:
        found = audit_lake(lake, engine=engine, seed=5, checkpoint_gate=objections_now)
    assert {(finding.gate, finding.kind): finding for finding in found} == audited(lake)
