"""One real run of the profile `smoke`, shared by the tests that look at what it left."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from agent_world import world
from tests.command import agent_world


@pytest.fixture(scope="session")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A lake after one run of the profile `smoke`."""
    lake = tmp_path_factory.mktemp("loop") / "lake"
    done = agent_world("run", "--profile", "smoke", lake=lake)
    assert done.returncode == 0, done.stderr[-3000:]
    return lake, done


@pytest.fixture(scope="session")
def lake(ran) -> world.World:
    return world.open(ran[0])
