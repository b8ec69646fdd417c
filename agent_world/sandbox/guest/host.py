"""The loop of a process that makes sessions: it opens and kills them as it is told, and buries the dead.

The supervisor sends it, over a packet socket, either ``open NUMBER`` with the session's descriptors or ``kill NUMBER``.
It gets one packet back: that the process is ready.
"""

from __future__ import annotations

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
    pids: dict[bytes, int] = {}
    numbers: dict[int, bytes] = {}
    control.send(b"ready")
    alive = False
    while True:
        events = waiting.poll(_REAP_AFTER_MS if alive else None)
        if any(fd == supervisor_fd for fd, _ in events):
            return
        if events:
            packet, descriptors, _, _ = socket.recv_fds(control, _PACKET_BYTES, _DESCRIPTORS)
            if not packet:
                return
            verb, number = packet.split()
            if verb == b"open":
                try:
                    pids[number] = pid = start(descriptors)
                    numbers[pid] = number
                except OSError as error:
                    fatal.say(descriptors[0], error)
                for descriptor in descriptors:
                    os.close(descriptor)
            elif number in pids:
                kill(pids[number])
        alive = _reap(pids, numbers)


def _reap(pids: dict[bytes, int], numbers: dict[int, bytes]) -> bool:
    """Forget the dead; whether any child is left, a session or what one left behind.

    Until then their pids are not given away, so that a late kill cannot hit another session.
    """
    try:
        while True:
            pid, _ = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return True
            number = numbers.pop(pid, None)  # none: what the keeper buries for a session that is dead
            if number is not None:
                del pids[number]
    except ChildProcessError:
        return False
