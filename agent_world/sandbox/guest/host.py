"""The loop of a process that makes sessions: it opens and kills them as it is told, and buries the dead.

The supervisor sends it, over a packet socket, either ``{"open": number}`` with the session's descriptors or
``{"kill": number}``. It gets one packet back: that the process is ready.
"""

from __future__ import annotations

import json
import os
import select
import socket
from collections.abc import Callable

import fatal

_PACKET_BYTES = 4096
_DESCRIPTORS = 16
_REAP_AFTER_MS = 500


def serve(control_fd: int, supervisor_fd: int, start: Callable[[list[int]], int], kill: Callable[[int], None]) -> None:
    """Serve until the supervisor closes its end or dies (its pid descriptor becomes readable).

    `start` makes a session of these descriptors, the first of which is its channel, and returns its pid; when it
    raises OSError, the channel is told.
    """
    control = socket.socket(fileno=control_fd)
    waiting = select.poll()
    waiting.register(control_fd, select.POLLIN)
    waiting.register(supervisor_fd, select.POLLIN)
    sessions: dict[int, int] = {}
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
                try:
                    sessions[message["open"]] = start(descriptors)
                except OSError as error:
                    fatal.say(descriptors[0], error)
                for descriptor in descriptors:
                    os.close(descriptor)
            elif message["kill"] in sessions:
                kill(sessions[message["kill"]])
        _reap(sessions)


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
