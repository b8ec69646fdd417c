"""What a run leaves out is told at its end and by `status`, until it is made after all."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from agent_world import world
from assets.failures import Failed, failures
from assets.stage import FAILED
from dagster_project.cli.common import typed
from dagster_project.cli.status import command
from dagster_project.summary import SHOWN, print_failures


@pytest.fixture
def lake(tmp_path) -> world.World:
    return world.open(tmp_path / "lake", create=True)


def set_aside(lake: world.World, stage: str, partition: str, why: str, reason: str = FAILED) -> None:
    with lake.begin(stage, partition, derivation="first") as batch:
        batch.quarantine(stage=stage, item=partition, reason=reason, detail=why, raw=b"a trace")


def test_what_failed_is_listed_by_stage_until_it_is_made(lake):
    set_aside(lake, "tools", "rail", "KeyError: 'x'")
    set_aside(lake, "mined", "ferry", "bad.csv: ragged; mend it")
    set_aside(lake, "themes", "bad.json, line 3", "a comma", reason="not_json")
    expected = [Failed("mined", "ferry", "bad.csv: ragged; mend it"), Failed("tools", "rail", "KeyError: 'x'")]
    assert failures(lake) == expected
    with lake.begin("tools", "rail", derivation="second"):
        pass
    assert failures(lake) == expected[:1]


def test_status_lists_what_failed(lake):
    set_aside(lake, "tools", "rail", "KeyError: 'x'")
    lines = json.loads(CliRunner().invoke(command, ["--lake", lake.uri, "--format", "json"]).stdout)
    assert {"section": "failed", "name": "tools, rail", "count": 1, "detail": "KeyError: 'x'"} in lines


def test_the_end_of_a_run_says_how_many_of_which_stage_failed_and_why(lake, capsys):
    print_failures(lake, lake.uri)
    assert capsys.readouterr().err == ""
    for number in range(SHOWN + 2):
        set_aside(lake, "tools", f"rail-{number:02}", f"KeyError: [{number}]\nin a query " + "of many words " * 40)
    set_aside(lake, "mined", "ferry", "ragged")
    print_failures(lake, lake.uri)
    head, *lines, rest = capsys.readouterr().err.strip().splitlines()
    assert head == f"Failed and left out: 1 of mined, {SHOWN + 2} of tools"
    assert len(lines) == SHOWN and lines[0] == "  mined ferry: ragged"
    assert lines[1].startswith("  tools rail-00: KeyError: [0] in a query of") and len(lines[1]) < 250
    assert rest == f"  and 3 more: {typed('status', '--lake', lake.uri)}"
