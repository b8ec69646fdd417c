"""What the loop makes of a stage that raises: which stage, why, and what to do about it."""

from __future__ import annotations

import os
import signal
import time

import dagster as dg
import pytest

from agent_world.errors import BadInputError
from assets.settings import PROFILES
from assets.stage import UnfinishedStageError
from dagster_project import stages
from dagster_project.cli.common import typed

PASSING = [ConnectionError("reset"), UnfinishedStageError("tools", {"rail": "no sandbox"})]


def run(monkeypatch, lake: str, *assets: dg.AssetsDefinition) -> None:
    """Materialise these assets as the loop does its own."""
    monkeypatch.setattr(stages, "ASSETS", list(assets))
    with dg.DagsterInstance.ephemeral() as instance:
        loop = stages.Stages(instance, lake, PROFILES["smoke"])
        loop.run("A stage", [asset.key.to_user_string() for asset in assets])


def raising(error: Exception) -> dg.AssetsDefinition:
    @dg.asset
    def broken() -> None:
        raise error

    return broken


@dg.asset
def sound() -> None:
    """Nothing to see."""


def refused(monkeypatch, lake: str, error: Exception) -> stages.StageFailedError:
    with pytest.raises(stages.StageFailedError) as failed:
        run(monkeypatch, lake, sound, raising(error))
    return failed.value


def test_an_error_of_ours_keeps_its_sentence_and_the_stage_its_cause(monkeypatch, tmp_path):
    error = BadInputError("a.csv, line 3", "too many cells", "mend it")
    failed = refused(monkeypatch, str(tmp_path), error)
    assert failed.__cause__ is error
    assert str(failed) == "stage broken: a.csv, line 3: too many cells; mend it; what was committed is kept"


@pytest.mark.parametrize("error", PASSING, ids=lambda error: type(error).__name__)
def test_what_may_go_well_the_next_time_is_to_be_resumed(monkeypatch, tmp_path, error):
    said = str(refused(monkeypatch, str(tmp_path), error))
    assert said.endswith(f"is kept, go on with: {typed('run', '--resume', '--lake', str(tmp_path))}")


def test_a_fault_of_the_code_is_one_line_and_points_to_its_trace(monkeypatch, tmp_path):
    said = str(refused(monkeypatch, str(tmp_path), KeyError("x")))
    assert said == (
        "stage broken: KeyError: 'x'; what was committed is kept, run again with --debug for the trace: "
        + typed("run", "--resume", "--lake", str(tmp_path), "--debug")
    )


def test_a_blocking_check_that_fails_names_the_stage_and_the_check(monkeypatch, tmp_path):
    @dg.asset(check_specs=[dg.AssetCheckSpec("rows_keep_their_rules", asset="checked", blocking=True)])
    def checked() -> dg.MaterializeResult:
        found = dg.AssetCheckResult(check_name="rows_keep_their_rules", passed=False)
        return dg.MaterializeResult(check_results=[found])

    with pytest.raises(stages.StageFailedError, match=r"stage checked: .* checked: rows_keep_their_rules;"):
        run(monkeypatch, str(tmp_path), checked)


def test_ctrl_c_is_an_interruption_and_no_failure(monkeypatch, tmp_path):
    @dg.asset
    def long_one() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)

    with pytest.raises(stages.RunInterruptedError, match="interrupted in stage long_one"):
        run(monkeypatch, str(tmp_path), sound, long_one)
