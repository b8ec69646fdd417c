"""How far long work over a lake is, shown part by part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from agent_world.lake.proof import OnProgress
    from assets.progress import Progress

_COUNTED = ("tables", "events")
"""Parts that are told in things; the others in bytes."""


def megabytes(size_bytes: int) -> str:
    """Bytes for people."""
    return f"{size_bytes / 1e6:.1f} MB"


def tell_disk_use(before: Mapping[str, int], after: Mapping[str, int]) -> None:
    """Say what the parts of a lake took up before some work, and after it."""
    changed = [name for name in {**before, **after} if before.get(name, 0) != after.get(name, 0)]
    parts = [f"{name} {megabytes(before.get(name, 0))} -> {megabytes(after.get(name, 0))}" for name in changed]
    whole = f"{megabytes(sum(before.values()))} before, {megabytes(sum(after.values()))} after"
    click.echo(f"Disk: {whole}{': ' if parts else ''}{', '.join(parts)}.", err=True)


@contextmanager
def shown_work() -> Iterator[OnProgress]:
    """What tells people of the parts of the work, one after the other."""
    from assets.progress import Progress

    bars: dict[str, Progress] = {}
    with ExitStack() as closed:

        def tell(part: str, done: int, of: int) -> None:
            counted = part in _COUNTED
            name, unit = (part, 1) if counted else (f"{part}, MB", 1_000_000)
            done, of = -(-done // unit), -(-of // unit)
            if name not in bars:
                closed.close()
                bars[name] = closed.enter_context(closing(Progress(name, of)))
            if done > bars[name].count:
                bars[name].reach(done, "")

        yield tell
