"""Scripted policies: gold, null, wrong answers (design.md 6 and 7).

They know the tasks they play, which no real policy does; random agents (`randoms`), which know nothing, and policies
with a planted fault (`faults`) stand beside this module.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Literal

from agent_world.environments.model import Call, Environment, Json
from agent_world.errors import AgentWorldError
from agent_world.identity import artifact_id_of
from agent_world.rollouts.answers import empty_answer, likely_answer, wrong_answers
from agent_world.rollouts.model import Observation, Step, Turn
from agent_world.tasks.model import Task

Play = Generator[Step, Observation, None]
"""A played episode: yields steps, is sent what came back; its last step is an answer or goes on for ever."""


class UnknownEpisodeError(AgentWorldError):
    """A scripted policy was given an episode of a task that it does not know."""

    def __init__(self, policy: str, instruction: str) -> None:
        super().__init__(policy, instruction)
        self.policy, self.instruction = policy, instruction

    def __str__(self) -> str:
        return f"the policy {self.policy} knows no task {self.instruction[:60]!r}; give it all tasks it shall play"


class Scripted(ABC):
    """A policy whose episodes are generators. What `play` leaves open after its last step is up to the loop."""

    name: str
    version = "1"

    def __init__(self) -> None:
        self._live: dict[str, Play] = {}

    @abstractmethod
    def play(self, turn: Turn) -> Play:
        """The steps of one episode, from its first turn."""

    def act(self, turns: Sequence[Turn]) -> list[Step]:
        """One step a turn."""
        return [self._next(turn) for turn in turns]

    def forget(self, episodes: Sequence[str]) -> None:
        """Drop what is kept of these episodes."""
        for episode in episodes:
            self._live.pop(episode, None)

    def _next(self, turn: Turn) -> Step:
        if turn.episode not in self._live:
            self._live[turn.episode] = self.play(turn)
            return next(self._live[turn.episode])
        return self._live[turn.episode].send(turn.history[-1][1])


class Knowing(Scripted):
    """A scripted policy that knows the tasks it plays, found again by environment and instruction."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        super().__init__()
        self._tasks = {(artifact_id_of(task.environments[0]), task.instruction): task for task in tasks}

    def task_of(self, turn: Turn) -> Task:
        """The task of this episode.

        Raises:
            UnknownEpisodeError: it is none of the tasks this policy was given.
        """
        try:
            return self._tasks[(turn.environment, turn.instruction)]
        except KeyError:
            raise UnknownEpisodeError(self.name, turn.instruction) from None


class Gold(Knowing):
    """Plays the plan and gives the answer."""

    name = "gold"

    def play(self, turn: Turn) -> Play:
        """All gold calls, then the gold answer."""
        task = self.task_of(turn)
        for call in task.plan:
            yield tool_step(call)
        yield answer_step(task.answer)


class Null(Knowing):
    """Answers at once: `empty` with the emptiest answer the schema allows, `likely` with each field's likely value."""

    def __init__(
        self,
        tasks: Iterable[Task],
        environments: Iterable[Environment] = (),
        form: Literal["empty", "likely"] = "empty",
    ) -> None:
        super().__init__(tasks)
        self.name, self._form = f"null-{form}", form
        self._environments = {environment.environment_id: environment for environment in environments}

    def play(self, turn: Turn) -> Play:
        """One answer, no call."""
        if self._form == "empty":
            yield answer_step(empty_answer(turn.answer_schema))
        else:
            yield answer_step(likely_answer(self.task_of(turn), self._environments[turn.environment]))


class Wrong(Knowing):
    """Plays gold, then gives one of the wrong answers; the episode's seed says which."""

    name = "wrong"

    def __init__(self, tasks: Iterable[Task], environments: Iterable[Environment]) -> None:
        super().__init__(tasks)
        self._environments = {environment.environment_id: environment for environment in environments}

    def play(self, turn: Turn) -> Play:
        """All gold calls, then an answer that differs from gold in one field."""
        task = self.task_of(turn)
        for call in task.plan:
            yield tool_step(call)
        wrong = wrong_answers(task, self._environments[turn.environment], turn.seed)
        yield answer_step(wrong[turn.seed % len(wrong)].answer)


def tool_step(call: Call) -> Step:
    """The step that makes `call`."""
    return Step(kind="tool", tool=call.tool, arguments=call.arguments)


def answer_step(answer: Json | Mapping[str, Json]) -> Step:
    """The step that gives `answer`."""
    return Step(kind="answer", answer=answer)
