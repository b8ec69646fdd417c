"""A seeded storm over one lake, on a disk that fills up and on a store that fails; its parts are in storm.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lake.s3_proxy import proxy, storm
from tests.lake.storm import CALM

SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 12))]


def survive(command: list[str], batches: int) -> None:
    environment = os.environ | {"STORM_BATCHES": str(batches)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-6000:]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_lake_on_a_disk_that_fills_up_survives(tmp_path: Path, seed: int):
    small = ["bwrap", "--dev-bind", "/", "/", "--size", "128000000", "--tmpfs", str(tmp_path)]
    command = [sys.executable, "-m", "tests.lake.storm", str(tmp_path / "lake"), str(seed), "full-disk"]
    survive([*small, *command], 6 if seed == 1 else 40)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_lake_in_a_store_that_fails_survives(s3: str, monkeypatch, seed: int):
    monkeypatch.setenv(CALM, os.environ["AWS_ENDPOINT_URL"])
    with proxy(os.environ["AWS_ENDPOINT_URL"], storm(seed)) as failing:
        monkeypatch.setenv("AWS_ENDPOINT_URL", failing.endpoint)
        survive([sys.executable, "-m", "tests.lake.storm", f"{s3}/storm-{seed}", str(seed)], 2 if seed == 1 else 20)
    assert {fault for fault, _ in failing.struck} >= {"reset", "lose", "cut", "refuse", "fail"}
