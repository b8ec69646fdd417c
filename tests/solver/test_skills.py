"""Each skill on the toy worlds, in the real sandbox: right answer and right final state."""

import pytest

from agent_world.rollouts.loop import EpisodeSpec, roll_out
from agent_world.solver import Solver
from tests.solver.instructions import bind

SKILLS = {
    "a chain of look-ups": "lib1",
    "a hop to another thing": "desk19",
    "a count over pages": "desk2",
    "a count with a filter on what is seen": "desk9",
    "a mean over filtered rows": "ward16",
    "a sum over details of each row": "desk22",
    "a superlative": "desk5",
    "a superlative over details": "ward17",
    "a group with the most": "lib12",
    "a list of names": "ward15",
    "a comparison of two": "lib5",
    "a difference": "ward18",
    "a yes-or-no question": "lib14",
    "a write with looked-up ids": "lib2",
    "a write with a superlative": "ward8",
    "a write and a transition": "desk6",
    "a change of what was made": "desk15",
    "a write for each of several": "ward10",
    "the same write for two names": "ward6",
    "a condition that holds": "lib16",
    "a condition that fails": "lib9",
    "an order without a telling verb": "desk14",
    "a document": "desk13",
    "a pronoun": "desk1",
    "those of several that meet a condition": "lib21",
    "the one that stands out of several": "lib22",
    "a write about the one that stands out": "lib23",
    "a wish with an exception": "lib24",
    "a condition on a fact that was looked up": "lib25",
    "facts asked for after a write": "lib26",
    "two orders in one polite question": "lib27",
    "the lowest of several": "lib28",
    "a count and the first by name of two sets": "desk30",
    "a fact of what a fact names": "desk31",
    "a sum over things of no said kind": "lib29",
    "an order about what was named before": "lib30",
    "an adjective that says what counts": "desk32",
    "what something was done to": "desk33",
}


def attempts(question, world, sandbox, seeds):
    task = bind(question, world, sandbox)
    specs = [EpisodeSpec(task=task, environment=world, seed=seed) for seed in seeds]
    return roll_out(specs, Solver(), sandbox=sandbox)


@pytest.mark.parametrize("skill", sorted(SKILLS))
def test_most_runs_have_the_skill(skill, questions, worlds, sandbox):
    question = questions[SKILLS[skill]]
    played = attempts(question, worlds[question.theme], sandbox, range(3))
    assert [one.outcome.status for one in played].count("pass") >= 2, [one.outcome for one in played]


def test_a_refusal_leads_to_the_other_way(questions, worlds, sandbox):
    question = questions["desk14"]
    (played,) = attempts(question, worlds[question.theme], sandbox, [0])
    statuses = [seen.status for step, seen in played.steps if step.tool == "hold_seats"]
    assert statuses == ["refused", "ok"]
    assert played.outcome.status == "pass"


def test_a_question_changes_nothing(questions, worlds, sandbox):
    """Whatever is made of a question, it must not write."""
    asking = [one for one in questions.values() if not one.effect]
    tasks = [(bind(one, worlds[one.theme], sandbox), worlds[one.theme]) for one in asking]
    specs = [EpisodeSpec(task=task, environment=world, seed=1) for task, world in tasks]
    wrote = [
        spec.task.task_id
        for spec, played in zip(specs, roll_out(specs, Solver(), sandbox=sandbox), strict=True)
        for step, _ in played.steps
        if step.tool and spec.environment.tool(step.tool).writes
    ]
    assert wrote == []


def test_a_write_is_not_made_twice(questions, worlds, sandbox):
    question = questions["lib6"]
    (played,) = attempts(question, worlds[question.theme], sandbox, [0])
    assert [step.tool for step, _ in played.steps].count("lend_book") == 1
