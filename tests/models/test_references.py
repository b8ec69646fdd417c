import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_world.models.references import COUNT, MARKS, NUMBERS, TEXTS, References
from agent_world.rollouts.model import Observation
from tests.models import little

WORDS = {"novel", "out", "salt and stone"}
TEXT = st.text(max_size=12) | st.sampled_from(["B3", "Winter Maps", "2026-11-29", "Łódź", TEXTS[0], f"a{NUMBERS[3]}"])
NUMBER = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.lists(TEXT | NUMBER | st.booleans() | st.none(), max_size=30)


def fresh():
    return References(WORDS.__contains__)


@given(SCALARS, SCALARS)
def test_reading_on_never_changes_what_a_mark_means(first, more):
    references = fresh()
    for value in first:
        references.read(value)
    before = [references.write(value) for value in first]
    for value in more:
        references.read(value)
    assert [references.write(value) for value in first] == before
    for value, mark in zip(first, before, strict=True):
        if mark is not None:
            meant = references.meant(mark)
            assert (type(meant), meant) == (type(value), value)


@given(SCALARS)
def test_a_value_has_one_mark_and_two_values_never_share_one(values):
    references = fresh()
    shown = [references.read(value) for value in values]
    assert [references.read(value) for value in values] == shown
    marks = {}
    for value in values:
        if (mark := references.write(value)) is not None:
            marks.setdefault(mark, set()).add((type(value), value))
            assert mark in (TEXTS if isinstance(value, str) else NUMBERS)
    assert all(len(meant) == 1 for meant in marks.values())
    assert references.texts + references.numbers == len(marks)


@given(SCALARS)
def test_what_is_shown_holds_one_mark_and_no_other(values):
    references = fresh()
    for value in values:
        shown = references.read(value)
        if shown is not None:
            assert [character for character in shown if character in MARKS] == [references.write(value)]


def test_names_are_read_as_the_mark_alone_and_what_is_compared_with_its_digits():
    references = fresh()
    values = ["Winter Maps", 2011, "2026-11-29", "2026-11-29T08:30:00Z", 4.5, "novel", True, None, "Novel"]
    assert [references.read(value) for value in values] == [
        TEXTS[0], f"{NUMBERS[0]}2011", f"{TEXTS[1]}2026-11-29", f"{TEXTS[2]}2026-11-29T08:30:00Z", f"{NUMBERS[1]}4.5",
        None, None, None, TEXTS[3],
    ]  # fmt: skip


@pytest.mark.parametrize("value", ["never read", 7, "novel", True, None, ["B3"], {"id": "B3"}])
def test_what_was_not_read_and_what_is_no_thing_is_not_referred_to(value):
    references = fresh()
    references.read("7")
    references.read(7.0)
    assert references.write(value) is None


def test_a_mark_that_was_not_given_means_nothing():
    references = fresh()
    references.read("B3")
    with pytest.raises(KeyError):
        references.meant(TEXTS[1])
    with pytest.raises(KeyError):
        references.meant("B3")


@pytest.mark.parametrize(("kind", "other"), [(str, 0), (int, "x0")])
def test_when_the_marks_are_spent_what_comes_is_spelt_and_what_has_one_keeps_it(kind, other):
    references = fresh()
    values = [f"x{number}" if kind is str else number for number in range(1, COUNT + 2)]
    shown = [references.read(value) for value in values]
    assert shown[-1] is None
    assert references.write(values[-1]) is None
    assert None not in shown[:-1]
    assert len({references.write(value) for value in values[:-1]}) == COUNT
    assert references.read(other) is not None, "the other alphabet is apart"
    assert references.read_text(f'the title "{"y1"}" again') == 'the title "y1" again' or kind is int


def test_a_mention_in_running_text_has_the_mark_of_the_value_in_the_data():
    references = fresh()
    text = references.read_text('Is flight KEF-12 (2 seats) by Ana Ruiz under 4.5, or “salt and stone” from "B3"?')
    assert references.meant(references.write("Ana Ruiz")) == "Ana Ruiz"
    numbers = [references.write(2), references.write(4.5)]
    assert text == (
        f"Is flight {TEXTS[0]} ({numbers[0]}2 seats) by {TEXTS[1]} under {numbers[1]}4.5, or “salt and stone” "
        f"from {references.write('B3')}?"
    )


@given(st.text(st.sampled_from('aB7. -"“”' + TEXTS[:3] + NUMBERS[-2:]), max_size=60))
def test_a_private_use_character_in_text_is_dropped_whatever_stands_beside_it(text):
    references = fresh()
    shown = references.read_text(text)
    given_marks = {references.write(value) for value in _values(references)}
    assert {character for character in shown if character in MARKS} <= given_marks


def _values(references):
    return [references.meant(mark) for mark in TEXTS[: references.texts] + NUMBERS[: references.numbers]]


@pytest.mark.parametrize("digits", [400, 5000])
def test_a_number_too_long_to_be_one_is_a_code(digits):
    references = fresh()
    long = "9" * digits
    assert references.read_text(f"the number {long} is long") == f"the number {TEXTS[0]}{long} is long"
    assert references.write(long) == TEXTS[0]


@settings(deadline=None)
@given(st.text(st.sampled_from("a7T:- " + TEXTS[200] + NUMBERS[200]), min_size=1, max_size=20), st.booleans())
def test_a_private_use_character_of_the_data_never_becomes_a_reference(text, refused):
    script = little.script()
    value = {"error": {"code": "no", "message": text}} if refused else {"name": text, "items": [{text: text}, text]}
    ids = script.observation(little.call("x"), Observation(status="refused" if refused else "ok", value=value))
    assert not {TEXTS[200], NUMBERS[200]} & set(_marks_in(ids))
    written = script.step(little.call("search_books", title=text))
    assert not {TEXTS[200], NUMBERS[200]} & set(_marks_in(written))
    assert script.parse(written).arguments == {"title": text}


def _marks_in(ids):
    return re.findall(f"[{MARKS[0]}-{MARKS[-1]}]", little.tokenizer().decode(ids))
