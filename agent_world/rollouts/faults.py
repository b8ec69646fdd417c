"""Policies with one planted fault each, on which a diagnosis is scored (method.md 7 and 9).

Each plays gold until its fault, and the fault decides how the episode fails. What it touches (some environments, a
share of the episodes) is known, so that a diagnosis can be held against it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from random import Random
from typing import Literal, get_args

from agent_world.environments.model import Call, Environment, Json
from agent_world.identity import rng as seeded
from agent_world.rollouts.answers import wrong_answers
from agent_world.rollouts.model import Step, Turn
from agent_world.rollouts.policies import Knowing, Play, answer_step, tool_step
from agent_world.rollouts.writes import other_argument, other_tool, write_calls
from agent_world.tasks.model import Task

Fault = Literal[
    "healthy", "wrong_tool", "wrong_argument", "missing_step", "early_stop", "loop", "bad_format", "wrong_final_state",
    "wrong_answer",
]  # fmt: skip
FAULTS: tuple[Fault, ...] = get_args(Fault)
_WRITE_TRIES = 12


class Planted(Knowing):
    """Plays gold but for one fault, in the environments `only` (all by default) and in `rate` of their episodes.

    `only` holds environment ids. Which episodes are struck depends on `seed`, the task and the episode's seed alone.
    """

    def __init__(
        self,
        tasks: Iterable[Task],
        environments: Iterable[Environment],
        fault: Fault,
        *,
        only: Container[str] | None = None,
        rate: float = 1.0,
        seed: int = 0,
    ) -> None:
        super().__init__(tasks)
        self.name, self.fault = f"planted-{fault.replace('_', '-')}", fault
        self._environments = {environment.environment_id: environment for environment in environments}
        self._only, self._rate, self._seed = only, rate, seed

    def play(self, turn: Turn) -> Play:
        """Gold, or gold with the fault."""
        task = self.task_of(turn)
        rng = seeded("planted", self._seed, self.fault, task.task_id, turn.seed)
        if not self.strikes(turn.environment, rng):
            for call in task.plan:
                yield tool_step(call)
            yield answer_step(task.answer)
            return
        environment = self._environments[turn.environment]
        for call in self._calls(task, environment, rng):
            yield tool_step(call)
        if self.fault == "wrong_final_state":
            for call in write_calls(environment, rng.getrandbits(32), _WRITE_TRIES):
                if (yield tool_step(call)).status == "ok":
                    break
            yield answer_step(task.answer)
            return
        while self.fault == "bad_format":
            yield Step(kind="malformed", text=f"I think the answer is {task.answer}")
        yield answer_step(self._wrong(task, environment, rng))

    def strikes(self, environment: str, rng: Random) -> bool:
        """Whether the fault shows in this episode."""
        here = self._only is None or environment in self._only
        return self.fault != "healthy" and here and rng.random() < self._rate

    def _calls(self, task: Task, environment: Environment, rng: Random) -> Iterator[Call]:
        plan = task.plan
        spot = rng.randrange(len(plan))
        match self.fault:
            case "wrong_tool":
                swapped = other_tool(environment, plan[spot], set(task.shape), rng)
                yield from (*plan[:spot], swapped, *plan[spot + 1 :])
            case "wrong_argument":
                altered = other_argument(environment, plan[spot], rng)
                yield from (*plan[:spot], altered, *plan[spot + 1 :])
            case "missing_step":
                gap = rng.randrange(max(len(plan) - 1, 1))
                yield from (*plan[:gap], *plan[gap + 1 :])
            case "early_stop":
                yield from plan[: len(plan) // 2]
            case "loop":
                yield from plan[:spot]
                while True:
                    yield plan[spot]
            case _:
                yield from plan

    def _wrong(self, task: Task, environment: Environment, rng: Random) -> Json:
        """Some wrong answer: what an agent says that did not see the right thing."""
        wrong = wrong_answers(task, environment, rng.getrandbits(32))
        return rng.choice(wrong).answer if wrong else None
