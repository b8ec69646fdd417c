import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context

import psutil
import pytest

from agent_world.rollouts.episode import Episode
from agent_world.sandbox import SandboxFailedError, default_sandbox
from agent_world.sandbox.bwrap import BwrapSandbox
from tests.rollouts.cases import ENVIRONMENT, WRITING

ONE = {"m.py": "def run(x):\n    return x + 1\n"}
GONE_WITHIN_S = 20.0


def answer(x: int) -> tuple[int, int]:
    return default_sandbox().run_code(ONE, "m:run", {"x": x}).value, os.getpid()


def wait_until_gone(processes: list[psutil.Process]) -> list[psutil.Process]:
    _, alive = psutil.wait_procs(processes, timeout=GONE_WITHIN_S)
    return alive


def test_no_process_outlives_a_supervisor_that_is_killed():
    script = textwrap.dedent(
        """
        import time
        from agent_world.sandbox.bwrap import BwrapSandbox
        from agent_world.sandbox.memory import MemoryFile

        box = BwrapSandbox()
        empty = MemoryFile(b"")
        setup = {"kind": "code", "files": {}, "seed": 0}
        live = [box.open([empty.fd], setup) for _ in range(3)]
        print("open", flush=True)
        time.sleep(600)
        """
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as supervisor:
        assert supervisor.stdout is not None
        assert supervisor.stdout.readline() == b"open\n"
        family = psutil.Process(supervisor.pid)
        while len(children := family.children(recursive=True)) < 5:  # bubblewrap, the zygote, three sessions
            time.sleep(0.01)
        supervisor.send_signal(signal.SIGKILL)
    assert wait_until_gone(children) == []


def test_closing_ends_every_session():
    box = BwrapSandbox()
    outer = psutil.Process(box._process.pid)
    family = [outer, *outer.children(recursive=True)]
    assert box.run_code(ONE, "m:run", {"x": 1}).value == 2
    box.close()
    box.close()
    assert len(family) >= 2
    assert wait_until_gone(family) == []
    with pytest.raises(SandboxFailedError):
        box.run_code(ONE, "m:run", {"x": 1})


def test_a_sandbox_that_died_is_a_failure_of_the_harness_and_the_default_one_comes_back():
    first = default_sandbox()
    assert isinstance(first, BwrapSandbox)
    for process in psutil.Process(first._process.pid).children(recursive=True):
        process.kill()
    first._process.wait()
    with pytest.raises(SandboxFailedError):
        first.run_code(ONE, "m:run", {"x": 1})
    assert answer(1)[0] == 2


def begun(box: BwrapSandbox, stack: ExitStack) -> tuple[Episode, psutil.Process]:
    """An episode after its first call, and the process of its session."""
    zygote = psutil.Process(box._process.pid).children()[0]
    others = set(zygote.children())
    episode = stack.enter_context(Episode(WRITING, ENVIRONMENT, seed=1, sandbox=box))
    first = WRITING.plan[0]
    assert episode.call(first.tool, first.arguments).status == "ok"
    (session,) = set(zygote.children()) - others
    return episode, session


def test_a_session_that_is_killed_is_an_error_of_its_own_episode():
    with BwrapSandbox() as box, ExitStack() as stack:
        neighbour, _ = begun(box, stack)
        episode, session = begun(box, stack)
        session.kill()
        for call in WRITING.plan[1:]:
            observation = episode.call(call.tool, call.arguments)
            assert (observation.status, observation.value["error"]["code"]) == ("error", "crash")
            assert neighbour.call(call.tool, call.arguments).status == "ok"
        outcome = episode.answer(WRITING.answer)
        assert (outcome.status, outcome.failed, outcome.reward) == ("fail", ("state",), 0.0)
        assert neighbour.answer(WRITING.answer).status == "pass"


def test_a_session_that_dies_with_its_zygote_is_no_doing_of_its_tools():
    with BwrapSandbox() as box, ExitStack() as stack:
        episode, session = begun(box, stack)
        session.parent().kill()
        assert wait_until_gone([session]) == []
        second = WRITING.plan[1]
        episode.call(second.tool, second.arguments)
        outcome = episode.outcome
        assert (outcome.status, outcome.reward) == ("infra_error", None)
        assert "its host is gone" in outcome.detail


def test_a_zygote_goes_on_without_its_bubblewrap_and_ends_with_its_sandbox():
    with BwrapSandbox() as box:
        zygote = psutil.Process(box._process.pid).children()[0]
        box._process.kill()
        assert box.run_code(ONE, "m:run", {"x": 1}).value == 2
    assert wait_until_gone([zygote]) == []


def test_forked_workers_get_sandboxes_of_their_own():
    assert answer(0)[0] == 1
    with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
        results = list(pool.map(answer, range(20)))
    assert [value for value, _ in results] == list(range(1, 21))
    assert os.getpid() not in {pid for _, pid in results}
    assert answer(5)[0] == 6


def test_threads_share_one_sandbox_and_mix_nothing_up():
    with ThreadPoolExecutor(8) as pool:
        assert [value for value, _ in pool.map(answer, range(60))] == list(range(1, 61))


def test_a_sandbox_outlives_the_thread_that_made_it():
    with ThreadPoolExecutor(1) as pool:
        box = pool.submit(BwrapSandbox).result()
    with box:
        assert box.run_code(ONE, "m:run", {"x": 1}).value == 2


def test_the_dead_are_buried():
    with BwrapSandbox() as box:
        for x in range(30):
            box.run_code(ONE, "m:run", {"x": x})
        zygote = psutil.Process(box._process.pid).children(recursive=True)[0]
        deadline = time.monotonic() + GONE_WITHIN_S
        while zygote.children(recursive=True) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert zygote.children(recursive=True) == []
