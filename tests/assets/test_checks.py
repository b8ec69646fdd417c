"""A rule that is broken in the lake turns its asset check red, and what comes after is not made."""

from __future__ import annotations

import dagster as dg
import pytest

from agent_world import world
from assets.checks import check_specs, prove_all

SOUND = {"digest": "0" * 64, "method": "init", "steps_done": 0}
PLANTED = {**SOUND, "method": "guessed"}


def materialise(lake):
    @dg.asset(check_specs=check_specs("made", "checkpoints"))
    def made():
        return dg.MaterializeResult(check_results=prove_all(lake, "checkpoints"))

    @dg.asset(deps=[made])
    def after():
        pass

    result = dg.materialize([made, after], raise_on_error=False)
    (check,) = result.get_asset_check_evaluations()
    return check.passed, [event.asset_key.path[-1] for event in result.get_asset_materialization_events()]


@pytest.mark.parametrize(("row", "passed"), [(SOUND, True), (PLANTED, False)])
def test_a_planted_violation_blocks_what_comes_after(tmp_path, row, passed):
    lake = world.open(tmp_path / "lake", create=True)
    with lake.begin("toy", derivation="d0") as batch:
        batch.create("checkpoint", "untrained", {"name": "untrained", **row})
    assert materialise(lake) == (passed, ["made", "after"] if passed else ["made"])
