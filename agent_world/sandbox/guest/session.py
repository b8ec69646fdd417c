"""The life of a process as a session: it is locked up, then serves, and ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import NoReturn

import fatal
import worker


def live(descriptors: list[int], lock: Callable[[], None]) -> NoReturn:
    """Serve over these descriptors, the first of which is the channel, once `lock` has taken every right away."""
    # Numbers of descriptors, which differ from back-end to back-end.
    del sys.argv[1:]
    try:
        channel, files = worker.arrange(descriptors)
        try:
            lock()
        except OSError as error:
            fatal.say(channel, error)
            os._exit(1)
        worker.serve(channel, files)
    finally:
        os._exit(0)
