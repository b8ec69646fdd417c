"""The last word of a session that did not start."""

from __future__ import annotations

import contextlib
import json
import os


def say(channel: int, error: OSError) -> None:
    """Tell the supervisor why."""
    with contextlib.suppress(OSError):
        os.write(channel, json.dumps({"fatal": str(error)}).encode() + b"\n")
