"""`Engine.map`: the one place where work fans out (design.md 10: concurrency lives inside a step)."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from agent_world.errors import AgentWorldError, BadInputError
from agent_world.sandbox.errors import SandboxFailedError, SandboxUnavailableError

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Failure:
    """An item whose work raised; its neighbours went on. `passing` when it was the machine's fault: try it again."""

    error: str
    trace: str
    passing: bool


class Spent(NamedTuple):
    """What work took: seconds on the clock, and of the CPU without the sandboxes that it drove."""

    wall_s: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Done(Generic[Item, Result]):
    """One finished item, in the order of the input: exactly one of `result` and `failure` is set."""

    item: Item
    result: Result | None
    failure: Failure | None
    spent: Spent


class Stopwatch:
    """Runs from its making: what this process and its workers spend."""

    _by_workers: ClassVar[float] = 0.0

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time() + self._by_workers

    def spent(self) -> Spent:
        """So far; of workers what they have finished."""
        return Spent(time.perf_counter() - self._wall, time.process_time() + self._by_workers - self._cpu)

    @classmethod
    def add(cls, cpu_s: float) -> None:
        """Count in what a worker has spent."""
        cls._by_workers += cpu_s


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
                yield as_done(item, *timed(function, item))
            return
        if self._pool is None:
            # Not fork: the parent holds threads of Arrow and of delta-rs, whose locks a forked child would inherit.
            context = multiprocessing.get_context("forkserver")
            theirs, self._lifeline = context.Pipe(duplex=False)
            self._pool = ProcessPoolExecutor(
                self.workers, mp_context=context, initializer=_end_with, initargs=(theirs,)
            )  # fmt: skip
        futures = [self._pool.submit(timed, function, item) for item in items]
        self._given = futures
        for item, future in zip(items, futures, strict=True):
            outcome, spent = future.result()
            Stopwatch.add(spent.cpu_s)
            yield as_done(item, outcome, spent)
        self._given = []


def open_engine(where: str = "local", workers: int | None = None, preload: Sequence[str] = ()) -> Engine:
    """The engine at `where`: `local` is a pool of so many `workers`; a Spark master or Connect server has its own.

    Raises:
        BadInputError: `where` is neither.
    """
    if where == "local":
        return Engine(workers, preload)
    if not where.startswith(("spark://", "sc://", "local[")):
        cure = "give `local`, spark://host:port or sc://host:port"
        raise BadInputError("AGENT_WORLD_ENGINE", f"{where!r} is no engine", cure)
    from agent_world.spark_engine import SparkEngine

    return SparkEngine(where)


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


def timed(function: Callable[[Item], Result], item: Item) -> tuple[Result | Failure, Spent]:
    """What came of an item, whatever its work raised, and what that took; how every engine works on one."""
    stopwatch = Stopwatch()
    outcome = _guarded(function, item)
    return outcome, stopwatch.spent()


def _guarded(function: Callable[[Item], Result], item: Item) -> Result | Failure:
    try:
        return function(item)
    except Exception as error:  # the loop that spares an item's neighbours
        passing = isinstance(error, _PASSING)
        if isinstance(error, AgentWorldError):
            return Failure(str(error), "", passing)
        return Failure(f"{type(error).__name__}: {error}", traceback.format_exc(), passing)


def as_done(item: Item, outcome: Result | Failure, spent: Spent) -> Done[Item, Result]:
    """The item as finished."""
    if isinstance(outcome, Failure):
        return Done(item, None, outcome, spent)
    return Done(item, outcome, None, spent)
