"""A test suite that cannot fail proves nothing: every committed mutation of the core breaks at least one test."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.verify.mutations import MUTATIONS, Mutation

ROOT = Path(__file__).resolve().parent.parent.parent
NAMES = [f"{mutation.file}: {mutation.old[:40]}" for mutation in MUTATIONS]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=NAMES)
def test_a_mutation_still_fits_the_code(mutation: Mutation):
    assert (ROOT / mutation.file).read_text("utf-8").count(mutation.old) == 1


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """A copy of the sources, to be mutated."""
    target = tmp_path_factory.mktemp("mutant") / "repository"
    nowhere = shutil.ignore_patterns("__pycache__")
    at_the_top = shutil.ignore_patterns(".venv", ".mcp", ".git", "__pycache__", "*.services", "lake")

    def ignored(folder: str, names: list[str]) -> set[str]:
        # Only at the top is `lake` a run's data; `agent_world/lake` and `tests/lake` are sources.
        return (at_the_top if Path(folder) == ROOT else nowhere)(folder, names)

    shutil.copytree(ROOT, target, ignore=ignored, ignore_dangling_symlinks=True)
    return target


@pytest.mark.long
@pytest.mark.parametrize("mutation", MUTATIONS, ids=NAMES)
def test_a_mutation_breaks_a_test(copy: Path, mutation: Mutation):
    path = copy / mutation.file
    original = path.read_text("utf-8")
    path.write_text(original.replace(mutation.old, mutation.new), "utf-8")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *mutation.tests.split()],
            cwd=copy,
            env=os.environ | {"PYTHONPATH": str(copy)},
            capture_output=True,
            text=True,
            timeout=1200,
            check=False,
        )
    finally:
        path.write_text(original, "utf-8")
    assert "ERROR collecting" not in done.stdout, f"no test ran: {done.stdout[-800:]}"
    assert done.returncode == 1, f"no test noticed: {done.stdout[-800:]}"
