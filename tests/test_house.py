import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

REGISTRY_HOST = re.compile(r"\b(pypi|pythonhosted|npmjs|maven|crates|debian)\.(org|io)\b", re.IGNORECASE)
# Folders that hold somebody's checkout or home; the lookbehind lets the path part of a URL pass.
MACHINE_PATH = re.compile(r"(?<![\w.])/(work|root|Users)/")


@pytest.fixture(scope="module")
def tracked_lines() -> list[tuple[str, int, str]]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    names = [name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()]
    return [
        (name, number, line)
        for name in names
        for number, line in enumerate((ROOT / name).read_text("utf-8", errors="replace").splitlines(), 1)
    ]


def found(pattern: re.Pattern[str], lines: list[tuple[str, int, str]]) -> list[str]:
    return [f"{name}:{number}: {line.strip()[:120]}" for name, number, line in lines if pattern.search(line)]


def test_imports_go_one_way():
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_no_file_names_a_registry_host(tracked_lines):
    assert found(REGISTRY_HOST, tracked_lines) == []


def test_no_file_names_a_path_of_one_machine(tracked_lines):
    assert found(MACHINE_PATH, tracked_lines) == []


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-serve.lock"])
def test_lock_is_pins_and_hashes_only(lock):
    """An index or link line would tie every installation to the machine that wrote the lock."""
    pin = re.compile(r"[a-z0-9][a-z0-9.-]*(\[[a-z0-9,-]+\])?==\S+( ; [^/\\]+)? \\")
    digest = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")
    strange = [
        line
        for line in (ROOT / lock).read_text("utf-8").splitlines()
        if not (pin.fullmatch(line) or digest.fullmatch(line))
    ]
    assert strange == []


@pytest.mark.parametrize(
    ("text", "pattern"),
    [("https://files.pythonhosted." + "org/x", REGISTRY_HOST), ('path = "/' + 'work/main"', MACHINE_PATH)],
)
def test_the_patterns_find_what_they_look_for(text, pattern):
    assert pattern.search(text)
