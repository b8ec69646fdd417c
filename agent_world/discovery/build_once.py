"""Files that several processes may want to make at once."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from pathlib import Path


def build_once(path: Path, write: Callable[[Path], None]) -> None:
    """Make the file `path` unless it is there: `write` gets a name beside it and makes it under that.

    One process makes it while the others wait. The file is there whole or not at all; what a process that was killed
    left unfinished is made anew.
    """
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # given up by the system however this process ends
        if path.exists():  # another one made it meanwhile
            return
        unfinished = path.with_suffix(".part")
        unfinished.unlink(missing_ok=True)
        try:
            write(unfinished)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
        unfinished.replace(path)
