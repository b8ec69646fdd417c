from dataclasses import replace

import pytest

from agent_world.environments.model import Call
from agent_world.identity import VersionId
from agent_world.rollouts.episode import PinMismatchError
from agent_world.rollouts.faults import Planted
from agent_world.rollouts.loop import EpisodeSpec, roll_out
from agent_world.rollouts.model import Step
from agent_world.rollouts.policies import Gold, Scripted, answer_step
from agent_world.tasks.gates import audit, gate_task, trajectory_gate
from agent_world.tasks.model import Criterion
from agent_world.tasks.verdicts import GATES, tail, upper_bound
from tests.rollouts.cases import ENVIRONMENT, PROGRAM, READING, WRITING, field, schema

TASKS = (READING, WRITING, PROGRAM)
BOOK = Call(tool="get_book", arguments={"book_id": "B3"})


def gated(task, environment=ENVIRONMENT, solver=None, **more):
    return gate_task(task, environment, solver=solver or (lambda seed: Gold([task])), seed=5, **more)


def rejection(task, environment=ENVIRONMENT, solver=None):
    verdict = gated(task, environment, solver)
    rejected = verdict.rejected_by
    assert rejected is not None, verdict.gates
    assert verdict.gates[-1] is rejected, "a gate ran after the first rejection"
    return rejected.gate, rejected.reason


def asking(answer, properties, *, rubric=None, **changes):
    """The reading task with another answer, judged field by field."""
    criteria = [Criterion(name=name, kind="field_equals", field=name, expected=value) for name, value in answer.items()]
    state = Criterion(name="state", kind="state_equals", expected={})
    return replace(
        READING, answer=answer, answer_schema=schema(**properties), rubric=rubric or (*criteria, state), **changes
    )


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.task_id)
def test_the_toy_tasks_pass_every_gate(task):
    verdict = gated(task)
    assert (verdict.accepted, verdict.tier, verdict.solver_passes) == (True, "train", 5)
    assert verdict.random_passes <= 1
    assert tuple(gate.gate for gate in verdict.gates) == GATES
    assert [trajectory.outcome.status for trajectory in verdict.trajectories] == ["pass"] * 5
    assert len({trajectory.seed for trajectory in verdict.trajectories}) == 5


def test_the_same_seed_gives_the_same_verdict():
    assert gated(WRITING) == gated(WRITING)


def test_another_version_of_the_environment_is_refused():
    with pytest.raises(PinMismatchError):
        gated(READING, replace(ENVIRONMENT, version=VersionId("toy-library@1")))


def test_without_the_runs_of_many_episodes_nothing_is_kept():
    verdict = gated(READING, thorough=False)
    assert [gate.gate for gate in verdict.gates] == list(GATES[:-2])
    assert all(gate.accepted for gate in verdict.gates)
    assert not verdict.accepted


# rubric


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        (replace(READING, rubric=()), "no_rubric"),
        (replace(PROGRAM, verifier=None), "no_rubric"),
        (replace(READING, rubric=READING.rubric[1:]), "field_not_judged"),
        (replace(READING, rubric=READING.rubric[:2]), "state_not_judged"),
        (replace(READING, rubric=(replace(READING.rubric[0], field="title"), *READING.rubric[1:])), "unknown_field"),
    ],
)
def test_a_rubric_that_lets_something_through_is_rejected(task, reason):
    assert rejection(task) == ("rubric", reason)


# leak


@pytest.mark.parametrize(
    ("words", "reason"),
    [("Ask search_books who wrote Winter Maps.", "tool_name"), ("What is the author_id of Winter Maps?", "identifier")],
)
def test_a_leak_is_rejected(words, reason):
    assert rejection(replace(READING, instruction=words)) == ("leak", reason)


# evidence


@pytest.mark.parametrize(
    ("answer", "properties"),
    [
        ({"lent": True}, {"lent": field("boolean")}),
        ({"copies": 1}, {"copies": field("integer")}),
        ({"lent": False, "copies": 3}, {"lent": field("boolean"), "copies": field("integer")}),
        ({"genre": "novel"}, {"genre": field("string", enum=["novel", "essay", "poetry"])}),
    ],
)
def test_a_yes_or_no_or_a_small_count_is_not_the_only_evidence(answer, properties):
    assert rejection(asking(answer, properties)) == ("evidence", "guessable_answer")


def test_a_small_count_beside_a_name_is_enough():
    assert gated(READING).accepted


