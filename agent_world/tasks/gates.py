"""The gates of a task (design.md 7): executed, from cheap to dear, up to the first that says no.

A wrong answer is judged on the recorded end state of the gold run, a null answer on the initial state: neither makes a
call, so neither needs a session. Random agents and solvers are real episodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent_world.environments.formats import initial_state
from agent_world.environments.model import Database, Environment, Json
from agent_world.environments.session import open_session
from agent_world.environments.state import EnvironmentState, StateDiff, diff, normalised
from agent_world.identity import canonical_json, seed_of
from agent_world.rollouts.answers import empty_answer, likely_answer, wrong_answers
from agent_world.rollouts.arguments import leaves
from agent_world.rollouts.canonical import canonical
from agent_world.rollouts.episode import Episode, final_state
from agent_world.rollouts.loop import EpisodeSpec, replay, roll_out, version_of
from agent_world.rollouts.model import Observation, Outcome, Policy, Step, Trajectory, Turn
from agent_world.rollouts.pruning import demonstrate
from agent_world.rollouts.randoms import RandomAgent
from agent_world.rollouts.reuse import SharedSessions
from agent_world.rollouts.rewards import CORRUPT_STATE, judge_all
from agent_world.tasks.execution import run_solution
from agent_world.tasks.meddling import meddle
from agent_world.tasks.model import Task
from agent_world.tasks.static_gates import evidence_gate, leak_gate, rubric_gate
from agent_world.tasks.verdicts import GateVerdict, TaskVerdict, tail, upper_bound

if TYPE_CHECKING:
    from agent_world.sandbox import Sandbox

SolverFactory = Callable[[int], Policy]
"""Gives a solver seeded by its argument; each of the five runs gets its own."""

RANDOM_RUNS = 20
RANDOM_PASSES = 1
RANDOM_RATE = RANDOM_PASSES / RANDOM_RUNS
SOLVER_RUNS = 5
CONSISTENT_RUNS = 2
PRACTICE_RUNS = 2
_AUDIT_DOUBT = 0.001


@dataclass(slots=True, kw_only=True)
class _Case:
    """A task on the bench, and the gold run once it was made."""

    task: Task
    environment: Environment
    sandbox: Sandbox | None
    seed: int
    initial: EnvironmentState = field(init=False)
    gold_final: EnvironmentState = field(init=False)

    def __post_init__(self) -> None:
        self.initial = initial_state(self.environment)

    def judge_all(self, answers: Sequence[Json], final: EnvironmentState) -> list[Outcome]:
        return judge_all(self.task, answers, self.initial, final, self.environment.database, self.sandbox)

    def specs(self, purpose: str, samples: Sequence[int]) -> list[EpisodeSpec]:
        version = version_of(self.task)
        return [
            EpisodeSpec(
                task=self.task, environment=self.environment, sample=sample, task_version=version,
                seed=seed_of(purpose, self.task.task_id, self.seed, sample),
            )
            for sample in samples
        ]  # fmt: skip


def gate_task(
    task: Task,
    environment: Environment,
    *,
    sandbox: Sandbox | None = None,
    solver: SolverFactory,
    seed: int,
    thorough: bool = True,
) -> TaskVerdict:
    """Run every gate on a candidate, from cheap to dear, up to the first that rejects it.

    Without `thorough` the random and the solver gate are left out: the verdict tells what already fails, and keeps
    nothing (`tier` None).

    Raises:
        PinMismatchError: `environment` is not the version that the task pins.
    """
    case = _Case(task=task, environment=environment, sandbox=sandbox, seed=seed)
    verdicts: list[GateVerdict] = []
    verdicts.extend(_until_random(case, stop=True))
    if not thorough or not verdicts[-1].accepted:
        return TaskVerdict(task_id=task.task_id, tier=None, gates=tuple(verdicts))
    guessing = _random_gate(case, RANDOM_PASSES, shared=True)
    verdicts.append(guessing)
    passes = guessing.evidence.get("passes")
    if not guessing.accepted:
        return TaskVerdict(task_id=task.task_id, tier=None, gates=tuple(verdicts), random_passes=passes)
    solving, trajectories = _solver_gate(case, solver)
    verdicts.append(solving)
    demonstration = demonstrate(trajectories, task, environment, sandbox=sandbox)
    return TaskVerdict(
        task_id=task.task_id,
        tier=None if solving.reason == "infra_error" else "train" if solving.accepted else "hard",
        gates=tuple(verdicts),
        solver_passes=solving.evidence.get("consistent"),
        random_passes=passes,
        trajectories=trajectories,
        demonstration=demonstration,
        replay=_replay_gate(case, demonstration),
    )


def practise(
    task: Task, environment: Environment, *, sandbox: Sandbox | None = None, solver: SolverFactory, seed: int
) -> TaskVerdict:
    """Judge a candidate that is to be demonstrated only: the cheap gates, then a solver run that passes and replays.

    Whether the task can be guessed, and whether a solver agrees with itself, matters where a reward is earned; what is
    imitated only has to be right, and costs a fifth so.

    Raises:
        PinMismatchError: `environment` is not the version that the task pins.
    """
    case = _Case(task=task, environment=environment, sandbox=sandbox, seed=seed)
    gates = tuple(_until_random(case, stop=True))
    if not gates[-1].accepted:
        return TaskVerdict(task_id=task.task_id, tier=None, gates=gates)
    specs = case.specs("practice", range(PRACTICE_RUNS))
    tried = roll_out(specs, _Team({spec.seed: solver(spec.seed) for spec in specs}), sandbox=sandbox)
    shown = demonstrate(tried, task, environment, sandbox=sandbox)
    replayed = _replay_gate(case, shown)
    return TaskVerdict(
        task_id=task.task_id, tier="practice" if replayed and replayed.accepted else None, gates=gates,
        trajectories=tuple(tried), demonstration=shown, replay=replayed,
    )  # fmt: skip


def audit(
    task: Task, environment: Environment, *, seed: int, sandbox: Sandbox | None = None
) -> tuple[GateVerdict, ...]:
    """Every gate but the solver's on an accepted task, with a fresh seed; all of them run, whatever they find.

    20 random runs of a task whose true rate is 1 in 20 pass more than once in a quarter of all audits. So the random
    gate of an audit refuses only what such a rate makes implausible (one chance in a thousand), and its evidence states
    the bound: passes, runs, the limit, and the upper end of the 95 % interval of the true rate.
    """
    case = _Case(task=task, environment=environment, sandbox=sandbox, seed=seed)
    limit = next(k for k in range(RANDOM_RUNS) if tail(k + 1, RANDOM_RUNS, RANDOM_RATE) < _AUDIT_DOUBT)
    return (*_until_random(case), _random_gate(case, limit, shared=False))


def gold_gate(task: Task, environment: Environment, *, seed: int, sandbox: Sandbox | None = None) -> GateVerdict:
    """Whether the plan still gives the recorded answer and state: what is asked of a task when a tool changes."""
    return _gold_gate(_Case(task=task, environment=environment, sandbox=sandbox, seed=seed))


def trajectory_gate(
    trajectory: Trajectory, task: Task, environment: Environment, *, sandbox: Sandbox | None = None
) -> GateVerdict:
    """A stored trajectory replays: same observations, same final digest."""
    again = replay(trajectory, task, environment, sandbox=sandbox)
    evidence = {"digest": again.digest, "recorded": trajectory.final_digest, "differs_at": again.differs_at}
    reason = None if again.holds else "other_digest" if not again.same_digest else "other_observation"
    return GateVerdict(gate="trajectory", accepted=again.holds, reason=reason, evidence=evidence)


def _until_random(case: _Case, *, stop: bool = False) -> Iterator[GateVerdict]:
    """The gates that run no policy; with `stop` up to the first that says no."""
    gates: list[Callable[[], GateVerdict]] = [
        lambda: rubric_gate(case.task),
        lambda: leak_gate(case.task, case.environment),
        lambda: evidence_gate(case.task),
        lambda: _null_gate(case),
        lambda: _gold_gate(case),
        lambda: _wrong_answer_gate(case),
        lambda: _state_gate(case),
    ]
    for gate in gates:
        found = gate()
        yield found
        if stop and not found.accepted:
            return


def _null_gate(case: _Case) -> GateVerdict:
    """No answer given at once passes: nothing, the emptiest, the most likely."""
    answers = {
        "nothing": {},
        "empty": empty_answer(case.task.answer_schema),
        "likely": likely_answer(case.task, case.environment),
    }
    outcomes = case.judge_all(list(answers.values()), case.initial)
    passing = {form: answers[form] for form, outcome in zip(answers, outcomes, strict=True) if outcome.status == "pass"}
    evidence = {"likely": answers["likely"], "passing": passing}
    return _verdict("null", outcomes, "null_passes" if passing else None, evidence)


def _gold_gate(case: _Case) -> GateVerdict:
    """The plan replays to the recorded answer and state, and is judged a pass."""
    task = case.task
    with Episode(task, case.environment, seed=case.seed, sandbox=case.sandbox) as episode:
        for call in task.plan:
            if not episode.over:
                episode.call(call.tool, call.arguments)
        outcome = episode.outcome or episode.answer(task.answer)
    final = final_state(episode)
    if final is None or outcome.status == "infra_error" or CORRUPT_STATE in outcome.failed:
        return _verdict("gold", [outcome], "gold_fails", {"failed": list(outcome.failed), "why": outcome.detail})
    case.gold_final = final
    database = case.environment.database
    difference = diff(case.initial, final, database.tables)
    change = normalised(difference, database)
    statuses = [observation.status for _, observation in episode.steps if observation is not None]
    evidence: dict[str, Any] = {"digest": episode.final_digest, "calls": statuses, "failed": list(outcome.failed)}
    if canonical_json(change) != canonical_json(task.state_diff):
        return _verdict("gold", [outcome], "other_state", {**evidence, "change": change})
    if outcome.status != "pass":
        return _verdict("gold", [outcome], "gold_fails", evidence)
    observed = [observation for _, observation in episode.steps if observation is not None]
    if why := _other_answer(case, observed):
        return _verdict("gold", [outcome], "other_answer", {**evidence, "why": why})
    if minted := _minted(difference, database, task.answer):
        return _verdict("gold", [outcome], "minted_id", {**evidence, "minted": minted})
    return _verdict("gold", [outcome], None, evidence)


def _wrong_answer_gate(case: _Case) -> GateVerdict:
    """No answer with one wrong field passes in the gold run's end state."""
    wrong = wrong_answers(case.task, case.environment, case.seed)
    if not wrong:
        return GateVerdict(gate="wrong_answer", accepted=False, reason="no_wrong_answer")
    outcomes = case.judge_all([each.answer for each in wrong], case.gold_final)
    passing = [
        {"field": each.field, "change": each.change, "value": each.answer[each.field]}
        for each, outcome in zip(wrong, outcomes, strict=True)
        if outcome.status == "pass"
    ]
    evidence = {"tried": len(wrong), "passing": passing}
    return _verdict("wrong_answer", outcomes, "wrong_answer_passes" if passing else None, evidence)


