"""The versions below an environment that no hash pins: where they are others, a query may answer otherwise.

A sandbox runs the libraries of its host, and state is read with the same ones, so those of this process tell both.
"""

from __future__ import annotations

import sqlite3
import sys
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from agent_world.world import World


class Runtime(NamedTuple):
    """Versions of Python (without its patch level) and of the SQLite library."""

    python: str
    sqlite: str

    def __str__(self) -> str:
        return f"SQLite {self.sqlite} and Python {self.python}"


def runtime_here() -> Runtime:
    """That of this process."""
    return Runtime(python=f"{sys.version_info.major}.{sys.version_info.minor}", sqlite=sqlite3.sqlite_version)


def runtimes_of(world: World) -> Counter[Runtime]:
    """Those under which the stages of a lake did their work, with how many partitions each."""
    rows = world.read("runtimes", columns=["python", "sqlite"])
    return Counter(Runtime(row["python"], row["sqlite"]) for row in rows)


def other_runtimes(world: World) -> str | None:
    """What to bear in mind where a replay of something in this lake differs; None where all is as it was then."""
    here, known = runtime_here(), runtimes_of(world)
    if not known:
        return f"The lake does not say under which SQLite and Python it was made; here are {here}."
    others = [str(runtime) for runtime, _ in known.most_common() if runtime != here]
    if not others:
        return None
    return f"Made under {'; '.join(others)}; here are {here}. What differs now may differ by that alone."
