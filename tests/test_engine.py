from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from agent_world.engine import Engine
from agent_world.errors import BadInputError


def square(number: int) -> int:
    if number == 3:
        raise BadInputError("item 3", "it is unlucky", "leave it out")
    if number == 4:
        raise ZeroDivisionError("four")
    return number * number


def process(_: int) -> int:
    return os.getpid()


@pytest.mark.parametrize("workers", [1, 2])
def test_one_item_that_raises_does_not_stop_its_neighbours(workers):
    with Engine(workers) as engine:
        done = list(engine.map(square, [1, 2, 3, 4, 5]))
    assert [item.result for item in done] == [1, 4, None, None, 25]
    assert [item.item for item in done] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failure_says_what_happened_and_only_a_surprise_has_a_trace(workers):
    with Engine(workers) as engine:
        known, surprise = (item.failure for item in engine.map(square, [3, 4]))
    assert known is not None
    assert surprise is not None
    assert known.error == "item 3: it is unlucky; leave it out"
    assert known.trace == ""
    assert surprise.error == "ZeroDivisionError: four"
    assert "square" in surprise.trace


def test_work_runs_in_other_processes():
    with Engine(2) as engine:
        seen = {item.result for item in engine.map(process, list(range(8)))}
    assert os.getpid() not in seen


def test_one_worker_works_in_this_process():
    with Engine(1) as engine:
        assert {item.result for item in engine.map(process, [1, 2])} == {os.getpid()}


def knows(module: str) -> bool:
    return module in sys.modules


def tell_what_workers_know() -> None:
    with Engine(2, preload=("tests.slow_to_import",)) as engine:
        print([done.result for done in engine.map(knows, ["tests.slow_to_import", "json.tool"])], flush=True)


def start(function: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", f"from tests.test_engine import {function}; {function}()"]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )  # fmt: skip


def test_workers_find_imported_what_was_asked_for():
    told, _ = start("tell_what_workers_know").communicate(timeout=30)
    assert told == "[True, False]\n"


def test_ctrl_c_while_that_is_imported_is_told_once():
    run = start("tell_what_workers_know")
    while not any("forkserver" in " ".join(child.cmdline()) for child in psutil.Process(run.pid).children()):
        time.sleep(0.05)
    time.sleep(0.3)
    os.killpg(run.pid, signal.SIGINT)
    _, told = run.communicate(timeout=30)
    assert told.count("Traceback") == told.count("KeyboardInterrupt") == 1


def loiter(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def run_until_killed() -> None:
    with Engine(2) as engine:
        for done in engine.map(loiter, [0.0, 0.0, 60.0, 60.0]):
            print(done.result, flush=True)


def test_ctrl_c_ends_the_workers_at_once_and_they_say_nothing():
    run = start("run_until_killed")
    assert run.stdout is not None
    assert [run.stdout.readline() for _ in range(2)]
    os.killpg(run.pid, signal.SIGINT)
    _, told = run.communicate(timeout=30)
    assert told.count("Traceback") == told.count("KeyboardInterrupt") == 1


@pytest.mark.parametrize("signals", [1, 2])
def test_an_interrupt_that_reaches_the_run_alone_ends_it_at_once_with_its_workers(signals):
    command = [sys.executable, "-c", "from tests.test_engine import run_until_killed; run_until_killed()"]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert run.stdout is not None
    workers = {int(run.stdout.readline()) for _ in range(2)}
    for _ in range(signals):
        run.send_signal(signal.SIGINT)
        time.sleep(0.2)
    run.wait(timeout=20)
    assert [worker for worker in workers if psutil.pid_exists(worker)] == []


def test_workers_do_not_outlive_a_run_that_is_killed():
    command = [sys.executable, "-c", "from tests.test_engine import run_until_killed; run_until_killed()"]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    workers = {int(run.stdout.readline()) for _ in range(2)}
    run.kill()
    run.wait()
    deadline = time.monotonic() + 20
    while any(psutil.pid_exists(worker) for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [worker for worker in workers if psutil.pid_exists(worker)] == []
