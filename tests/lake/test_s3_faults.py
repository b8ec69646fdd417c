"""A store that fails in every way a network can: nothing acknowledged is lost, nothing is there twice."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta

import pytest

from agent_world.lake import StoreFailedError, UnsafeStoreError, open_lake
from agent_world.lake.replay import replay
from agent_world.lake.storage import open_storage
from tests.lake.s3_proxy import Proxy, every, proxy, storm
from tests.lake.writer import write

Through = Callable[..., Proxy]
ELSEWHERE = ["bwrap", "--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc"]
"""As on another host: process numbers mean other processes there."""

_numbers = itertools.count()


@pytest.fixture
def through(s3: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Through]:
    """Puts a proxy between this process and the store; a later one takes the place of the one before."""
    store = os.environ["AWS_ENDPOINT_URL"]
    with ExitStack() as held:

        def start(*arguments, **options) -> Proxy:
            made = held.enter_context(proxy(store, *arguments, **options))
            monkeypatch.setenv("AWS_ENDPOINT_URL", made.endpoint)
            return made

        yield start


@pytest.fixture
def place(s3: str) -> str:
    return f"{s3}/faults-{next(_numbers)}"


@pytest.mark.parametrize("header", ["If-None-Match", "If-Match"])
def test_a_store_that_ignores_conditions_is_refused_when_a_lake_is_made_and_when_one_is_opened(
    place: str, through: Through, header: str
):
    open_lake(place)
    through(strip=(header,))
    for uri in (place, f"{place}-new"):
        with pytest.raises(UnsafeStoreError, match=f"{uri} cannot hold a lake: it ignores {header} when it writes, so"):
            open_lake(uri)
    assert not open_storage(f"{place}-new").exists("lake.json")
    assert [item.key for item in open_storage(f"{place}-new").list()] == []


def test_a_store_is_asked_once_by_a_process(place: str, through: Through):
    seen = through(every("slow", "DELETE", ".aside", 9))
    for _ in range(3):
        open_lake(place)
    assert seen.struck == {("slow", "DELETE"): 1}


@pytest.mark.parametrize("fault", ["lose", "fail"])
def test_a_commit_whose_reply_was_lost_is_there_once(place: str, through: Through, fault):
    lake = open_lake(place)
    lost = through(every(fault, "PUT", "_delta_log/00000000000000000001.json", 1))
    with open_lake(place).begin("x", derivation="d") as batch:
        batch.create("theme", "a", {"title": "t"})
    assert lost.struck == {(fault, "PUT"): 1}
    assert batch.commit.fresh is False and batch.commit.version == lake.events_version() == 1
    assert len(lake.read("themes")) == len(lake.read("batches")) == 1


@pytest.mark.parametrize("fault", ["lose", "fail"])
def test_whoever_wrote_first_learns_it_though_the_reply_was_lost(place: str, through: Through, fault):
    lost = through(every(fault, "PUT", "who", 2))
    assert open_storage(place).write_new("who", b"one") and lost.struck[fault, "PUT"] == 2
    assert not open_storage(place).write_new("who", b"one")
    through(every(fault, "PUT", "locks/", 1))
    with open_storage(place).exclusive("lock") as first, open_storage(place).exclusive("lock") as second:
        assert first and not second
    assert list(open_storage(place).list("locks")) == []


def test_an_answer_that_breaks_off_is_asked_for_again(place: str, through: Through):
    open_storage(place).write("big", bytes(range(256)) * 4000)
    broken = through(every("cut", "GET", "big", 3))
    assert open_storage(place).read("big") == bytes(range(256)) * 4000
    assert open_storage(place).read_range("big", 256_000, 256) == bytes(range(256))
    assert broken.struck == {("cut", "GET"): 3}


def test_a_store_that_stays_away_is_one_sentence(place: str, through: Through, monkeypatch):
    monkeypatch.setattr("agent_world.lake.s3_access._REPEATS", 2)
    through(every("refuse", "GET", "lake.json", 99))
    with pytest.raises(StoreFailedError) as failed:
        open_lake(place)
    assert str(failed.value) == (
        f"{place}: could not read lake.json (SlowDown: Please reduce your request rate.);"
        " check AWS_ENDPOINT_URL, the keys and the bucket"
    )


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 8))])
def test_through_a_storm_every_acknowledged_batch_is_there_once(place: str, through: Through, seed: int):
    lake = open_lake(place)
    struck = through(storm(seed), clock=timedelta(days=seed)).struck
    command = [sys.executable, "-m", "tests.lake.writer", place]
    writers = [
        subprocess.Popen([*command, who, "1", "12"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for who in "ab"
    ]
    write(open_lake(place), "c", 1)
    for process in writers:
        acknowledged, said = process.communicate()
        assert acknowledged.split() == [str(n) for n in range(1, 13)], said
    assert {fault for fault, _ in struck} >= {"reset", "lose", "refuse", "fail"}
    batches = lake.read("batches")
    assert len(batches) == len({row["batch"] for row in batches}) == 25
    assert [len(lake.read(table)) for table in ("themes", "databases", "costs")] == [25, 25, 25]
    events = lake.sql("SELECT count(*) AS n, count(DISTINCT event_id) AS ids FROM events").to_pylist()[0]
    assert events["n"] == events["ids"] == sum(row["events"] for row in batches)
    assert all(result.same for result in replay(lake, verify=True))


def test_a_lock_of_another_host_holds_by_the_clock_of_the_store_alone(place: str, through: Through):
    code = (
        "import os, sys; from agent_world.lake.storage import open_storage\n"
        "with open_storage(sys.argv[1]).exclusive('lock') as held: print(held, flush=True); os.kill(os.getpid(), 9)"
    )
    dead = subprocess.run([*ELSEWHERE, sys.executable, "-c", code, place], capture_output=True, text=True)
    assert dead.stdout == "True\n", dead.stderr
    for clock in (timedelta(days=3), timedelta(days=-3)):
        through(clock=clock)
        storage = open_storage(place)
        with storage.exclusive("lock") as held, storage.shared("lock") as together:
            assert not held and not together
    through(answered_later=timedelta(minutes=6))
    storage = open_storage(place)
    with storage.exclusive("lock") as held:
        assert held
    assert list(storage.list("locks")) == []


def test_a_lock_is_renewed_while_it_is_held(place: str, through: Through, monkeypatch):
    monkeypatch.setattr("agent_world.lake.s3_leases._RENEW_S", 0.01)
    renewals = through(every("slow", "PUT", "locks/lock/", 3))
    storage = open_storage(place)
    with storage.exclusive("lock") as held:
        while renewals.struck["slow", "PUT"] < 3:
            assert held and storage.exists("locks/lock/exclusive")
    assert list(storage.list("locks")) == []


def test_who_lost_a_lock_meanwhile_does_not_take_it_from_its_new_holder(place: str, s3: str, monkeypatch):
    monkeypatch.setattr("agent_world.lake.s3_leases.EXPIRES", timedelta(0))
    storage = open_storage(place)
    first, second = storage.exclusive("lock"), storage.exclusive("lock")
    assert first.__enter__() and second.__enter__()
    first.__exit__(None, None, None)
    assert storage.exists("locks/lock/exclusive")
    second.__exit__(None, None, None)
    assert not storage.exists("locks/lock/exclusive")