def test_a_state_change_is_evidence_of_its_own():
    task = replace(
        WRITING,
        answer={"lent": True},
        answer_schema=schema(lent=field("boolean", "whether it was lent")),
        rubric=(Criterion(name="lent", kind="field_equals", field="lent", expected=True), WRITING.rubric[1]),
    )
    evidence = next(gate for gate in gated(task).gates if gate.gate == "evidence")
    assert evidence.accepted


def test_a_gold_answer_of_another_shape_is_rejected():
    assert rejection(replace(READING, answer={"author": "Bo Lindqvist"})) == ("evidence", "answer_misfits")


# null


def test_a_task_whose_answer_is_the_most_likely_value_is_rejected():
    task = asking(
        {"genre": "novel", "author": "Ana Ruiz"},
        {"genre": field("string", "genre of the book"), "author": field("string", "name of the author")},
        instruction="Which genre is The Quiet Harbour, and who wrote it?",
    )
    assert rejection(task) == ("null", "null_passes")


def test_a_task_that_an_empty_answer_solves_is_rejected():
    task = asking({"note": "", "year": None}, {"note": field("string"), "year": field(["integer", "null"])})
    task = replace(task, plan=(Call(tool="get_book", arguments={"book_id": "B6"}),))
    gate, reason = rejection(replace(task, answer_schema=schema(note=field("string"), year=field(["string", "null"]))))
    assert (gate, reason) == ("null", "null_passes")


def test_a_verifier_that_is_true_of_the_untouched_database_is_rejected():
    lenient = "def verify(answer, gold, initial, final):\n    return []\n"
    assert rejection(replace(PROGRAM, verifier=lenient)) == ("null", "null_passes")


# gold


def test_a_gold_answer_that_its_own_rubric_fails_is_rejected():
    wrong = replace(READING.rubric[0], expected="Nobody")
    assert rejection(replace(READING, rubric=(wrong, *READING.rubric[1:]))) == ("gold", "gold_fails")


def test_a_plan_that_lacks_its_write_is_rejected():
    assert rejection(replace(WRITING, plan=WRITING.plan[:2])) == ("gold", "other_state")


def test_a_recorded_state_that_the_plan_does_not_reach_is_rejected():
    assert rejection(replace(WRITING, state_diff={**WRITING.state_diff, "books": {}})) == ("gold", "other_state")


def test_an_answer_that_the_plan_does_not_show_is_rejected():
    task = asking(
        {"author": "Ana Ruiz", "copies": 3}, {"author": field("string"), "copies": field("integer", "copies owned")}
    )
    assert rejection(task) == ("gold", "other_answer")


@pytest.mark.parametrize(
    "solution",
    [
        "def solve(call):\n    return {'titles': ['Winter Maps'], 'copies': 2}",
        "def solve(call):\n    return {'titles': ['Letters Home', 'Winter Maps'], 'copies': 2}",
        "def solve(call):\n    raise ValueError('no')",
    ],
)
def test_a_solution_that_does_something_else_is_rejected(solution):
    assert rejection(replace(PROGRAM, solution=solution)) == ("gold", "other_answer")


def test_an_answer_with_an_id_that_only_this_run_made_is_rejected():
    [trajectory] = roll_out([EpisodeSpec(task=WRITING, environment=ENVIRONMENT)], Gold([WRITING]))
    made = trajectory.steps[-2][1].value["loan_id"]
    task = replace(
        WRITING,
        answer={"loan": made},
        answer_schema=schema(loan=field("string", "id of the loan")),
        rubric=(Criterion(name="loan", kind="field_equals", field="loan", expected=made), WRITING.rubric[1]),
    )
    assert rejection(task) == ("gold", "minted_id")


# wrong answers


def test_a_tolerance_as_wide_as_the_answer_is_still_got_wrong_outside_it():
    wide = Criterion(name="copies", kind="numeric_tolerance", field="copies", expected=1, tolerance=50)
    task = replace(READING, rubric=(READING.rubric[0], wide, READING.rubric[2]))
    assert gated(task).accepted


def test_a_verifier_that_overlooks_a_field_is_rejected():
    half_blind = """
def verify(answer, gold, initial, final):
    return [] if answer["titles"] == gold["titles"] else ["titles"]
"""
    assert rejection(replace(PROGRAM, verifier=half_blind)) == ("wrong_answer", "wrong_answer_passes")


def test_a_verifier_that_overlooks_order_is_rejected():
    unordered = """
def verify(answer, gold, initial, final):
    failed = [] if sorted(answer["titles"]) == sorted(gold["titles"]) else ["titles"]
    return failed if answer["copies"] == gold["copies"] else [*failed, "copies"]
"""
    ordered = {**PROGRAM.answer_schema["properties"]["titles"], "uniqueItems": False}
    properties = {**PROGRAM.answer_schema["properties"], "titles": ordered}
    task = replace(PROGRAM, verifier=unordered, answer_schema={**PROGRAM.answer_schema, "properties": properties})
    assert rejection(task) == ("wrong_answer", "wrong_answer_passes")
    assert gated(replace(PROGRAM, verifier=unordered)).accepted


