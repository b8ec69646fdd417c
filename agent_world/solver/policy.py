"""The solver as a policy: a mind an episode, rebuilt from the history when it is not at hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent_world.identity import rng
from agent_world.rollouts.model import Step, Turn
from agent_world.solver.finding import Thinking
from agent_world.solver.mind import live


@dataclass(slots=True)
class _Episode:
    thinking: Thinking
    expected: Step
    seen: int
    instruction: str


class Solver:
    """A ReAct agent without a model: it gets the turn and nothing else.

    The same seed, instruction, tools and observations give the same steps. `temperature` scales the noise in the
    choice of tools, parameters and fields; `budget` is the number of calls it makes before it answers.
    """

    name = "solver"
    version = "1"

    def __init__(self, seed: int = 0, *, temperature: float = 0.05, budget: int = 38) -> None:
        self.seed, self.temperature, self.budget = seed, temperature, budget
        self._episodes: dict[str, _Episode] = {}

    def act(self, turns: Sequence[Turn]) -> list[Step]:
        """The next step of each episode."""
        return [self._act(turn) for turn in turns]

    def forget(self, episodes: Sequence[str]) -> None:
        """Drops what is kept about these episodes."""
        for episode in episodes:
            self._episodes.pop(episode, None)

    def _act(self, turn: Turn) -> Step:
        episode = self._episodes.get(turn.episode)
        fresh = (
            episode is None
            or episode.instruction != turn.instruction
            or len(turn.history) != episode.seen + 1
            or (turn.history[-1][0] != episode.expected)
        )
        if fresh:
            noise = rng("solver", self.seed, turn.seed, turn.instruction)
            thinking = live(turn, noise, self.temperature, self.budget)
            step = self._advance(thinking, None)
            for _, observation in turn.history:
                if step.kind != "tool":
                    break
                step = self._advance(thinking, observation)
            episode = _Episode(thinking, step, len(turn.history), turn.instruction)
            self._episodes[turn.episode] = episode
            return step
        step = self._advance(episode.thinking, turn.history[-1][1])
        episode.expected, episode.seen = step, len(turn.history)
        return step

    @staticmethod
    def _advance(thinking: Thinking, observation) -> Step:
        try:
            return thinking.send(observation)
        except StopIteration as end:
            return Step(kind="answer", answer=end.value)
