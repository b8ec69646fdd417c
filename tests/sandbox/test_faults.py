"""Sessions, zygotes, their bubblewraps and whole supervisors are killed at random while many episodes run.

Whatever was killed is all that is hurt, its episode says so, and nothing is left of it.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from agent_world.sandbox import BACKEND_VARIABLE, default_sandbox
from tests.sandbox import player

PLAYERS, THREADS = 2, 3
_SET_SUBREAPER = 36
_PATIENCE_S = 120.0
_GUEST = "/guest/zygote.py"
_HARNESS = ("SandboxFailedError", "SandboxUnavailableError: the sandbox back-end bwrap cannot", "verifier: crash")
_KILLS = {"session": 24, "zygote": 8, "bubblewrap": 4, "supervisor": 4}


@pytest.fixture
def orphans() -> Iterator[psutil.Process]:
    """This process, to which what loses its parent now comes instead of to the first process of the machine."""
    libc = ctypes.CDLL(None)
    assert libc.prctl(_SET_SUBREAPER, 1, 0, 0, 0) == 0
    yield psutil.Process()
    libc.prctl(_SET_SUBREAPER, 0, 0, 0, 0)


@dataclass
class Field:
    """The players, and everything they ever said."""

    folder: Path
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)
    started: int = 0

    def start(self) -> None:
        """One more player."""
        self.started += 1
        temporary = self.folder / "tmp"
        temporary.mkdir(exist_ok=True)
        with (
            (self.folder / f"out-{self.started}").open("wb") as out,
            (self.folder / f"err-{self.started}").open("wb") as err,
        ):
            self.running.append(
                subprocess.Popen(
                    [sys.executable, "-m", "tests.sandbox.player", str(THREADS)],
                    stdin=subprocess.PIPE, stdout=out, stderr=err, env={**os.environ, "TMPDIR": str(temporary)},
                )
            )  # fmt: skip

    def lines(self, player: int) -> list[dict]:
        """What a player said so far, counted from 1 in the order of their starts; half a line is none."""
        whole = (self.folder / f"out-{player}").read_bytes().split(b"\n")[:-1]
        return [json.loads(line) for line in whole]

    def everything(self) -> list[dict]:
        """What all players said."""
        return [line for player in range(1, self.started + 1) for line in self.lines(player)]

    def complaints(self) -> str:
        """What all players wrote to their error output."""
        return "".join((self.folder / f"err-{player}").read_text() for player in range(1, self.started + 1))

    def await_play(self) -> None:
        """Until the last player that was started has ended an episode."""
        deadline = time.monotonic() + _PATIENCE_S
        while not self.lines(self.started):
            assert self.running[-1].poll() is None, self.complaints()
            assert time.monotonic() < deadline, "a player does not play"
            time.sleep(0.02)

    def replace(self, pid: int) -> None:
        """Bury a player that was killed, and start another."""
        (dead,) = (process for process in self.running if process.pid == pid)
        dead.communicate()
        assert dead.returncode == -signal.SIGKILL
        self.running.remove(dead)
        self.start()
        self.await_play()

    def stop(self) -> None:
        """Let all players end what they play."""
        for process in self.running:
            process.communicate(timeout=_PATIENCE_S)
            assert process.returncode == 0, self.complaints()


def is_guest(process: psutil.Process) -> bool:
    """Whether it is a zygote or a clone of one; its bubblewrap has the same words in its command line."""
    return process.name() != "bwrap" and _GUEST in process.cmdline()


def kinds(root: psutil.Process, others: set[psutil.Process], players: set[int]) -> dict[str, list[psutil.Process]]:
    """The live processes below `root`, but for `others`, by what they are. A zygote may have lost its bubblewrap."""
    found: dict[str, list[psutil.Process]] = {kind: [] for kind in _KILLS}
    for process in set(root.children(recursive=True)) - others:
        with suppress(psutil.NoSuchProcess):
            if process.pid in players:
                found["supervisor"].append(process)
            elif process.name() == "bwrap":
                found["bubblewrap"].append(process)
            elif is_guest(process):
                parent = process.parent()
                found["session" if parent is not None and is_guest(parent) else "zygote"].append(process)
    return found


def rage(
    ground: Field, root: psutil.Process, others: set[psutil.Process], kills: list[str], chance: random.Random
) -> None:
    """Kill one of each kind in turn, at moments that `chance` chooses; a player that is hit has a successor."""
    for kind in kills:
        deadline = time.monotonic() + _PATIENCE_S
        while not (there := kinds(root, others, {process.pid for process in ground.running})[kind]):
            assert time.monotonic() < deadline, f"there is no {kind} to kill\n{ground.complaints()}"
        victim = chance.choice(sorted(there, key=lambda process: process.pid))
        with suppress(psutil.NoSuchProcess):
            victim.send_signal(signal.SIGKILL)
        if kind == "supervisor":
            ground.replace(victim.pid)
        time.sleep(chance.uniform(0.0, 0.1))


@pytest.mark.parametrize(
    "rounds", [1, pytest.param(5, marks=[pytest.mark.long, pytest.mark.timeout(1200)])], ids=["40-kills", "200-kills"]
)
def test_what_is_killed_is_all_that_is_hurt_and_nothing_is_left_of_it(rounds, orphans, tmp_path, monkeypatch):
    monkeypatch.delenv(BACKEND_VARIABLE, raising=False)
    default_sandbox()  # its self-test is not for today
    expected = {name: player.attempt(task) for name, task in player.TASKS.items()}
    assert {found["status"] for found in expected.values()} == {"pass"}
    others, mounts = set(orphans.children(recursive=True)), Path("/proc/self/mountinfo").read_text()

    kills = [kind for kind, count in _KILLS.items() for _ in range(count * rounds)]
    chance = random.Random(20261201)
    chance.shuffle(kills)
    ground = Field(tmp_path)
    for _ in range(PLAYERS):
        ground.start()
        ground.await_play()
    rage(ground, orphans, others, kills, chance)
    ground.stop()

    said = ground.everything()
    played = [line for line in said if "episode" in line]
    final = [line for line in played if line["status"] != "infra_error"]
    lost = [line for line in played if line["status"] == "infra_error"]
    hurt = [line for line in final if line["crashed"]]

    # Every episode ended, and once: as what it was, or as one whose session died in the middle of it.
    assert len({(line["player"], line["thread"], line["episode"]) for line in final}) == len(final) > len(kills)
    for line in final:
        as_ever = {**line, **expected[line["task"]]}
        assert line == as_ever or (line["crashed"] and line["status"] in ("pass", "fail")), line
    # The harness's failures are no rewards, and say what failed.
    assert {line["reward"] for line in lost} <= {None}
    assert {line["reward"] for line in final} <= {0.0, 1.0}
    assert all(any(what in line["detail"] for what in _HARNESS) for line in lost), lost
    # One session hurts one episode, one zygote those that were live on it, and the others go on.
    count = Counter(kills)
    assert len(hurt) <= count["session"]
    assert len(lost) + len(hurt) <= count["session"] + THREADS * count["zygote"]
    assert hurt and lost

    assert psutil.wait_procs(set(orphans.children(recursive=True)) - others, timeout=_PATIENCE_S)[1] == []
    assert [line["holds"] for line in said if "holds" in line] == [line["held"] for line in said if "held" in line]
    assert len([line for line in said if "holds" in line]) == PLAYERS
    assert list((tmp_path / "tmp").iterdir()) == []
    assert Path("/proc/self/mountinfo").read_text() == mounts
    assert player.attempt(player.WRITING) == expected[player.WRITING.task_id]
