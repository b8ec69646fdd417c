"""The live episodes of a server: so many at once, each with its own lock, ended when nobody uses them any more."""

from __future__ import annotations

import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar, TypeVarTuple

import anyio
from anyio.to_thread import run_sync

from agent_world.environments.model import Json
from agent_world.identity import VersionId
from agent_world.rollouts.episode import PinMismatchError
from agent_world.rollouts.model import Step
from agent_world.rollouts.rewards import UnjudgeableTaskError
from agent_world.serving.episodes_messages import EpisodeReply, RefusedError, Result, StepReply
from agent_world.serving.episodes_numbered import NumberedEpisode, Wanted

if TYPE_CHECKING:
    from agent_world.sandbox import Sandbox

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")
Gone = Literal["episode_closed", "episode_expired"]
_REMEMBERED = 10_000
"""Episodes that are gone, and batches, of which the server still knows what became of them."""
_RETRY_AFTER_S = 1
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeLimits:
    """What the server gives away at most.

    `most` episodes are live at once. One that nobody asks for `idle_s` seconds is ended, one without an answer after
    `steps` steps has failed. A request has at most `body_bytes` bytes.
    """

    most: int = 256
    idle_s: float = 30 * 60
    steps: int = 512
    body_bytes: int = 1 << 20


@dataclass(slots=True)
class _Held:
    episode: NumberedEpisode
    used_at: float
    lock: anyio.Lock = field(default_factory=anyio.Lock)


@dataclass(slots=True)
class _Batch:
    """What was asked for under a key, and the episodes that were opened for it once they were."""

    content: list[tuple[VersionId, int, int]]
    ids: list[str] | None = None
    lock: anyio.Lock = field(default_factory=anyio.Lock)


