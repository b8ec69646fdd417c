"""A lake that was made under another SQLite says so where that may matter."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from agent_world import world
from agent_world.auditing import Finding
from agent_world.auditing.judges import Word
from agent_world.environments.runtime import runtime_here
from agent_world.identity import sha256
from dagster_project import cli

HERE = runtime_here()
OLDER = {"python": HERE.python, "sqlite": "3.7.17"}


@pytest.fixture
def lake(tmp_path) -> world.World:
    return world.open(tmp_path / "lake", create=True)


def worked(lake: world.World, stage: str, runtime: dict[str, str]) -> None:
    with lake.begin(stage, derivation=sha256(stage)) as batch:
        batch.record("runtimes", {"stage": stage, "subject": "all", **runtime})


def ran(*arguments: str):
    return CliRunner().invoke(cli.cli, arguments)


def test_status_tells_what_was_made_under_other_versions(lake):
    worked(lake, "tools", OLDER)
    worked(lake, "tasks", HERE._asdict())
    rows = json.loads(ran("status", "--lake", lake.uri, "--format", "json").stdout)
    assert [(row["name"], row["count"], row["detail"]) for row in rows if row["section"] == "made under"] == [
        (f"SQLite 3.7.17 and Python {HERE.python}", 1, f"here are {HERE}: replays may differ"),
        (str(HERE), 1, "as here"),
    ]


@pytest.mark.parametrize(
    ("runtimes", "said"),
    [
        ([OLDER, HERE._asdict()], f"Made under SQLite 3.7.17 and Python {HERE.python}; here are {HERE}."),
        ([HERE._asdict()], None),
        ([], "The lake does not say under which SQLite"),
    ],
)
def test_an_audit_that_finds_a_difference_tells_whether_other_versions_may_be_why(lake, monkeypatch, runtimes, said):
    for number, runtime in enumerate(runtimes):
        worked(lake, f"stage {number}", runtime)
    broken = [Word("trajectory", "trajectory", "t@1", "other_observation")]
    for words, expected in ((broken, said), ([], None)):
        finding = Finding(gate="trajectory", kind="trajectory", accepted=1, audited=1, broken=tuple(words))
        monkeypatch.setattr("agent_world.auditing.audit_lake", lambda *_, found=finding, **__: [found])
        ended = ran("audit", "--workers", "1", "--lake", lake.uri)
        assert ended.exit_code == bool(words), ended.output
        assert (expected in ended.stderr) if expected else ("Python" not in ended.stderr)
