"""One wrong byte in anything that a snapshot pins is found, and the file is named."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agent_world.lake import DamagedError, Lake, open_lake, snapshots
from agent_world.lake.proof import verify

TEXT = b"again and again " * 80_000
NOISE = random.Random(1).randbytes(1_100_000)


class Pinned:
    """A lake with a snapshot, and every file that the snapshot rests on."""

    def __init__(self, path: Path) -> None:
        self.lake = open_lake(path)
        self.path = path
        for number in range(3):
            with self.lake.begin("stage", f"{number}", derivation="d", run_id="run", code_version="1") as batch:
                files = {"small": f"{number}".encode() * 99, "text": TEXT, "noise": NOISE}
                theme = batch.create("theme", "a", {"title": f"{number}"}, files=files)
                batch.create("trajectory", f"t{number}", {"steps": ["x" * 70_000, number]}, parents=[(theme, "theme")])
        self.snapshot = snapshots.create(self.lake)
        manifest = snapshots.manifest_of(self.lake, self.snapshot)
        data = [path / "events" / file["path"] for file in manifest["files"]]
        log = [path / "events" / "_delta_log" / f"{version:020}.json" for version in range(len(manifest["log"]))]
        blobs = [file for file in sorted((path / "blobs").rglob("*")) if file.is_file()]
        self.files = [*data, *log, *blobs]
        assert (len(data), len(log), len(blobs)) == (3, 4, 3 + 2 + 1)  # packs, objects, the pack of the manifest

    def problems(self) -> str:
        return "\n".join(f"{problem.what}: {problem.why}" for problem in verified(self.path, self.snapshot))


def verified(path: Path, snapshot: str) -> list[snapshots.Problem]:
    """As the command: what keeps a lake from being opened counts as named too."""
    try:
        return verify(Lake(open_lake_storage(path)), snapshot)
    except DamagedError as error:
        return [snapshots.Problem(error.what, error.why)]


def open_lake_storage(path: Path):
    from agent_world.lake.storage import open_storage

    return open_storage(path)


@pytest.fixture(scope="module")
def pinned() -> Iterator[Pinned]:
    with tempfile.TemporaryDirectory() as path:
        yield Pinned(Path(path) / "lake")


def with_bytes(path: Path, change: Callable[[bytes], bytes], look: Callable[[], str]) -> str:
    """What `look` says while the file has other bytes."""
    data = path.read_bytes()
    path.write_bytes(change(data))
    try:
        return look()
    finally:
        path.write_bytes(data)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(which=st.integers(0, 12), where=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
@example(which=3, where=0.0, bit=0)
@example(which=4, where=0.5, bit=3)
@example(which=12, where=0.99, bit=7)
def test_any_flipped_bit_is_found_and_its_file_named(pinned: Pinned, which: int, where: float, bit: int):
    file = pinned.files[which]

    def flip(data: bytes) -> bytes:
        changed = bytearray(data)
        changed[int(where * len(data))] ^= 1 << bit
        return bytes(changed)

    assert file.name in with_bytes(file, flip, pinned.problems)


@pytest.mark.parametrize("which", range(13))
@pytest.mark.parametrize("what", ["truncated", "longer", "empty", "missing", "swapped"])
def test_a_file_that_is_not_the_pinned_one_is_named(pinned: Pinned, which: int, what: str):
    file = pinned.files[which]
    if what == "missing":
        aside = file.rename(file.with_suffix(".elsewhere"))
        try:
            assert file.name in pinned.problems()
        finally:
            aside.rename(file)
        return
    other = pinned.files[which - 1].read_bytes()
    change = {
        "truncated": lambda data: data[:-1],
        "longer": lambda data: data + b"\n",
        "empty": lambda data: b"",
        "swapped": lambda data: other,
    }[what]
    assert file.name in with_bytes(file, change, pinned.problems)