# state


def test_a_writing_task_that_does_not_look_at_the_state_is_rejected():
    lenient = """
def verify(answer, gold, initial, final):
    return [] if answer == gold else ["status"]
"""
    task = replace(WRITING, kind="program", rubric=(), verifier=lenient, solution=LENDING)
    assert rejection(task) == ("state", "passes_without_call")


def test_a_writing_task_that_overlooks_a_second_write_is_rejected():
    careless = """
def verify(answer, gold, initial, final):
    lent = final.db.execute("SELECT 1 FROM loans WHERE book_id = 'B5' AND member_id = 'M2'").fetchone()
    return [] if answer == gold and lent else ["loan"]
"""
    task = replace(WRITING, kind="program", rubric=(), verifier=careless, solution=LENDING)
    assert rejection(task) == ("state", "unasked_write_passes")


def test_a_read_only_task_that_overlooks_a_write_is_rejected():
    careless = """
def verify(answer, gold, initial, final):
    return [] if answer == gold else ["answer"]
"""
    assert rejection(replace(PROGRAM, rubric=(), verifier=careless)) == ("state", "unasked_write_passes")


def test_where_no_tool_writes_a_row_is_taken_away():
    readers = tuple(tool for tool in ENVIRONMENT.tools if not tool.writes)
    state = next(gate for gate in gated(READING, replace(ENVIRONMENT, tools=readers)).gates if gate.gate == "state")
    assert (state.accepted, state.evidence["unasked"]) == (True, "row removed")


LENDING = """
def solve(call):
    book = call("search_books", {"title": "Nordic Light"})["items"][0]
    member = call("find_member", {"name": "Tom Okafor"})
    loan = call("lend_book", {"book_id": book["book_id"], "member_id": member["member_id"]})
    return {"status": loan["status"]}
"""


# random


def test_a_task_that_an_informed_guess_solves_is_rejected():
    """One fact behind one look-up: the agent finds the row by its name and says one of the values it saw."""
    finder = replace(
        ENVIRONMENT.tool("find_member"),
        output_schema={"type": "object", "properties": {"member_id": {"type": "string"}}},
        source=ENVIRONMENT.tool("find_member").source.replace("SELECT member_id, name", "SELECT member_id"),
    )
    environment = replace(ENVIRONMENT, tools=(finder,))
    task = asking(
        {"member": "M2"},
        {"member": field("string", "number on the card of the member")},
        instruction='Which number is on the card of "Tom Okafor"?',
        plan=(Call(tool="find_member", arguments={"name": "Tom Okafor"}),),
    )
    verdict = gated(task, environment)
    rejected = verdict.rejected_by
    assert (rejected.gate, rejected.reason) == ("random", "random_passes")
    assert verdict.random_passes > 1
    assert rejected.evidence["runs"] == 10, "it stops after the informed half"


# solver


class _Says(Scripted):
    name = "says"

    def __init__(self, answer, calls=()):
        super().__init__()
        self.answer, self.calls = answer, calls

    def play(self, turn):
        for call in self.calls:
            yield Step(kind="tool", tool=call.tool, arguments=call.arguments)
        yield answer_step(self.answer)


@pytest.mark.parametrize(("right", "tier"), [(0, "hard"), (1, "hard"), (2, "train"), (5, "train")])
def test_two_right_solver_runs_that_agree_make_a_training_task(right, tier):
    policies = iter([Gold([READING])] * right + [_Says({"author": "?", "copies": 0})] * (5 - right))
    verdict = gated(READING, solver=lambda seed: next(policies))
    assert (verdict.tier, verdict.solver_passes, len(verdict.trajectories)) == (tier, right, 5)
    assert verdict.accepted, "a hard task is kept, outside training"
    assert verdict.gates[-1].reason == (None if tier == "train" else "not_consistent")


