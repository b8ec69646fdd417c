"""One episode: a task, a live session over its pinned environment, the steps taken, and how it ended.

Blame once: a tool that raises is an observation (the session sees to that); whatever else raises here is the harness
and ends the episode as `infra_error`. Nothing but a task that should never have been opened reaches the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Self

from agent_world.environments.errors import CorruptStateError
from agent_world.environments.formats import initial_state
from agent_world.environments.model import Environment, Json, PublicTool
from agent_world.environments.session import open_session
from agent_world.environments.state import CORRUPT, EnvironmentState
from agent_world.errors import AgentWorldError
from agent_world.identity import Digest, VersionId, canonical_json
from agent_world.rollouts.cutting import shown
from agent_world.rollouts.model import Observation, ObservationStatus, Outcome, Step, Turn
from agent_world.rollouts.rewards import Judge, check_judgeable, checked, corrupted, judge_all
from agent_world.rollouts.users import User, scripted
from agent_world.rollouts.whole import WholeValues
from agent_world.tasks.model import Task

if TYPE_CHECKING:
    from agent_world.environments.session import Session
    from agent_world.rollouts.reuse import Lease
    from agent_world.sandbox import Sandbox

LONGEST_STEP = 65_536
"""A step whose JSON has more characters is malformed: nothing that a task asks for is near it."""

NO_ANSWER = "no_answer"
"""The name under which an episode fails that ends without an answer."""

History = list[tuple[Step, Observation | None]]
Opener = Callable[[Environment, int, "Sandbox | None"], "Session | Lease"]
"""Opens the session of an episode over an environment with a seed."""


class PinMismatchError(AgentWorldError):
    """The environment at hand is not the version that the task pins."""

    def __init__(self, task_id: str, pinned: Sequence[VersionId], given: VersionId) -> None:
        super().__init__(task_id, tuple(pinned), given)
        self.task_id, self.pinned, self.given = task_id, tuple(pinned), given

    def __str__(self) -> str:
        return f"task {self.task_id} pins {', '.join(self.pinned)}, not {self.given}; open the pinned version"


class EpisodeOverError(AgentWorldError):
    """A step after the end."""

    def __init__(self, task_id: str, status: str) -> None:
        super().__init__(task_id, status)
        self.task_id, self.status = task_id, status

    def __str__(self) -> str:
        return f"this episode of task {self.task_id} has ended ({self.status}); open a new one"


class StateMovedError(AgentWorldError):
    """The environment changed while the user spoke, who has no part in it."""

    def __init__(self, task_id: str) -> None:
        super().__init__(task_id)
        self.task_id = task_id

    def __str__(self) -> str:
        return f"the state of task {self.task_id} moved during a reply; see whether its user or one of its tools did it"


class Episode:
    """A live episode. Use it with `with`; leaving frees its session.

    `instruction`, `tools`, `answer_schema`, `call`, `reply` and `answer` are what a policy gets; `turn` and `take` are
    the same for a `Policy`. `steps`, `uncut`, `over`, `outcome` and `final_digest` say what came of it. `name`,
    `give_up`, `blame`, `stop` and `close` are for whoever runs the episode. Nothing public leads to the gold answer,
    the plan, the rubric, the source of a tool or the database. The session's seed is the task's, so that minted ids
    agree with the gold run; `seed` is the policy's own. A long observation is cut (cutting.py): `steps` have what the
    policy saw, `uncut` the whole values by the index of their step; whoever keeps none of that may take it out of both.
    The user is the task's own unless one is given.

    Raises:
        PinMismatchError: `environment` is not the version that the task pins.
        UnjudgeableTaskError: nothing could fail this task.
    """

    def __init__(
        self,
        task: Task,
        environment: Environment,
        *,
        seed: int,
        sandbox: Sandbox | None = None,
        user: User | None = None,
        free_form: Judge | None = None,
        name: str | None = None,
        open_session: Opener = open_session,
    ) -> None:
        if task.environments != (environment.version,):
            raise PinMismatchError(task.task_id, task.environments, environment.version)
        check_judgeable(task)
        self.seed = seed
        self.name = name or f"{task.task_id}/{seed}"
        self.instruction, self.answer_schema = task.instruction, task.answer_schema
        self.tools: tuple[PublicTool, ...] = tuple(tool.public() for tool in environment.tools)
        self.steps: History = []
        self.uncut = WholeValues()
        self.outcome: Outcome | None = None
        self.final_digest: Digest | None = None
        self._task, self._environment = task, environment
        self._final: EnvironmentState | None = None
        self._submitted: Json = None
        self._sandbox, self._user, self._free_form = sandbox, user or scripted(task, seed), free_form
        self._session: Session | Lease | None = None
        with self._blaming("opening the session"):
            self._initial = initial_state(environment)
            self._session = open_session(environment, task.seed, sandbox)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def call(self, name: str, arguments: Mapping[str, Json]) -> Observation:
        """Call one tool."""
        return self.take(Step(kind="tool", tool=name, arguments=arguments))

    def reply(self, text: str) -> Observation:
        """Say something to the user; the environment does not move."""
        return self.take(Step(kind="reply", text=text))

    def answer(self, value: Json) -> Outcome:
        """Give the final answer and have it judged."""
        self.take(Step(kind="answer", answer=value))
        if self.over:
            judge_together([self])
        return self.outcome or self.give_up("closed before an answer")

    def take(self, step: Step) -> Observation:
        """Take any step: what comes back is recorded with it. An answer is recorded, not yet judged.

        Raises:
            EpisodeOverError: the episode has ended.
        """
        if self.over:
            raise EpisodeOverError(self._task.task_id, self.outcome.status if self.outcome else "answered")
        fault = malformed(step)
        if fault is not None:
            step = as_malformed(step)
            return self._record(step, _refusal("invalid", "malformed_step", fault))
        if step.kind == "answer":
            self.steps.append((step, None))
            self._submitted = step.answer
            self._finish()
            return _refusal("ok", "ended", "The answer was given.")
        with self._blaming("the step"):
            return self._record(step, self._respond(step))
        return self._record(step, _refusal("error", "harness", "The episode was ended by a fault of the harness."))

    def give_up(self, why: str) -> Outcome:
        """End the episode without an answer: it fails."""
        self._finish()
        if self.outcome is None:
            self.outcome = Outcome(status="fail", failed=(NO_ANSWER,), detail=why)
        return self.outcome

    @property
    def over(self) -> bool:
        """Whether no further step is possible."""
        return self.outcome is not None or self._final is not None

    def turn(self) -> Turn:
        """What the policy gets before its next step, and nothing else."""
        return Turn(
            episode=self.name,
            environment=self._environment.environment_id,
            instruction=self.instruction,
            tools=self.tools,
            answer_schema=self.answer_schema,
            history=tuple((step, observation) for step, observation in self.steps if observation is not None),
            seed=self.seed,
        )

    def stop(self) -> None:
        """End what runs in the session, from any thread: a call that is under way comes back at once, as an error."""
        session = self._session
        if session is not None:
            session.stop()

    def close(self) -> None:
        """Free the session; an episode without an answer has failed."""
        if not self.over:
            self.give_up("closed before an answer")
        self._free()

    def _respond(self, step: Step) -> Observation:
        assert self._session is not None
        if step.kind == "reply":
            before = digest_now(self._session)
            said = self._user.reply(step.text or "")
            if digest_now(self._session) != before:
                raise StateMovedError(self._task.task_id)
            return Observation(status="ok", value={"user": said})
        assert step.tool is not None
        return self._session.call(step.tool, step.arguments)

    def _record(self, step: Step, observation: Observation) -> Observation:
        value = shown(observation.value)
        if value is not observation.value:
            self.uncut[len(self.steps)] = observation.value
            observation = replace(observation, value=value)
        self.steps.append((step, observation))
        return observation

    def _finish(self) -> None:
        """Read the final state from outside the session, then free it."""
        with self._blaming("reading the final state"):
            if self._session is not None:
                self._session.stop()  # a thread that a tool left behind may not write any more
                try:
                    final = self._session.state()
                    self.final_digest, self._final = final.digest, final
                except CorruptStateError as error:
                    self.outcome = corrupted(self._initial, error)
                    self.final_digest = CORRUPT if self.outcome.status == "fail" else None
        self._free()

    def _free(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            with self._blaming("closing the session"):
                session.close()

    def blame(self, what: str, error: Exception) -> None:
        """End the episode as `infra_error`: `what` was being done, and it was not the agent's doing."""
        if self.outcome is None:
            self.outcome = Outcome(status="infra_error", detail=f"{what}: {type(error).__name__}: {error}")
        self._free()

    @contextmanager
    def _blaming(self, what: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.blame(what, error)


def judge_together(episodes: Sequence[Episode]) -> None:
    """Set the outcome of every episode that has ended without one.

    Those of one task that ended in one state share a comparison of states and a run of the verifier; that none passes
    in a state which a tool broke is seen to for each.
    """
    groups: dict[tuple[int, Digest | None], list[Episode]] = {}
    for episode in episodes:
        if episode.outcome is None:
            groups.setdefault((id(episode._task), episode.final_digest), []).append(episode)
    for group in groups.values():
        first = group[0]
        assert first._final is not None
        outcomes = judge_all(
            first._task, [episode._submitted for episode in group], first._initial, first._final,
            first._environment.database, first._sandbox, free_form=first._free_form,
        )  # fmt: skip
        for episode, outcome in zip(group, outcomes, strict=True):
            assert episode._final is not None
            episode.outcome = checked(first._task, outcome, episode._initial, episode._final)


def digest_now(session: Session | Lease) -> Digest:
    """The digest of a session's state, `CORRUPT` when a tool broke it."""
    try:
        return session.state().digest
    except CorruptStateError:
        return CORRUPT


def final_state(episode: Episode) -> EnvironmentState | None:
    """The state that `episode` ended in, for gates and never for a policy; None when it has not ended or broke."""
    return episode._final


def as_malformed(step: Step) -> Step:
    """What is recorded in the place of `step` when it is none."""
    text = step.text or repr(step.answer or step.arguments)[:500]
    return Step(kind="malformed", text=text, tokens=step.tokens)


def malformed(step: Step) -> str | None:
    """Why `step` is none of tool, reply and answer; None when it is one of them."""
    if step.kind == "malformed" or step.kind not in ("tool", "reply", "answer"):
        return "A step is a tool call, a reply to the user or the final answer; this was none of them."
    if step.kind == "tool" and not step.tool:
        return "A tool call names its tool."
    try:
        text = canonical_json({"arguments": step.arguments, "answer": step.answer, "text": step.text})
    except (ValueError, TypeError, RecursionError) as error:
        return f"Arguments and answers are plain JSON: {error}."
    if len(text) > LONGEST_STEP:
        return f"A step may have {LONGEST_STEP} characters at most."
    return None


def _refusal(status: ObservationStatus, code: str, message: str) -> Observation:
    return Observation(status=status, value={"error": {"code": code, "message": message}})
