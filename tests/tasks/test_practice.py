from dataclasses import replace

import pytest

from agent_world.environments.model import Call
from agent_world.identity import VersionId
from agent_world.rollouts.episode import PinMismatchError
from agent_world.rollouts.loop import Replay
from agent_world.rollouts.model import Step
from agent_world.rollouts.policies import Gold, Scripted, answer_step, tool_step
from agent_world.sandbox import default_sandbox
from agent_world.solver import Solver
from agent_world.tasks import gates
from agent_world.tasks.gates import gate_task, practise
from agent_world.tasks.production import Order, make, practice, produce
from agent_world.tasks.verdicts import GATES
from tests.rollouts.cases import ENVIRONMENT, PROGRAM, READING, WRITING

CHEAP = GATES[:-2]


def practised(task, solver=None, environment=ENVIRONMENT, **more):
    return practise(task, environment, solver=solver or (lambda seed: Gold([task])), seed=5, **more)


class Wandering(Scripted):
    """Searches in vain, does what is right, and says so when it is `right`."""

    name = "wandering"

    def __init__(self, task, right=True):
        super().__init__()
        self.task, self.right = task, right

    def play(self, turn):
        yield Step(kind="tool", tool="search_books", arguments={"title": "No Such Title"})
        for call in self.task.plan:
            yield tool_step(call)
        yield answer_step(self.task.answer if self.right else {"status": "?"})


@pytest.mark.parametrize("task", [READING, WRITING, PROGRAM], ids=lambda task: task.task_id)
def test_a_practice_task_has_passed_the_cheap_gates_has_a_demonstration_and_is_never_accepted(task):
    verdict = practised(task, sandbox=default_sandbox())
    assert (verdict.tier, verdict.accepted) == ("practice", False)
    assert tuple(gate.gate for gate in verdict.gates) == CHEAP
    assert all(gate.accepted for gate in verdict.gates)
    assert verdict.demonstration.outcome.status == "pass"
    assert (verdict.replay.gate, verdict.replay.accepted) == ("trajectory", True)
    assert (verdict.solver_passes, verdict.random_passes) == (None, None)


def test_the_demonstration_has_no_detour_and_the_tries_are_kept_as_they_were():
    verdict = practised(WRITING, lambda seed: Wandering(WRITING))
    assert [call.tool for call in verdict.demonstration.calls] == list(WRITING.shape)
    assert {len(tried.calls) for tried in verdict.trajectories} == {len(WRITING.plan) + 1}


def test_a_demonstration_that_replays_otherwise_is_not_kept_and_the_verdict_says_why(monkeypatch):
    monkeypatch.setattr(gates, "replay", lambda *_, **__: Replay(digest="0" * 64, same_digest=False, differs_at=None))
    verdict = practised(WRITING)
    assert (verdict.tier, verdict.rejected_by.gate, verdict.rejected_by.reason) == (None, "trajectory", "other_digest")
    gated = gate_task(READING, ENVIRONMENT, solver=lambda seed: Gold([READING]), seed=5)
    assert (gated.tier, gated.replay.accepted) == ("train", False)


@pytest.mark.parametrize(("right", "kept"), [(0, False), (1, True), (2, True)])
def test_one_try_that_passes_is_enough_and_none_is_not(right, kept):
    solvers = iter([Wandering(WRITING)] * right + [Wandering(WRITING, right=False)] * (2 - right))
    verdict = practised(WRITING, lambda seed: next(solvers))
    assert (verdict.tier == "practice", verdict.demonstration is not None) == (kept, kept)
    assert not verdict.accepted
    assert len(verdict.trajectories) == 2


@pytest.mark.parametrize(
    ("task", "gate"),
    [
        (replace(READING, rubric=()), "rubric"),
        (replace(READING, instruction="Ask search_books who wrote Winter Maps."), "leak"),
        (replace(READING, answer={"author": "Bo Lindqvist"}), "evidence"),
        (replace(WRITING, plan=WRITING.plan[:2]), "gold"),
        (
            replace(PROGRAM, verifier="def verify(answer, gold, initial, final):\n    return []\n"),
            "null",
        ),
    ],
)
def test_what_is_wrong_is_not_practised_and_nobody_tries_it(task, gate):
    def nobody(seed):
        raise AssertionError("a solver was asked")

    verdict = practised(task, nobody)
    assert (verdict.tier, verdict.accepted, verdict.rejected_by.gate) == (None, False, gate)
    assert (verdict.trajectories, verdict.demonstration) == ((), None)


def test_the_same_seed_gives_the_same_verdict():
    assert practised(WRITING) == practised(WRITING)


def test_another_version_of_the_environment_is_refused():
    with pytest.raises(PinMismatchError):
        practised(READING, environment=replace(ENVIRONMENT, version=VersionId("toy-library@1")))


def test_what_can_be_guessed_may_be_imitated_but_not_rewarded():
    """The dear gates are what a practice task is spared; a task that they refuse is still no task to be rewarded."""
    finder = replace(
        ENVIRONMENT.tool("find_member"),
        output_schema={"type": "object", "properties": {"member_id": {"type": "string"}}},
        source=ENVIRONMENT.tool("find_member").source.replace("SELECT member_id, name", "SELECT member_id"),
    )
    environment = replace(ENVIRONMENT, tools=(finder,))
    criterion = replace(READING.rubric[0], name="member", field="member", expected="M2")
    task = replace(
        READING,
        instruction='Which number is on the card of "Tom Okafor"?',
        answer={"member": "M2"},
        answer_schema={
            "type": "object", "properties": {"member": {"type": "string", "description": "number on the card"}},
            "required": ["member"], "additionalProperties": False,
        },
        plan=(Call(tool="find_member", arguments={"name": "Tom Okafor"}),),
        rubric=(criterion, READING.rubric[-1]),
    )  # fmt: skip
    assert gate_task(task, environment, solver=lambda seed: Gold([task]), seed=5).tier is None
    verdict = practised(task, environment=environment)
    assert (verdict.tier, verdict.accepted) == ("practice", False)


ORDER = Order(environment=ENVIRONMENT, count=6, seed=3, purpose="practice")


def test_an_order_for_practice_gives_its_candidates_and_accepts_none():
    judged = practice(ORDER, solver=Solver, sandbox=default_sandbox())
    assert 0 < len(judged) <= ORDER.count
    kept = [item for item in judged if item.verdict.tier]
    assert kept
    for task, verdict in judged:
        assert task.purpose == "practice"
        assert not verdict.accepted
        assert (verdict.tier == "practice") == (verdict.demonstration is not None)
        assert {gate.gate for gate in verdict.gates} <= set(CHEAP)
    texts = [task.instruction for task, _ in judged]
    assert len(set(texts)) == len(texts)
    assert [task.task_id for task, _ in make(ORDER)] == [task.task_id for task, _ in judged], "`make` does the same"


def test_practice_repeats_no_task_that_was_made_before():
    made = [item.task for item in produce(replace(ORDER, purpose="general", count=2), solver=Solver)]
    again = practice(replace(ORDER, exclude=tuple(made)), solver=Solver)
    assert not {task.instruction for task in made} & {task.instruction for task, _ in again}


def test_an_order_of_nothing_gives_nothing():
    assert practice(replace(ORDER, count=0), solver=Solver) == []