def test_right_runs_that_end_in_different_states_do_not_agree():
    """A criterion that ignores who borrowed lets two runs pass in different states."""
    either = """
def verify(answer, gold, initial, final):
    loans = final.db.execute("SELECT * FROM loans WHERE book_id = 'B5'").fetchall()
    rest = final.db.execute("SELECT count(*) FROM loans").fetchone()[0]
    return [] if answer == gold and len(loans) == 1 == rest else ["loan"]
"""
    task = replace(WRITING, kind="program", rubric=(), verifier=either, solution=LENDING)
    members = iter(["M1", "M2", "M3", "M1", None])

    def solver(seed):
        member = next(members)
        if member is None:
            return _Says({"status": "?"})
        return _Says({"status": "out"}, [Call(tool="lend_book", arguments={"book_id": "B5", "member_id": member})])

    verdict = gated(task, solver=solver)
    assert verdict.gates[-1].evidence["passes"] == 4
    assert verdict.solver_passes == 2
    lonely = iter(["M1", "M2", "M3", None, None])
    members = lonely
    assert gated(task, solver=solver).tier == "hard"


def test_each_solver_run_gets_its_own_seed():
    seeds = []

    def solver(seed):
        seeds.append(seed)
        return Gold([READING])

    gated(READING, solver=solver)
    assert len(set(seeds)) == 5


def test_a_solver_that_breaks_proves_nothing():
    class Broken(_Says):
        def act(self, turns):
            raise RuntimeError("out of memory")

    verdict = gated(READING, solver=lambda seed: Broken({}))
    assert (verdict.accepted, verdict.gates[-1].reason) == (False, "infra_error")


def test_a_verifier_that_breaks_proves_nothing():
    broken = "def verify(answer, gold, initial, final):\n    return [gold['no such field']]\n"
    assert rejection(replace(PROGRAM, verifier=broken)) == ("null", "infra_error")


@pytest.mark.parametrize(
    "damage",
    [
        "__import__('os').pwrite(5, b'nonsense' * 1000, 0)\n    return {}",
        "world.db.execute('ALTER TABLE members RENAME COLUMN name TO label')",
    ],
)
def test_a_plan_over_a_tool_that_breaks_the_state_is_no_gold(damage):
    source = ENVIRONMENT.tool("lend_book").source.replace("def lend_book(", "def lent(")
    source += f"\n\ndef lend_book(world, **given):\n    {damage}\n    return lent(world, **given)\n"
    tools = [replace(tool, source=source) if tool.name == "lend_book" else tool for tool in ENVIRONMENT.tools]
    environment = replace(ENVIRONMENT, tools=tuple(tools))
    assert rejection(WRITING, environment) == ("gold", "gold_fails")
    assert gated(READING, environment).accepted, "random runs and unasked writes that break it are none of its doing"


# trajectory and audit


def test_a_stored_trajectory_replays():
    [trajectory] = roll_out([EpisodeSpec(task=WRITING, environment=ENVIRONMENT)], Gold([WRITING]))
    assert trajectory_gate(trajectory, WRITING, ENVIRONMENT).accepted
    cut = replace(trajectory, steps=trajectory.steps[:1])
    assert trajectory_gate(cut, WRITING, ENVIRONMENT).reason == "other_digest"
    step, observation = trajectory.steps[0]
    altered = replace(trajectory, steps=((step, replace(observation, value={})), *trajectory.steps[1:]))
    assert trajectory_gate(altered, WRITING, ENVIRONMENT).reason == "other_observation"


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.task_id)
def test_an_audit_with_a_fresh_seed_holds(task):
    verdicts = audit(task, ENVIRONMENT, seed=77)
    assert [verdict.gate for verdict in verdicts] == list(GATES[:-1])
    assert all(verdict.accepted for verdict in verdicts)
    assert verdicts[-1].evidence["limit"] == 5


def test_an_audit_runs_every_gate_whatever_it_finds():
    broken = replace(READING, instruction="Ask search_books who wrote Winter Maps.")
    verdicts = audit(broken, ENVIRONMENT, seed=77)
    assert [verdict.gate for verdict in verdicts if not verdict.accepted] == ["leak"]
    assert len(verdicts) == len(GATES) - 1


def test_an_audit_of_a_task_whose_plan_no_longer_holds_goes_on_to_the_end():
    verdicts = audit(replace(WRITING, plan=WRITING.plan[:2]), ENVIRONMENT, seed=1)
    assert {verdict.gate: verdict.reason for verdict in verdicts}["gold"] == "other_state"


def test_the_binomial_bound():
    assert tail(0, 20, 0.05) == pytest.approx(1)
    assert tail(2, 20, 0.05) == pytest.approx(0.2642, abs=1e-4)
    assert tail(6, 20, 0.05) < 0.001 < tail(5, 20, 0.05)
    assert upper_bound(0, 20) == pytest.approx(0.1391, abs=1e-4)
    assert upper_bound(20, 20) == 1


def test_a_planted_policy_is_a_solver_that_fails():
    verdict = gated(READING, solver=lambda seed: Planted([READING], [ENVIRONMENT], "early_stop"))
    assert verdict.tier == "hard"
