"""A process that plays episodes without end, for tests that kill such processes and what they started.

``python -m tests.sandbox.player THREADS`` prints a JSON line for each attempt at an episode that came to its end. Once
its input is closed it ends what it plays, says how many descriptors it held at first and holds now, and is done.
"""

from __future__ import annotations

import gc
import itertools
import json
import os
import sys
import threading
from collections.abc import Iterator

from agent_world.identity import canonical_json, sha256
from agent_world.rollouts.episode import Episode
from agent_world.sandbox import default_sandbox
from agent_world.tasks.model import Task
from tests.rollouts.cases import ENVIRONMENT, PROGRAM, WRITING

TASKS = {task.task_id: task for task in (WRITING, PROGRAM)}
ATTEMPTS = 20


def attempt(task: Task) -> dict:
    """The gold episode of a task, and how it ended."""
    seen: list = []
    with Episode(task, ENVIRONMENT, seed=1) as episode:
        for call in task.plan:
            if not episode.over:
                observation = episode.call(call.tool, call.arguments)
                seen.append([observation.status, observation.value])
        outcome = episode.outcome if episode.over else episode.answer(task.answer)
    assert outcome is not None
    return {
        "task": task.task_id,
        "status": outcome.status,
        "reward": outcome.reward,
        "detail": outcome.detail,
        "crashed": any(status == "error" and value["error"]["code"] == "crash" for status, value in seen),
        "seen": sha256(canonical_json(seen)),
        "digest": episode.final_digest,
    }


def attempts(task: Task) -> Iterator[dict]:
    """Attempts at one episode until one is not the harness's failure, as a trainer makes them."""
    for _ in range(ATTEMPTS):
        found = attempt(task)
        yield found
        if found["status"] != "infra_error":
            return


def main(threads: int) -> None:
    """Play."""
    stopping = threading.Event()
    for task in TASKS.values():
        attempt(task)
    held = _descriptors()

    def play(thread: int) -> None:
        for number in itertools.count():
            for index, found in enumerate(attempts(list(TASKS.values())[(thread + number) % len(TASKS)])):
                _say({"player": os.getpid(), "thread": thread, "episode": number, "attempt": index, **found})
            if stopping.is_set():
                return

    playing = [threading.Thread(target=play, args=(thread,)) for thread in range(threads)]
    for thread in playing:
        thread.start()
    sys.stdin.read()
    stopping.set()
    for thread in playing:
        thread.join()
    for task in TASKS.values():
        assert attempt(task)["status"] == "pass"
    default_sandbox()  # a new one, where the last one is dead and has not been let go of
    gc.collect()
    _say({"player": os.getpid(), "held": held, "holds": _descriptors()})


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def _say(line: dict) -> None:
    # In one piece, however many threads and whatever kills them.
    os.write(1, json.dumps(line).encode() + b"\n")


if __name__ == "__main__":
    main(int(sys.argv[1]))
