"""An episode whose steps its client numbers, so that a request that is repeated after a lost reply acts once."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from agent_world.environments.model import Json
from agent_world.identity import Digest, canonical_json, sha256
from agent_world.rollouts.episode import malformed
from agent_world.rollouts.model import Observation, Step
from agent_world.serving.episodes.messages import EpisodeReply, Result, StepReply, rendered
from agent_world.serving.history import forget
from agent_world.serving.limits import CallBudget
from agent_world.serving.refusals import RefusedError

if TYPE_CHECKING:
    from agent_world.rollouts.episode import Episode
    from agent_world.sandbox import Sandbox
    from agent_world.serving.limits import ServingLimits
    from agent_world.world import BoundTask

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One episode that a client asked for."""

    bound: BoundTask
    seed: int
    sample: int


class NumberedEpisode:
    """Not for several threads at once: whoever holds it lets one step after the other in.

    Of what happened in it no more is kept than may be asked for again: its latest steps with what they gave, and of
    one that has ended the last.

    Raises:
        PinMismatchError, UnjudgeableTaskError: the task cannot be attempted.
    """

    def __init__(self, id: str, wanted: Wanted, *, limits: ServingLimits, sandbox: Sandbox | None) -> None:
        self.id, self.wanted = id, wanted
        self.outcome: Result | None = None
        self._calls = CallBudget(limits.calls)
        self._steps = 0
        self._latest = _LatestSteps(limits.kept_bytes)
        self._episode: Episode | None = wanted.bound.episode(wanted.seed, sandbox=sandbox)
        self._settle()

    def step(self, n: int, step: Step) -> StepReply:
        """Take a tool call or a reply as step `n`, or repeat what it gave.

        Raises:
            RefusedError: `n` is neither the next step nor a repetition, or one that is not kept any more; the episode
                has ended; or its calls are used up.
        """
        taken = self._repeated(n, step)
        if taken is None:
            episode = self._live(n)
            if not self._calls.spend():
                raise RefusedError(409, "call_limit", f"{self._calls.spent} Give the answer, or end the episode.")
            observation = episode.take(step)
            forget(episode)
            taken = self._note(_Taken(_content(step), observation))
        assert taken.observation is not None, "the content tells steps from answers"
        outcome = self.outcome if n == self._steps else None
        return StepReply(n=n, status=taken.observation.status, value=taken.observation.value, outcome=outcome)

    def answer(self, n: int, value: Json) -> Result:
        """Give the final answer as step `n` and have it judged, or repeat the outcome.

        Raises:
            RefusedError: as for `step`, or the answer is too long to be one: the episode goes on.
        """
        step = Step(kind="answer", answer=value)
        if self._repeated(n, step) is None:
            episode = self._live(n)
            if (fault := malformed(step)) is not None:
                raise RefusedError(422, "malformed_step", fault)
            episode.answer(value)
            self._note(_Taken(_content(step)))
        assert self.outcome is not None
        return self.outcome

    def stop(self) -> None:
        """From any thread: a call that is under way comes back at once, as an error."""
        episode = self._episode
        if episode is not None:
            episode.stop()

    def close(self) -> None:
        """Free everything; an episode without an answer has failed."""
        if self._episode is not None:
            self._episode.close()
            self._settle()

    def reply(self) -> EpisodeReply:
        """What the client gets to see of it."""
        task, environment = self.wanted.bound.task, self.wanted.bound.environment
        return EpisodeReply(
            id=self.id,
            task=self.wanted.bound.version,
            environment=environment.version,
            seed=self.wanted.seed,
            sample=self.wanted.sample,
            instruction=task.instruction,
            tools=[tool.public() for tool in environment.tools],
            answer_schema=dict(task.answer_schema),
            steps=self._steps,
            outcome=self.outcome,
        )

    def _repeated(self, n: int, step: Step) -> _Taken | None:
        """What this very step gave when it was taken as step `n`; None when no step was."""
        if not 1 <= n <= self._steps:
            return None
        taken = self._latest.of(n)
        if taken is None:
            why = f"Step {n} was taken; of an episode's steps the latest are kept, and this one is not any more."
            raise RefusedError(410, "step_forgotten", why)
        if taken.content != _content(step):
            raise RefusedError(409, "step_conflict", f"Step {n} was taken, and it was another one.")
        return taken

    def _live(self, n: int) -> Episode:
        """The live episode, for its next step."""
        if self._episode is None:
            ended = self.outcome.status if self.outcome else ""
            raise RefusedError(409, "episode_over", f"This episode has ended ({ended}); open a new one.")
        if n != self._steps + 1:
            raise RefusedError(409, "step_conflict", f"The next step is {self._steps + 1}, not {n}.")
        return self._episode

    def _note(self, taken: _Taken) -> _Taken:
        self._steps += 1
        self._settle()
        if self.outcome is not None:
            self._latest.clear()
        self._latest.keep(self._steps, taken)
        return taken

    def _settle(self) -> None:
        """Let go of an episode that has ended; what was judged and why stays on this side."""
        if self._episode is None or not self._episode.over:
            return
        outcome, self._episode = self._episode.outcome, None
        assert outcome is not None, "who answers is judged at once"
        if outcome.status == "infra_error":
            _log.warning("an episode of task %s ended as infra_error: %s", self.wanted.bound.version, outcome.detail)
        self.outcome = Result(status=outcome.status, reward=outcome.reward)


class _Taken(NamedTuple):
    """A step that was taken: a digest of what it was, and what it gave; an answer gives no observation."""

    content: Digest
    observation: Observation | None = None


class _LatestSteps:
    """Steps by their number: the latest, so many bytes of JSON of them, and at least one."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes, self._bytes = most_bytes, 0
        self._kept: dict[int, tuple[_Taken, int]] = {}

    def keep(self, n: int, taken: _Taken) -> None:
        size = len(rendered(taken))
        self._kept[n] = taken, size
        self._bytes += size
        while self._bytes > self._most_bytes and len(self._kept) > 1:
            _, oldest = self._kept.pop(next(iter(self._kept)))
            self._bytes -= oldest

    def of(self, n: int) -> _Taken | None:
        return self._kept[n][0] if n in self._kept else None

    def clear(self) -> None:
        self._kept.clear()
        self._bytes = 0


def _content(step: Step) -> Digest:
    return sha256(canonical_json([step.kind, step.tool, step.arguments, step.text, step.answer]))
