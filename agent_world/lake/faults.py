"""Points at which a test can kill the process, so that crash safety is shown and not hoped for.

``AGENT_WORLD_KILL_AT="event_commit:3"`` kills the process with SIGKILL when it reaches ``event_commit`` the third time.
Points of the lake: blob_write, event_commit (before), after_event_commit, projection, carry (before a file is sent),
carried, gc_delete, repair. Other packages add their own.
"""

from __future__ import annotations

import os
import signal
from collections import Counter

KILL_AT = "AGENT_WORLD_KILL_AT"

_reached: Counter[str] = Counter()


def reach(point: str) -> None:
    """Note that `point` is reached; die there if the environment asks for it."""
    wanted = os.environ.get(KILL_AT)
    if not wanted:
        return
    name, _, count = wanted.partition(":")
    if name == point:
        _reached[point] += 1
        if _reached[point] == int(count or 1):
            os.kill(os.getpid(), signal.SIGKILL)
