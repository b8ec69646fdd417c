"""The contract of a storage, for the directory and the bucket alike."""

from __future__ import annotations

import itertools
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent_world.lake.storage import Storage, open_storage


@pytest.fixture
def storage(uri: str) -> Storage:
    return open_storage(uri)


def test_what_was_written_is_read_listed_and_deleted(storage: Storage):
    storage.write("a/b.bin", b"0123456789")
    storage.write("a/c", b"")
    storage.write("ab", b"x")
    storage.write("a/b.bin", b"abcdefghij")
    assert storage.read("a/b.bin") == b"abcdefghij"
    assert storage.read_range("a/b.bin", 2, 3) == b"cde"
    assert storage.read_range("a/c", 0, 0) == b""
    assert [(item.key, item.size) for item in storage.list("a")] == [("a/b.bin", 10), ("a/c", 0)]
    assert sorted(item.key for item in storage.list()) == ["a/b.bin", "a/c", "ab"]
    assert abs(datetime.now(UTC) - next(storage.list("a")).modified) < timedelta(minutes=5)
    storage.delete("a/b.bin")
    storage.delete("a/b.bin")
    assert not storage.exists("a/b.bin") and storage.exists("a/c")
    with pytest.raises(FileNotFoundError):
        storage.read("a/b.bin")
    with pytest.raises(FileNotFoundError):
        storage.read_range("nothing", 0, 1)


def test_of_eight_processes_that_write_a_new_object_exactly_one_succeeds_each_of_25_times(uri: str):
    command = [sys.executable, "-m", "tests.lake.racer", uri]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    racers = [subprocess.Popen([*command, str(who), "25"], **pipes) for who in range(8)]
    assert [process.stdout.readline() for process in racers] == ["ready\n"] * 8
    for process in racers:
        process.stdin.write("go\n")
        process.stdin.flush()
    won = [process.communicate()[0].split() for process in racers]
    assert sorted(itertools.chain(*won)) == sorted(map(str, range(25)))
    storage = open_storage(uri)
    for who, numbers in enumerate(won):
        assert {storage.read(f"key-{number}") for number in numbers} <= {str(who).encode()}


def test_a_lock_is_held_by_one_alone_or_by_several_together(uri: str):
    one, two = open_storage(uri), open_storage(uri)
    with one.exclusive("lock") as first, two.exclusive("lock") as second, two.shared("lock") as third:
        assert (first, second, third) == (True, False, False)
    with one.shared("lock") as first, two.shared("lock") as second, one.exclusive("lock") as third:
        assert (first, second, third) == (True, True, False)
    with two.exclusive("lock") as first, two.exclusive("other") as second:
        assert first and second


def test_a_lock_that_was_given_back_is_free_though_a_child_was_forked_meanwhile(tmp_path: Path):
    import os

    one, two = open_storage(tmp_path), open_storage(tmp_path)
    reader, writer = os.pipe()
    with one.exclusive("lock"):
        child = os.fork()
        if child == 0:
            os.close(writer)
            os.read(reader, 1)  # until the parent is done
            os._exit(0)
    with two.exclusive("lock") as held:
        assert held
    os.close(writer)
    os.waitpid(child, 0)


def test_a_lock_of_a_process_that_died_holds_nobody(uri: str):
    code = (
        "import os, sys; from agent_world.lake.storage import open_storage\n"
        "with open_storage(sys.argv[1]).exclusive('lock') as held: print(held, flush=True); os.kill(os.getpid(), 9)"
    )
    dead = subprocess.run([sys.executable, "-c", code, uri], capture_output=True, text=True)
    assert dead.stdout == "True\n" and dead.returncode == -9
    with open_storage(uri).exclusive("lock") as held:
        assert held
