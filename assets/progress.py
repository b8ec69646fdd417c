"""Progress of long work, for people: a live bar on a terminal, a line a step elsewhere."""

import sys
import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress

console = Console(stderr=True)


class Progress:
    """Progress of one stage over `total` items, `done` of which were there already."""

    def __init__(self, stage: str, total: int, *, done: int = 0) -> None:
        self.stage, self.total, self.count = stage, total, done
        self.started = time.monotonic()
        self._bar: RichProgress | None = None
        if sys.stderr.isatty():
            self._bar = RichProgress(
                TextColumn("  {task.description:<14}"),
                BarColumn(bar_width=30),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[last]}", style="dim"),
                console=console,
            )
            self._task = self._bar.add_task(stage, total=total, completed=done, last="")
            self._bar.start()

    def advance(self, item: str) -> None:
        """One more item is done."""
        self.count += 1
        if self._bar:
            self._bar.update(self._task, completed=self.count, last=item)
        else:
            elapsed = time.monotonic() - self.started
            console.print(f"  {self.stage:<14} {self.count}/{self.total}  {item}  ({elapsed:.0f} s)", highlight=False)

    def reach(self, step: int, note: str) -> None:
        """Work of many like steps has come to `step`; off a terminal only every tenth of the way is told."""
        tenth = max(1, self.total // 10)
        told, self.count = self.count // tenth, step
        if self._bar:
            self._bar.update(self._task, completed=step, last=note)
        elif step // tenth > told or step >= self.total:
            elapsed = time.monotonic() - self.started
            console.print(f"  {self.stage:<14} {step}/{self.total}  {note}  ({elapsed:.0f} s)", highlight=False)

    def fail(self, item: str, why: str) -> None:
        """An item could not be done; the others go on."""
        console.print(f"  {self.stage:<14} {item}: {why}", style="red", highlight=False)

    def close(self) -> None:
        """The stage is over."""
        if self._bar:
            self._bar.stop()
