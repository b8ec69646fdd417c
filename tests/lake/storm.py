"""Everything at once on one lake: ``python -m tests.lake.storm URI SEED [full-disk]`` ends with 0 if it holds.

Two writers that are killed at random and begin again, a third that commits the same batches as the first, a reader, a
replayer, a sweeper (gc) and an exporter, killed at random too; with ``full-disk`` the file system that the lake lies
on is filled now and then. What failed with a sentence of ours is begun again; anything else is a failure of the storm.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random

from agent_world.errors import AgentWorldError
from agent_world.lake import LakeBusyError, NotFoundError, open_lake
from agent_world.lake.faults import KILL_AT
from agent_world.lake.gc import gc
from agent_world.lake.proof import verify
from agent_world.lake.replay import replay
from agent_world.lake.snapshots import create
from dagster_project.cli import cli
from tests.lake.writer import write

CALM = "STORM_CALM"
"""The variable with the endpoint of the store when the storm is over."""

LAST = int(os.environ.get("STORM_BATCHES", "8"))
POINTS = ("blob_write", "event_commit", "after_event_commit", "projection")
OURS = 3  # the exit status of an actor that ended with one of our errors
_PAUSE_S = 0.3
_STRIKES = 0.7  # how often an acknowledgement is followed by a blow


def _write(uri: str, who: str, first: int) -> None:
    lake = open_lake(uri)
    for number in range(first, LAST + 1):
        write(lake, who, number)
        os.write(1, f"{number}\n".encode())


def _read(uri: str) -> None:
    """No batch is seen by halves, and what a batch made is there with its files."""
    lake = open_lake(uri)
    while True:
        batches = {row["batch"]: row["events"] for row in lake.read("batches")}
        seen = Counter(lake.table("events").column("batch").to_pylist())
        assert {batch: seen[batch] for batch in batches} == batches
        for row in lake.read("themes"):
            assert set(lake.files(row["version_id"])) == {"small", "large"}
        time.sleep(_PAUSE_S)


def _replay(uri: str) -> None:
    while True:
        with suppress(LakeBusyError):
            assert [result for result in replay(open_lake(uri), verify=True) if not result.same] == []
        time.sleep(_PAUSE_S)


def _sweep(uri: str) -> None:
    while True:
        with suppress(LakeBusyError):
            gc(open_lake(uri), dry_run=False)
        time.sleep(_PAUSE_S)


def _sweep_all(uri: str) -> None:
    gc(open_lake(uri), grace=timedelta(0), dry_run=False)


def _export(uri: str) -> None:
    while True:
        snapshot = create(open_lake(uri))
        cli.main(["snapshot", "export", snapshot, f"{uri}-copy", "--lake", uri], standalone_mode=False)
        time.sleep(_PAUSE_S)


def _check(uri: str) -> None:
    """What must hold whatever has happened."""
    lake = open_lake(uri)
    batches = [row for row in lake.read("batches") if row["stage"] == "stage"]
    wanted = {f"{who}-{number:03}" for who in "ab" for number in range(1, LAST + 1)}
    assert len(batches) == len(wanted) and {row["partition"] for row in batches} == wanted
    assert len(lake.read("themes")) == len(lake.read("databases")) == len(lake.read("costs")) == len(wanted)
    events = lake.table("events").column("event_id").to_pylist()
    assert len(events) == len(set(events)) == sum(row["events"] for row in lake.read("batches"))
    assert [result for result in replay(lake, verify=True) if not result.same] == []
    for row in lake.read("themes"):
        who, _, number = row["artifact_id"].partition("-")
        said = f"{who} {int(number)}".encode()
        assert lake.files(row["version_id"]) == {"small": said * 50, "large": said + b" " + (said + b" ") * 299_999}
    with suppress(NotFoundError):
        assert verify(lake, create(lake)) == []
    copy = open_lake(f"{uri}-copy")
    for snapshot in {row["snapshot_id"] for row in copy.read("snapshots")}:
        assert verify(copy, snapshot) == []


@dataclass
class Actor:
    """One role and the process that plays it now."""

    role: Callable[[], None]
    lasting: bool = False  # it never ends by itself
    pid: int = 0
    output: int = -1
    acknowledged: list[int] = field(default_factory=list)

    def begin(self, kill_at: str) -> None:
        """A child that plays the role and dies at a point, if one is given."""
        reader, writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reader)
            os.dup2(writer, 1)
            os.environ[KILL_AT] = kill_at
            os._exit(_play(self.role))
        os.close(writer)
        self.output = reader

    def end(self) -> int:
        """Wait for the child; its status, negative for a signal."""
        os.close(self.output)
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self.pid = 0
        return status


def _play(role: Callable[[], None]) -> int:
    try:
        role()
    except AgentWorldError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return OURS
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _alone(role: Callable[[], None], *, killed_after_s: float | None = None) -> int:
    """Play one role with nothing else at work."""
    actor = Actor(role)
    actor.begin("")
    if killed_after_s is not None:
        time.sleep(killed_after_s)
        os.kill(actor.pid, signal.SIGKILL)
    while os.read(actor.output, 4096):
        pass
    return actor.end()


def storm(uri: str, seed: int, filled: Path | None) -> None:
    """Raise it, and see that everything acknowledged is there once, and nothing by halves."""
    source = Random(seed)
    writers = [Actor(lambda: None) for _ in range(3)]
    for actor, who in zip(writers, "aab", strict=True):
        actor.role = partial(lambda actor, who: _write(uri, who, len(actor.acknowledged) + 1), actor, who)
    others = [Actor(partial(role, uri), lasting=True) for role in (_read, _replay, _sweep, _export)]
    ended: Counter[str] = Counter()
    while any(len(actor.acknowledged) < LAST for actor in writers):
        for actor in [*writers, *others]:
            if not actor.pid and (actor.lasting or len(actor.acknowledged) < LAST):
                point = source.choice(POINTS) if not actor.lasting and source.random() < 0.3 else ""
                actor.begin(f"{point}:{source.randint(1, 4)}" if point else "")
        running = {actor.output: actor for actor in [*writers, *others] if actor.pid}
        for output in select.select(list(running), [], [])[0]:
            actor = running[output]
            said = os.read(output, 4096)
            if not said:
                status = actor.end()
                ended[f"{'other' if actor.lasting else 'writer'} {status}"] += 1
                assert status in (0, -signal.SIGKILL, OURS), f"an actor ended with {status}"
            elif not actor.lasting:
                actor.acknowledged += map(int, said.split())
                if source.random() < _STRIKES:
                    _strike(source, [each for each in running.values() if each.pid], filled)
    for actor in others:
        if actor.pid:
            os.kill(actor.pid, signal.SIGKILL)
            actor.end()
    print(dict(sorted(ended.items())), flush=True)
    assert all(actor.acknowledged == list(range(1, LAST + 1)) for actor in writers)
    os.environ |= {"AWS_ENDPOINT_URL": os.environ[CALM]} if CALM in os.environ else {}
    assert _alone(partial(_sweep_all, uri), killed_after_s=source.uniform(0.2, 1)) in (0, -signal.SIGKILL)
    assert _alone(partial(_sweep_all, uri)) == 0
    assert _alone(partial(_check, uri)) == 0


def _strike(source: Random, running: list[Actor], filled: Path | None) -> None:
    if filled is not None and source.random() < 0.3:
        _fill(filled, source.uniform(0.1, 0.5))
    elif running:
        os.kill(source.choice(running).pid, signal.SIGKILL)


def _fill(folder: Path, seconds: float) -> None:
    filler = folder / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(bytes(1 << 20)):
            pass
    time.sleep(seconds)
    filler.unlink(missing_ok=True)


if __name__ == "__main__":
    storm(sys.argv[1], int(sys.argv[2]), Path(sys.argv[1]).parent if "full-disk" in sys.argv else None)
