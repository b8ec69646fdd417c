"""The process in the sandbox that makes sessions: it imports everything once, then clones itself for each session.

It runs no foreign code and keeps no foreign data. The supervisor sends it, over a packet socket, either
``{"open": number}`` with the session's descriptors or ``{"kill": number}``.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys

import jail
import pins
import storage
import worker

_PACKET_BYTES = 4096
_DESCRIPTORS = 16
_REAP_AFTER_MS = 500
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
    """Serve until the supervisor closes its end or dies (its pid descriptor becomes readable)."""
    with open(filter_path, "rb") as file:
        system_calls = jail.Filter(file.read())
    storage.install()
    for name in _PRELOADED:
        importlib.import_module(name)
    pins.install()
    os.environ.clear()
    control = socket.socket(fileno=control_fd)
    waiting = select.poll()
    waiting.register(control_fd, select.POLLIN)
    waiting.register(supervisor_fd, select.POLLIN)
    sessions: dict[int, int] = {}
    # What was imported is shared with every session: a collection in one of them would copy it all.
    gc.collect()
    gc.freeze()
    control.send(b'{"ready": true}')
    while True:
        events = waiting.poll(_REAP_AFTER_MS if sessions else None)
        if any(fd == supervisor_fd for fd, _ in events):
            return
        if events:
            packet, descriptors, _, _ = socket.recv_fds(control, _PACKET_BYTES, _DESCRIPTORS)
            if not packet:
                return
            message = json.loads(packet)
            if "open" in message:
                sessions[message["open"]] = _open_session(descriptors, system_calls, limits)
            elif message["kill"] in sessions:
                os.kill(sessions[message["kill"]], signal.SIGKILL)
        _reap(sessions)


def _open_session(descriptors: list[int], system_calls: jail.Filter, limits: dict[str, int]) -> int:
    try:
        pid = jail.clone()
    except OSError as error:
        pid = -1
        with contextlib.suppress(OSError):
            os.write(descriptors[0], json.dumps({"fatal": str(error)}).encode() + b"\n")
    if pid == 0:
        _be_a_session(descriptors, system_calls, limits)
    for descriptor in descriptors:
        os.close(descriptor)
    return pid


def _be_a_session(descriptors: list[int], system_calls: jail.Filter, limits: dict[str, int]) -> None:
    """Never returns."""
    try:
        channel, files = worker.arrange(descriptors)
        try:
            jail.enter(system_calls, limits)
        except OSError as error:
            os.write(channel, json.dumps({"fatal": str(error)}).encode() + b"\n")
            os._exit(1)
        worker.serve(channel, files)
    finally:
        os._exit(0)


def _reap(sessions: dict[int, int]) -> None:
    """Forget the dead. Until then their pids are not given away, so that a late kill cannot hit another session."""
    if not sessions:
        return
    try:
        while True:
            pid, _ = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            for number, other in list(sessions.items()):
                if other == pid:
                    del sessions[number]
    except ChildProcessError:
        sessions.clear()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4]))
