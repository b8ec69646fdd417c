from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_world.rollouts.answers import empty_answer, likely_answer, wrong_answers
from agent_world.rollouts.canonical import canonical, misfits
from agent_world.tasks.model import Criterion
from tests.rollouts.cases import ENVIRONMENT, PROGRAM, READING, WRITING, field, schema


def made(gold, declared, *criteria):
    task = replace(READING, answer={"it": gold}, answer_schema=schema(it=declared), rubric=criteria)
    return task, [(wrong.change, wrong.answer["it"]) for wrong in wrong_answers(task, ENVIRONMENT, seed=4)]


kinds = st.sampled_from(
    [
        (st.text(max_size=12), {"type": "string"}),
        (st.integers(-(10**9), 10**9), {"type": "integer"}),
        (st.floats(-1e6, 1e6).map(lambda value: round(value, 4)), {"type": "number"}),
        (st.booleans(), {"type": "boolean"}),
        (st.sampled_from(["novel", "essay", "poetry"]), {"type": "string", "enum": ["novel", "essay", "poetry"]}),
        (st.none() | st.integers(0, 5), {"type": ["integer", "null"]}),
        (st.lists(st.sampled_from("abcd"), max_size=5), {"type": "array", "items": {"type": "string"}}),
        (
            st.lists(st.sampled_from("abcd"), max_size=5),
            {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        ),
    ]
)
answers = kinds.flatmap(lambda kind: st.tuples(kind[0], st.just(kind[1])))


@given(answer=answers)
def test_a_wrong_answer_fits_the_schema_and_differs_in_canonical_form(answer):
    gold, declared = answer
    task, wrong = made(gold, declared)
    assert wrong
    for _, value in wrong:
        assert canonical(value, declared) != canonical(gold, declared)
        assert misfits({"it": value}, task.answer_schema) == []


@given(number=st.floats(-1000, 1000).map(lambda value: round(value, 3)), tolerance=st.floats(0, 5))
def test_a_wrong_number_lies_outside_the_tolerance(number, tolerance):
    tolerant = Criterion(name="it", kind="numeric_tolerance", field="it", expected=number, tolerance=tolerance)
    _, wrong = made(number, {"type": "number"}, tolerant)
    assert all(abs(value - number) > tolerance for _, value in wrong)


def test_every_field_is_got_wrong_in_turn():
    wrong = wrong_answers(PROGRAM, ENVIRONMENT, seed=1)
    assert {each.field for each in wrong} == {"titles", "copies"}
    for each in wrong:
        others = {name: value for name, value in each.answer.items() if name != each.field}
        assert others == {name: value for name, value in PROGRAM.answer.items() if name != each.field}


def test_a_text_becomes_a_sibling_from_its_own_column():
    [name] = [each.answer["author"] for each in wrong_answers(READING, ENVIRONMENT, 2) if each.field == "author"]
    assert name in {"Ana Ruiz", "Zoë Ångström"}


def test_a_list_loses_an_element_and_has_two_swapped():
    _, wrong = made(["a", "b", "c"], {"type": "array", "items": {"type": "string"}})
    assert {change for change, _ in wrong} == {"dropped", "altered", "swapped"}


def test_a_set_is_not_swapped():
    _, by_schema = made(["a", "b"], {"type": "array", "items": {"type": "string"}, "uniqueItems": True})
    as_set = Criterion(name="it", kind="set_equals", field="it", expected=["a", "b"])
    _, by_criterion = made(["a", "b"], {"type": "array", "items": {"type": "string"}}, as_set)
    assert "swapped" not in {change for change, _ in by_schema + by_criterion}


def test_two_equal_neighbours_are_not_swapped():
    _, wrong = made(["a", "a"], {"type": "array", "items": {"type": "string"}})
    assert "swapped" not in {change for change, _ in wrong}


def test_the_same_seed_gives_the_same_wrong_answers():
    assert wrong_answers(PROGRAM, ENVIRONMENT, 3) == wrong_answers(PROGRAM, ENVIRONMENT, 3)


def test_the_likely_answer_is_the_mode_of_the_column():
    task = replace(READING, answer={"genre": "novel", "copies": 5}, answer_schema=schema(
        genre=field("string", "genre of the book"), copies=field("integer", "copies owned"),
    ))  # fmt: skip
    assert likely_answer(task, ENVIRONMENT) == {"genre": "novel", "copies": 1}


@pytest.mark.parametrize("task", [READING, WRITING, PROGRAM])
def test_null_answers_fit_the_schema(task):
    for answer in (empty_answer(task.answer_schema), likely_answer(task, ENVIRONMENT)):
        assert misfits(answer, task.answer_schema) == []
