"""`Engine.map`: the one place where work fans out (design.md 10: concurrency lives inside a step)."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar

from agent_world.errors import AgentWorldError
from agent_world.sandbox.errors import SandboxFailedError, SandboxUnavailableError

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Failure:
    """An item whose work raised; its neighbours went on. `passing` when it was the machine's fault: try it again."""

    error: str
    trace: str
    passing: bool


@dataclass(frozen=True, slots=True)
class Done(Generic[Item, Result]):
    """One finished item, in the order of the input: exactly one of `result` and `failure` is set."""

    item: Item
    result: Result | None
    failure: Failure | None


class Engine:
    """A pool of worker processes on this machine. Use it with `with`; leaving ends the workers, at work or not.

    Functions and items travel by pickle. With one worker everything runs in this process, which is what a debugger
    wants. Workers find the modules of `preload` imported: the process that they are forked from, one for all engines of
    a process, begins with that when the first engine is made.
    """

    def __init__(self, workers: int | None = None, preload: Sequence[str] = ()) -> None:
        self.workers = workers or len(os.sched_getaffinity(0))
        if preload and self.workers > 1:
            _start_fork_server(preload)
        self._pool: ProcessPoolExecutor | None = None
        self._lifeline: Connection | None = None
        self._given: list[Future[Any]] = []

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool and self._lifeline:
            if not all(future.done() for future in self._given):
                self._lifeline.close()  # an interrupt came: to wait for what nobody takes could last minutes
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._lifeline.close()
            self._pool = None

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Done[Item, Result]]:
        """Run `function` on every item; results come in input order, as soon as each is there.

        A pool is not started for a single item, which is then worked on in this process.
        """
        if self.workers == 1 or (self._pool is None and len(items) <= 1):
            for item in items:
                yield _as_done(item, _guarded(function, item))
            return
        if self._pool is None:
            # Not fork: the parent holds threads of Arrow and of delta-rs, whose locks a forked child would inherit.
            context = multiprocessing.get_context("forkserver")
            theirs, self._lifeline = context.Pipe(duplex=False)
            self._pool = ProcessPoolExecutor(
                self.workers, mp_context=context, initializer=_end_with, initargs=(theirs,)
            )  # fmt: skip
        futures: list[Future[Result | Failure]] = [self._pool.submit(_guarded, function, item) for item in items]
        self._given = futures
        for item, future in zip(items, futures, strict=True):
            yield _as_done(item, future.result())
        self._given = []


_PASSING = (OSError, MemoryError, SandboxUnavailableError, SandboxFailedError)


def _start_fork_server(preload: Sequence[str]) -> None:
    """It imports while its parent goes on."""
    forkserver.set_forkserver_preload(["__main__", "agent_world.interruptible", *preload])
    forkserver.ensure_running()


def _end_with(lifeline: Connection) -> None:
    """A worker ends when its run lets go of the other end, or is killed; the fork server between them outlives both.

    Ctrl-C reaches the workers too: they end at once, rather than going on with what is queued for them.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)

    def watch() -> None:
        lifeline.poll(None)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _guarded(function: Callable[[Item], Result], item: Item) -> Result | Failure:
    try:
        return function(item)
    except Exception as error:  # the loop that spares an item's neighbours
        passing = isinstance(error, _PASSING)
        if isinstance(error, AgentWorldError):
            return Failure(str(error), "", passing)
        return Failure(f"{type(error).__name__}: {error}", traceback.format_exc(), passing)


def _as_done(item: Item, outcome: Result | Failure) -> Done[Item, Result]:
    if isinstance(outcome, Failure):
        return Done(item, None, outcome)
    return Done(item, outcome, None)
