"""The process in the sandbox that makes sessions: it imports everything once, then clones itself for each session.

It runs no foreign code and keeps no foreign data.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import sys

import host
import jail
import pins
import session
import storage

# What generated code imports most: paid for once, here, and not by each session.
_PRELOADED = (
    "calendar",
    "collections",
    "csv",
    "decimal",
    "functools",
    "itertools",
    "math",
    "re",
    "statistics",
    "string",
)


def main(control_fd: int, supervisor_fd: int, filter_path: str, limits: dict[str, int]) -> None:
    """Serve until the supervisor lets go."""
    with open(filter_path, "rb") as file:
        system_calls = jail.Filter(file.read())
    storage.install()
    for name in _PRELOADED:
        importlib.import_module(name)
    pins.install()
    os.environ.clear()

    def lock() -> None:
        jail.map_identity()
        jail.enter(system_calls, limits)

    def start(descriptors: list[int]) -> int:
        pid = jail.clone()
        if pid == 0:
            session.live(descriptors, lock)
        return pid

    # What was imported is shared with every session: a collection in one of them would copy it all.
    gc.collect()
    gc.freeze()
    host.serve(control_fd, supervisor_fd, start, lambda pid: os.kill(pid, signal.SIGKILL))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4]))