class LiveEpisodes:
    """All methods belong to one event loop; what takes time runs in threads of their own.

    `clock` gives seconds that only ever grow.
    """

    def __init__(
        self, limits: EpisodeLimits, *, sandbox: Sandbox | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.limits = limits
        self._sandbox, self._clock = sandbox, clock
        # As many threads as episodes: a tool that hangs holds up its own episode and no other.
        self._threads = anyio.CapacityLimiter(limits.most)
        self._held: dict[str, _Held] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._gone: OrderedDict[str, tuple[Gone, Result]] = OrderedDict()
        self._batches: OrderedDict[str, _Batch] = OrderedDict()
        self._opening = 0
        self._closing = False

    @property
    def count(self) -> int:
        """How many are live: being opened, or opened and not ended."""
        return len(self._held) - len(self._ended) + self._opening

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Ends idle episodes as long as it is entered, and all others when it is left."""
        self._closing = False
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._sweep_now_and_then)
                yield
                group.cancel_scope.cancel()
        finally:
            self._closing = True
            with anyio.CancelScope(shield=True):
                async with anyio.create_task_group() as group:
                    for id in list(self._held):
                        group.start_soon(self._end, id, "episode_closed")

    async def create(self, wanted: Sequence[Wanted], key: str | None = None) -> list[EpisodeReply]:
        """Open all of `wanted`, or give what was opened for the same under the same `key`.

        Raises:
            RefusedError: there is no room, a task cannot be attempted (nothing was opened then), or `key` stands for
                something else.
        """
        if key is None:
            return await self._open(wanted)
        content = [(each.bound.version, each.seed, each.sample) for each in wanted]
        batch = self._batches.setdefault(key, _Batch(content))
        _trim(self._batches)
        if batch.content != content:
            raise RefusedError(409, "key_conflict", "This key was used for other episodes; take a new one.")
        async with batch.lock:
            if batch.ids is not None:
                return [self._find(id).episode.reply() for id in batch.ids]
            opened = await self._open(wanted)
            batch.ids = [each.id for each in opened]
        return opened

    async def show(self, id: str) -> EpisodeReply:
        """The episode as it is between two steps.

        Raises:
            RefusedError: it is unknown, or gone.
        """
        async with self._use(id) as episode:
            return episode.reply()

    async def step(self, id: str, n: int, step: Step) -> StepReply:
        """As `NumberedEpisode.step`.

        Raises:
            RefusedError: as there, or the episode is unknown, or gone.
        """
        async with self._use(id) as episode:
            return await self._work(episode.step, n, step)

    async def answer(self, id: str, n: int, value: Json) -> Result:
        """As `NumberedEpisode.answer`.

        Raises:
            RefusedError: as there, or the episode is unknown, or gone.
        """
        async with self._use(id) as episode:
            return await self._work(episode.answer, n, value)

    async def close(self, id: str) -> Result:
        """End the episode, a step that is under way with it, and forget it; again, the same outcome.

        Raises:
            RefusedError: it is unknown, or has expired.
        """
        await self._end(id, "episode_closed")
        gone = self._gone.get(id)
        if gone is None or gone[0] != "episode_closed":
            raise self._missing(id)
        return gone[1]

    async def sweep(self) -> None:
        """End those that nobody asked for since `idle_s` seconds."""
        idle = [id for id, held in self._held.items() if self._idle(held) and not held.lock.locked()]
        for id in idle:
            await self._end(id, "episode_expired")

    async def _sweep_now_and_then(self) -> None:
        while True:
            await anyio.sleep(min(max(self.limits.idle_s / 4, 0.05), 30))
            await self.sweep()

    async def _open(self, wanted: Sequence[Wanted]) -> list[EpisodeReply]:
        number = len(wanted)
        if self._closing:
            raise _shutting_down()
        if self.count + number > self.limits.most:
            why = f"There is room for {self.limits.most - self.count} more episodes, not for {number}."
            raise RefusedError(503, "server_full", why, _RETRY_AFTER_S)
        self._opening += number
        try:
            opened = await self._work(self._open_all, wanted)
        finally:
            self._opening -= number
        if self._closing:
            await self._work(_close_all, opened)
            raise _shutting_down()
        for episode in opened:
            self._held[episode.id] = _Held(episode, self._clock())
            self._note(episode)
        return [episode.reply() for episode in opened]

    def _open_all(self, wanted: Sequence[Wanted]) -> list[NumberedEpisode]:
        opened: list[NumberedEpisode] = []
        try:
            for each in wanted:
                # A capability, not the identity of anything that is kept: whoever knows the id may act.
                id = secrets.token_urlsafe(24)
                opened.append(NumberedEpisode(id, each, most_steps=self.limits.steps, sandbox=self._sandbox))
        except (PinMismatchError, UnjudgeableTaskError) as error:
            _close_all(opened)
            _log.warning("%s", error)
            version = wanted[len(opened)].bound.version
            raise RefusedError(422, "unusable_task", f"Task {version} cannot be attempted.") from None
        return opened

    @asynccontextmanager
    async def _use(self, id: str) -> AsyncIterator[NumberedEpisode]:
        held = self._find(id)
        async with held.lock:
            self._find(id)  # it may have ended while this request waited
            try:
                yield held.episode
            finally:
                held.used_at = self._clock()
                self._note(held.episode)

    def _find(self, id: str) -> _Held:
        if id not in self._held:
            raise self._missing(id)
        return self._held[id]

    def _missing(self, id: str) -> RefusedError:
        if id not in self._gone:
            return RefusedError(404, "unknown_episode", "There is no such episode.")
        if self._gone[id][0] == "episode_closed":
            return RefusedError(410, "episode_closed", "This episode was closed.")
        why = f"This episode was ended: nobody asked for it for {self.limits.idle_s:g} seconds."
        return RefusedError(410, "episode_expired", why)

    async def _end(self, id: str, why: Gone) -> None:
        held = self._held.get(id)
        if held is None:
            return
        if why == "episode_closed":
            await run_sync(held.episode.stop)
        async with held.lock:  # whose turn comes late may find that another was faster
            if self._held.get(id) is not held or (why == "episode_expired" and not self._idle(held)):
                return
            self._forget(id, why, await self._work(held.episode.close))

    def _forget(self, id: str, why: Gone, outcome: Result) -> None:
        del self._held[id]
        self._ended.pop(id, None)
        self._gone[id] = why, outcome
        _trim(self._gone)

    def _note(self, episode: NumberedEpisode) -> None:
        """See whether it has ended; of those the oldest are forgotten."""
        if episode.outcome is None or episode.id not in self._held or episode.id in self._ended:
            return
        self._ended[episode.id] = None
        if len(self._ended) > _REMEMBERED:
            oldest = next(iter(self._ended))
            outcome = self._held[oldest].episode.outcome
            assert outcome is not None
            self._forget(oldest, "episode_closed", outcome)

    def _idle(self, held: _Held) -> bool:
        return self._clock() - held.used_at >= self.limits.idle_s

    async def _work(self, function: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
        return await run_sync(function, *arguments, limiter=self._threads)


def _trim(remembered: OrderedDict[str, Any]) -> None:
    while len(remembered) > _REMEMBERED:
        remembered.popitem(last=False)


def _close_all(episodes: Sequence[NumberedEpisode]) -> None:
    for episode in episodes:
        episode.close()


def _shutting_down() -> RefusedError:
    return RefusedError(503, "shutting_down", "The server is shutting down.", _RETRY_AFTER_S)
