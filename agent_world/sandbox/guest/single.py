"""A session that is a process from its start, not a clone of one: it locks itself up, and may start programs."""

from __future__ import annotations

import json
import os
import sys

import jail
import pins
import session
import storage


def main(filter_path: str, limits: dict[str, int], descriptors: list[int]) -> None:
    """Never returns."""
    with open(filter_path, "rb") as file:
        system_calls = jail.Filter(file.read())
    storage.install()
    pins.install()
    os.environ.clear()

    def lock() -> None:
        jail.unshare()
        jail.enter(system_calls, limits)

    session.live(descriptors, lock)


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]), [int(word) for word in sys.argv[3:]])
