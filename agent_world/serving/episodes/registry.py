"""The live episodes of a server, each for one request at a time, ended when nobody uses them any more."""

from __future__ import annotations

import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import anyio

from agent_world.environments.model import Json
from agent_world.identity import VersionId
from agent_world.rollouts.episode import PinMismatchError
from agent_world.rollouts.model import Step
from agent_world.rollouts.rewards import UnjudgeableTaskError
from agent_world.serving.episodes.messages import EpisodeReply, Result, StepReply
from agent_world.serving.episodes.numbered import NumberedEpisode, Wanted
from agent_world.serving.exclusive import ClosedError, Exclusive
from agent_world.serving.idle import LastUse, sweep_for_ever
from agent_world.serving.limits import Place, Places, ServingLimits
from agent_world.serving.refusals import RefusedError

if TYPE_CHECKING:
    from agent_world.sandbox import Sandbox

T = TypeVar("T")
End = Literal["episode_closed", "episode_expired"]
_REMEMBERED = 10_000
"""Episodes that are gone, and batches, of which the server still knows what became of them."""
_RETRY_AFTER_S = 1
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Entry:
    """An episode that a client may ask for, live or ended; `ending` says why it is about to go."""

    episode: NumberedEpisode
    exclusive: Exclusive[NumberedEpisode]
    place: Place
    last_use: LastUse
    ending: End | None = None


@dataclass(slots=True)
class _Batch:
    """What was asked for under a key, and the episodes that were opened for it once they were."""

    content: list[tuple[VersionId, int, int]]
    ids: list[str] | None = None
    lock: anyio.Lock = field(default_factory=anyio.Lock)


