import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_world.rollouts.canonical import aligned, canonical, misfits, number_in
from tests.rollouts.cases import field, schema

TEXT = {"type": "string"}
INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
SET = {"type": "array", "items": TEXT, "uniqueItems": True}

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
schemas = st.sampled_from([{}, TEXT, INTEGER, NUMBER, {"type": "boolean"}, {"type": ["string", "null"]}])


@pytest.mark.parametrize(
    ("one", "other", "declared"),
    [
        (" Salt  and\tStone ", "salt and stone", TEXT),
        ("Zoe\u0308", "ZO\u00cb", TEXT),
        ("3", 3, INTEGER),
        (3.0, 3, INTEGER),
        ("1,395", 1395, INTEGER),
        ("+12.50", 12.5, NUMBER),
        ("1e3", 1000, NUMBER),
        (1, "1", TEXT),
        ("True", True, {"type": "boolean"}),
        (["b", "a"], ["a", "b"], SET),
        (["a", "a"], ["a"], SET),
    ],
)
def test_spellings_of_one_value_are_the_same(one, other, declared):
    assert canonical(one, declared) == canonical(other, declared)


@pytest.mark.parametrize(
    ("one", "other", "declared"),
    [
        (True, 1, INTEGER),
        (False, 0, INTEGER),
        ("true", 1, {}),
        ("007", 7, TEXT),
        ("1,39", 139, INTEGER),
        ("12", "12.0", TEXT),
        ("Zoe", "Zoë", TEXT),
        (None, "", TEXT),
        (None, 0, INTEGER),
        (["a", "b"], ["b", "a"], {"type": "array", "items": TEXT}),
        ("", 0, INTEGER),
        ("²", 2, INTEGER),
        (float("nan"), float("nan"), {"type": "array"}),
    ],
)
def test_different_values_stay_different(one, other, declared):
    same = canonical(one, declared) == canonical(other, declared)
    assert not same or canonical(one, declared)[0] == "invalid"


@given(value=scalars, declared=schemas)
def test_a_canonical_form_survives_json(value, declared):
    assert canonical(json.loads(json.dumps(value)), declared) == canonical(value, declared)


@given(text=st.text(alphabet=st.characters(codec="ascii"), min_size=1))
def test_case_and_white_space_do_not_count(text):
    assert canonical(f"  {text.upper()}\n", TEXT) == canonical(text.lower(), TEXT)


@given(number=st.integers())
def test_a_number_is_the_same_however_it_is_written(number):
    forms = {canonical(form, INTEGER) for form in (number, str(number), f"{number:,}", f" {number} ")}
    assert forms == {("number", number)}


@given(one=st.booleans(), other=st.none() | st.integers() | st.floats(), declared=schemas)
def test_truth_values_equal_only_truth_values(one, other, declared):
    assert canonical(one, declared) != canonical(other, declared)


@given(value=st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8))
def test_every_json_value_has_a_hashable_form(value):
    hash(canonical(value, {}))
    hash(canonical(value, SET))


ASKED = schema(title=field("string"), copies=field("integer"), genre=field("string", enum=["novel", "essay"]))
RIGHT = {"title": "Winter Maps", "copies": 1, "genre": "novel"}


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "Winter Maps",
        [RIGHT],
        {},
        {**RIGHT, "more": 1},
        {"title": "Winter Maps", "copies": 1},
        {**RIGHT, "copies": True},
        {**RIGHT, "copies": 1.5},
        {**RIGHT, "copies": "one"},
        {**RIGHT, "copies": None},
        {**RIGHT, "copies": float("inf")},
        {**RIGHT, "title": ["Winter Maps"]},
        {**RIGHT, "genre": "poem"},
    ],
)
def test_an_answer_of_another_shape_does_not_fit(answer):
    assert misfits(answer, ASKED)


def test_an_answer_spelt_differently_still_fits():
    assert misfits({"title": "winter maps", "copies": "1", "genre": "NOVEL"}, ASKED) == []


def test_alignment_takes_golds_spelling_and_nothing_else():
    given_ = {"title": "WINTER maps", "copies": "2", "genre": "essay"}
    assert aligned(given_, RIGHT, ASKED) == {"title": "Winter Maps", "copies": "2", "genre": "essay"}


@pytest.mark.parametrize(
    ("value", "number"), [("3.50", 3.5), (4, 4), (True, None), ("x", None), (None, None), ([1], None)]
)
def test_a_number_is_found_where_there_is_one(value, number):
    assert number_in(value) == number