def _state_gate(case: _Case) -> GateVerdict:
    """The gold answer with one unasked write fails; of a task that changes state, so does the gold answer alone."""
    task, outcomes = case.task, []
    evidence: dict[str, Any] = {"writes": task.writes}
    if task.writes:
        outcomes.append(case.judge_all([task.answer], case.initial)[0])
        if outcomes[0].status == "pass":
            return _verdict("state", outcomes, "passes_without_call", evidence)
    meddled = meddle(task, case.environment, case.gold_final, case.sandbox)
    evidence["unasked"] = meddled.how
    outcomes.append(case.judge_all([task.answer], meddled.final)[0])
    reason = "unasked_write_passes" if outcomes[-1].status == "pass" else None
    return _verdict("state", outcomes, reason, evidence)


def _random_gate(case: _Case, most_passes: int, *, shared: bool) -> GateVerdict:
    """Of 20 random runs, the informed half first, at most `most_passes` pass; stops once more have.

    `shared` lets a run have the session of the one before when that changed nothing.
    """
    outcomes: list[Outcome] = []
    with SharedSessions() as sessions:
        for informed in (True, False):
            samples = range(len(outcomes), len(outcomes) + RANDOM_RUNS // 2)
            ran = roll_out(
                case.specs("random", samples), RandomAgent(informed=informed), sandbox=case.sandbox, live=1,
                open_session=sessions if shared else open_session,
            )  # fmt: skip
            outcomes += [trajectory.outcome for trajectory in ran]
            if _passes(outcomes) > most_passes:
                break
    passes = _passes(outcomes)
    evidence = {
        "passes": passes,
        "runs": len(outcomes),
        "limit": most_passes,
        "rate_upper_95": round(upper_bound(passes, len(outcomes)), 4),
    }
    return _verdict("random", outcomes, "random_passes" if passes > most_passes else None, evidence)


def _solver_gate(case: _Case, solver: SolverFactory) -> tuple[GateVerdict, tuple[Trajectory, ...]]:
    """Of five solver runs at least two pass with the same canonical answer and the same final digest."""
    specs = case.specs("solver", range(SOLVER_RUNS))
    team = _Team({spec.seed: solver(spec.seed) for spec in specs})
    trajectories = roll_out(specs, team, sandbox=case.sandbox)
    outcomes = [trajectory.outcome for trajectory in trajectories]
    agreeing: dict[tuple[Any, ...], int] = {}
    for trajectory in trajectories:
        if trajectory.outcome.status == "pass":
            given = trajectory.steps[-1][0].answer
            key = (canonical(given, case.task.answer_schema), trajectory.final_digest)
            agreeing[key] = agreeing.get(key, 0) + 1
    consistent = max(agreeing.values(), default=0)
    failed = sorted({name for outcome in outcomes for name in outcome.failed})
    evidence = {"runs": len(outcomes), "passes": _passes(outcomes), "consistent": consistent, "failed": failed}
    reason = None if consistent >= CONSISTENT_RUNS else "not_consistent"
    return _verdict("solver", outcomes, reason, evidence), tuple(trajectories)


def _replay_gate(case: _Case, demonstration: Trajectory | None) -> GateVerdict | None:
    if demonstration is None:
        return None
    return trajectory_gate(demonstration, case.task, case.environment, sandbox=case.sandbox)


class _Team:
    """Five solvers as one policy: each plays the episode of its seed, and all answers are judged together."""

    def __init__(self, members: Mapping[int, Policy]) -> None:
        self._members = members
        first = next(iter(members.values()))
        self.name, self.version = first.name, first.version

    def act(self, turns: Sequence[Turn]) -> list[Step]:
        return [self._members[turn.seed].act([turn])[0] for turn in turns]

    def forget(self, episodes: Sequence[str]) -> None:
        for member in self._members.values():
            member.forget(episodes)


def _other_answer(case: _Case, observed: Sequence[Observation]) -> str | None:
    """Why the recorded answer is not what execution gives; None when it is.

    A program's solution is executed again; what a graph task asks for must all stand in the replayed trace.
    """
    task = case.task
    if task.kind == "program":
        solved = run_solution(case.environment, task.solution or "", task.seed, case.sandbox)
        if isinstance(solved, str):
            return solved
        if canonical(solved.answer, task.answer_schema) != canonical(task.answer, task.answer_schema):
            return f"the solution answers {canonical_json(solved.answer)}"
        return None if solved.trace.calls == task.plan else "the solution makes other calls than the plan"
    seen = {canonical(value, {}) for observation in observed for _, value in leaves(observation.value)}
    unseen = [name for name, value in leaves(task.answer) if canonical(value, {}) not in seen]
    return f"no call of the plan shows {', '.join(unseen)}" if unseen else None


def _minted(difference: StateDiff, database: Database, answer: Json) -> list[str]:
    """Ids in the answer that the gold run made: another right run would have others."""
    workflows = [table for table in database.tables if table.workflow is not None and table.name in difference.tables]
    made = {
        row[column]
        for table in workflows
        for row in difference.tables[table.name].added
        for column in table.primary_key
        if isinstance(row[column], str)
    }
    return [value for _, value in leaves(answer) if isinstance(value, str) and value in made]


def _passes(outcomes: Sequence[Outcome]) -> int:
    return sum(outcome.status == "pass" for outcome in outcomes)


def _verdict(gate: Any, outcomes: Sequence[Outcome], reason: Any, evidence: Mapping[str, Any]) -> GateVerdict:
    broken = [outcome.detail for outcome in outcomes if outcome.status == "infra_error"]
    if broken:
        return GateVerdict(gate=gate, accepted=False, reason="infra_error", evidence={**evidence, "why": broken[0]})
    return GateVerdict(gate=gate, accepted=reason is None, reason=reason, evidence=evidence)
