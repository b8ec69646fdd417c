"""An episode whose steps its client numbers, so that a request that is repeated after a lost reply acts once."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_world.environments.model import Json
from agent_world.errors import AgentWorldError
from agent_world.identity import Digest, canonical_json, sha256
from agent_world.rollouts.model import Observation, Step
from agent_world.serving.episodes_messages import EpisodeReply, RefusedError, Result, StepReply

if TYPE_CHECKING:
    from agent_world.rollouts.episode import Episode
    from agent_world.sandbox import Sandbox
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

    An episode that has ended keeps its last reply, to repeat it, and nothing else of what happened in it.

    Raises:
        PinMismatchError, UnjudgeableTaskError: the task cannot be attempted.
    """

    def __init__(self, id: str, wanted: Wanted, *, most_steps: int, sandbox: Sandbox | None) -> None:
        self.id, self.wanted = id, wanted
        self.outcome: Result | None = None
        self._most_steps = most_steps
        self._steps = 0
        self._taken: dict[int, tuple[Digest, Observation | None]] = {}
        self._episode: Episode | None = wanted.bound.episode(wanted.seed, sandbox=sandbox)
        self._settle()

    def step(self, n: int, step: Step) -> StepReply:
        """Take a tool call or a reply as step `n`, or repeat what it gave. Without an answer, the last possible fails.

        Raises:
            RefusedError: `n` is neither the next step nor a repetition, or the episode has ended.
        """
        observation = self._once(n, step)
        assert observation is not None, "the content tells steps from answers"
        outcome = self.outcome if n == self._steps else None
        return StepReply(n=n, status=observation.status, value=observation.value, outcome=outcome)

    def answer(self, n: int, value: Json) -> Result:
        """Give the final answer as step `n` and have it judged, or repeat the outcome.

        Raises:
            RefusedError: as for `step`.
        """
        self._once(n, Step(kind="answer", answer=value))
        assert self.outcome is not None
        return self.outcome

    def stop(self) -> None:
        """From any thread: a call that is under way comes back at once, as an error."""
        episode = self._episode
        if episode is not None:
            # An answer in another thread may free the session meanwhile: it has ended then, which is what was asked.
            with suppress(AgentWorldError, OSError):
                episode.stop()

    def close(self) -> Result:
        """Free everything; an episode without an answer has failed."""
        if self._episode is not None:
            self._episode.close()
            self._settle()
        assert self.outcome is not None
        return self.outcome

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

    def _once(self, n: int, step: Step) -> Observation | None:
        content = sha256(canonical_json([step.kind, step.tool, step.arguments, step.text, step.answer]))
        if n in self._taken:
            known, observation = self._taken[n]
            if content != known:
                raise RefusedError(409, "step_conflict", f"Step {n} was taken, and it was another one.")
            return observation
        if self._episode is None:
            ended = self.outcome.status if self.outcome else ""
            raise RefusedError(409, "episode_over", f"This episode has ended ({ended}); open a new one.")
        if n != self._steps + 1:
            raise RefusedError(409, "step_conflict", f"The next step is {self._steps + 1}, not {n}.")
        observation = _act(self._episode, step)
        if n >= self._most_steps and not self._episode.over:
            self._episode.give_up(f"no answer within {n} steps")
        self._steps, self._taken[n] = n, (content, observation)
        self._settle()
        return observation

    def _settle(self) -> None:
        """Let go of an episode that has ended; what was judged and why stays on this side."""
        if self._episode is None or not self._episode.over:
            return
        outcome, self._episode = self._episode.outcome, None
        assert outcome is not None, "who answers is judged at once"
        if outcome.status == "infra_error":
            _log.warning("an episode of task %s ended as infra_error: %s", self.wanted.bound.version, outcome.detail)
        self.outcome = Result(status=outcome.status, reward=outcome.reward)
        self._taken = {n: taken for n, taken in self._taken.items() if n == self._steps}


def _act(episode: Episode, step: Step) -> Observation | None:
    if step.kind == "answer":
        episode.answer(step.answer)
        return None
    return episode.take(step)
