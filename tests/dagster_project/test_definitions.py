"""The code location as Dagster sees it."""

from __future__ import annotations

import pytest

from agent_world.errors import AgentWorldError
from dagster_project.cli import COMMANDS
from dagster_project.cli.common import typed


@pytest.fixture(scope="module")
def graph():
    from dagster_project.definitions import defs

    return defs.resolve_asset_graph()


STAGES = {
    "themes", "mined", "databases", "tools", "environments", "taxonomy", "tool_graphs", "tasks", "task_sets",
    "diagnosis_score", "untrained", "cold_start", "base_policy", "arena", "diagnosis", "targeted_tasks", "round_policy",
    "evaluation", "report",
}  # fmt: skip


def test_every_stage_is_an_asset(graph):
    assert {key.to_user_string() for key in graph.get_all_asset_keys()} == STAGES


def test_every_asset_says_what_it_is(graph):
    assert [str(key) for key in graph.get_all_asset_keys() if not graph.get(key).description] == []


def test_targeted_partitions_are_filled_in_one_run(graph):
    (targeted,) = (key for key in graph.get_all_asset_keys() if key.to_user_string() == "targeted_tasks")
    assert graph.get(targeted).backfill_policy.max_partitions_per_run is None


def test_every_table_with_rules_is_checked_by_a_blocking_check(graph):
    from expectations import SUITES

    checks = {spec.name: spec for key in graph.asset_check_keys for spec in [graph.get_check_spec(key)]}
    assert {f"{table}_keep_their_rules" for table in SUITES} == set(checks)
    assert all(spec.blocking for spec in checks.values())


def test_the_daemon_targets_after_a_diagnosis_once_it_is_told_to():
    from dagster import DefaultSensorStatus

    from dagster_project.definitions import defs

    (sensor,) = defs.sensors
    assert sensor.name == "targeted_by_diagnosis"
    assert sensor.default_status == DefaultSensorStatus.STOPPED


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_explains_itself(name):
    from click.testing import CliRunner

    from dagster_project.cli import cli

    shown = CliRunner().invoke(cli, [name, "--help"])
    assert shown.exit_code == 0, shown.output
    assert len(shown.output.splitlines()) > 4


def test_an_interrupted_run_says_in_one_line_how_to_go_on(monkeypatch, tmp_path):
    from click.testing import CliRunner

    from dagster_project import loop, stages
    from dagster_project.cli import cli

    def interrupted(*_, **__):
        raise stages.RunInterruptedError(["cold_start"])

    monkeypatch.setattr(loop, "run_loop", interrupted)
    lake = str(tmp_path / "lake")
    shown = CliRunner().invoke(cli, ["run", "--profile", "smoke", "--seed", "3", "--lake", lake])
    assert shown.exit_code == 130
    assert shown.stderr == (
        "interrupted in stage cold_start; what was committed is kept, go on with: "
        + typed("run", "--resume", "--lake", lake)
        + "\n"
    )


def test_an_error_is_a_sentence_with_a_cure():
    from dagster_project.runs import UnfinishedRunError

    error = UnfinishedRunError("lake", "abc")
    assert isinstance(error, AgentWorldError)
    assert str(error) == (
        f"lake holds the unfinished run abc; go on with it: {typed('run', '--resume', '--lake', 'lake')},"
        " or choose another --lake"
    )