class EpisodeRegistry:
    """All methods belong to one event loop; what takes time runs in threads of their own.

    An episode has a place from before it is opened until it has ended. `clock` gives seconds that only grow.
    """

    def __init__(
        self,
        places: Places,
        limits: ServingLimits,
        *,
        sandbox: Sandbox | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits = limits
        self._places, self._sandbox, self._clock = places, sandbox, clock
        self._entries: dict[str, _Entry] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._gone: OrderedDict[str, tuple[End, Result]] = OrderedDict()
        self._batches: OrderedDict[str, _Batch] = OrderedDict()
        self._closing = False

    @property
    def count(self) -> int:
        """How many are live: opened, and not ended."""
        return len(self._entries) - len(self._ended)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Ends idle episodes as long as it is entered, and all others when it is left."""
        self._closing = False
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(sweep_for_ever, self.sweep, self.limits.idle_s)
                yield
                group.cancel_scope.cancel()
        finally:
            self._closing = True
            with anyio.CancelScope(shield=True):
                async with anyio.create_task_group() as group:
                    for id in list(self._entries):
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
                return [await self.show(id) for id in batch.ids]
            opened = await self._open(wanted)
            batch.ids = [each.id for each in opened]
        return opened

    async def show(self, id: str) -> EpisodeReply:
        """The episode as it is between two steps.

        Raises:
            RefusedError: it is unknown, or gone.
        """
        return await self._use(id, NumberedEpisode.reply)

    async def step(self, id: str, n: int, step: Step) -> StepReply:
        """As `NumberedEpisode.step`.

        Raises:
            RefusedError: as there, or the episode is unknown, or gone.
        """
        return await self._use(id, lambda episode: episode.step(n, step))

    async def answer(self, id: str, n: int, value: Json) -> Result:
        """As `NumberedEpisode.answer`.

        Raises:
            RefusedError: as there, or the episode is unknown, or gone.
        """
        return await self._use(id, lambda episode: episode.answer(n, value))

    async def close(self, id: str) -> Result:
        """End the episode, a step that is under way with it, and forget it; again, the same outcome.

        Raises:
            RefusedError: it is unknown, or has expired.
        """
        await self._end(id, "episode_closed")
        end, outcome = self._gone.get(id, (None, None))
        if end != "episode_closed" or outcome is None:
            raise self._missing(id)
        return outcome

    async def sweep(self) -> None:
        """End those that nobody asked for since `idle_s` seconds."""
        idle = [id for id, entry in self._entries.items() if entry.last_use.idle(self.limits.idle_s)]
        for id in idle:
            if id in self._entries and self._entries[id].last_use.idle(self.limits.idle_s):
                await self._end(id, "episode_expired")

    async def _open(self, wanted: Sequence[Wanted]) -> list[EpisodeReply]:
        if self._closing:
            raise _shutting_down()
        places = self._places.take(len(wanted))
        opened: list[_Entry] = []
        try:
            for each, place in zip(wanted, places, strict=True):
                opened.append(await self._opened(each, place))
                if self._closing:
                    raise _shutting_down()
        except BaseException:
            with anyio.CancelScope(shield=True):
                for entry in opened:
                    await entry.exclusive.close()
            for place in places:
                place.leave()
            raise
        for entry in opened:
            self._entries[entry.episode.id] = entry
            self._note(entry)
        return [entry.episode.reply() for entry in opened]

    async def _opened(self, wanted: Wanted, place: Place) -> _Entry:
        # A capability, not the identity of anything that is kept: whoever knows the id may act.
        id = secrets.token_urlsafe(24)
        exclusive = Exclusive(lambda: NumberedEpisode(id, wanted, limits=self.limits, sandbox=self._sandbox))
        try:
            return _Entry(await exclusive.use(_itself), exclusive, place, LastUse(self._clock))
        except (PinMismatchError, UnjudgeableTaskError) as error:
            _log.warning("%s", error)
            message = f"Task {wanted.bound.version} cannot be attempted."
            raise RefusedError(422, "unusable_task", message) from None
        except BaseException:
            with anyio.CancelScope(shield=True):
                await exclusive.close()
            raise

    async def _use(self, id: str, work: Callable[[NumberedEpisode], T]) -> T:
        entry = self._entries.get(id)
        if entry is None:
            raise self._missing(id)
        try:
            with entry.last_use.now():
                return await entry.exclusive.use(work)
        except ClosedError:
            raise self._refused(entry.ending or "episode_closed") from None
        finally:
            self._note(entry)

    def _missing(self, id: str) -> RefusedError:
        if id not in self._gone:
            return RefusedError(404, "unknown_episode", "There is no such episode.")
        return self._refused(self._gone[id][0])

    def _refused(self, end: End) -> RefusedError:
        if end == "episode_closed":
            return RefusedError(410, end, "This episode was closed.")
        why = f"This episode was ended: nobody asked for it for {self.limits.idle_s:g} seconds."
        return RefusedError(410, end, why)

    async def _end(self, id: str, end: End) -> None:
        entry = self._entries.get(id)
        if entry is None:
            return
        entry.ending = entry.ending or end
        await entry.exclusive.close()
        if self._entries.get(id) is entry:  # or another was faster
            self._forget(id, entry, entry.ending)

    def _forget(self, id: str, entry: _Entry, end: End) -> None:
        outcome = entry.episode.outcome
        assert outcome is not None, "it has ended"
        del self._entries[id]
        self._ended.pop(id, None)
        self._gone[id] = end, outcome
        entry.place.leave()
        _trim(self._gone)

    def _note(self, entry: _Entry) -> None:
        """See whether it has ended; of those the oldest are forgotten."""
        id = entry.episode.id
        if entry.episode.outcome is None or id not in self._entries or id in self._ended:
            return
        self._ended[id] = None
        entry.place.leave()
        if len(self._ended) > _REMEMBERED:
            oldest = next(iter(self._ended))
            self._forget(oldest, self._entries[oldest], "episode_closed")


def _trim(remembered: OrderedDict[str, Any]) -> None:
    while len(remembered) > _REMEMBERED:
        remembered.popitem(last=False)


def _itself(episode: NumberedEpisode) -> NumberedEpisode:
    return episode


def _shutting_down() -> RefusedError:
    return RefusedError(503, "shutting_down", "The server is shutting down.", {"Retry-After": str(_RETRY_AFTER_S)})
