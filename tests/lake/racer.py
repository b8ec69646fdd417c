"""A process that races others for the same keys: ``python -m tests.lake.racer URI WHO ROUNDS`` says which it won.

It begins when it is told to on its input, so that all are ready when the first begins.
"""

from __future__ import annotations

import sys

from agent_world.lake.storage import open_storage


def main(uri: str, who: str, rounds: str) -> None:
    """Write every key that is not there yet, and say so."""
    storage = open_storage(uri)
    storage.exists("ready")
    print("ready", flush=True)
    sys.stdin.readline()
    won = [number for number in range(int(rounds)) if storage.write_new(f"key-{number}", who.encode())]
    print(*won, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
