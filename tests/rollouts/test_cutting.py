import json

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agent_world.rollouts.cutting import CUT, LONGEST_OBSERVATION, shown

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=40)
LIMIT = 200


def size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False))


def test_what_is_short_enough_is_shown_as_it_is():
    value = {"text": "x" * (LONGEST_OBSERVATION - size({"text": ""}))}
    assert size(value) == LONGEST_OBSERVATION
    assert shown(value) is value
    assert shown({"text": value["text"] + "x"}) != {"text": value["text"] + "x"}


def test_a_long_list_loses_its_end_and_says_how_much():
    value = {"items": [{"id": number, "name": "n" * 90} for number in range(1000)], "total": 1000, "page": 1}
    seen = shown(value)
    count = len(seen["items"])
    assert seen["items"] == value["items"][:count]
    assert (seen["total"], seen["page"]) == (1000, 1)
    assert seen[CUT] == [f"items: {count} of 1000 items"]
    assert 0.9 * LONGEST_OBSERVATION < size(seen) < 1.1 * LONGEST_OBSERVATION


def test_a_long_text_loses_its_end_and_short_fields_stay_whole():
    seen = shown({"text": "w" * 50_000, "note": "n" * 30_000, "title": "Winter Maps"})
    assert seen["title"] == "Winter Maps"
    assert seen["text"].endswith("w…") and seen["note"].endswith("n…")
    assert seen[CUT] == [
        f"note: {len(seen['note']) - 1} of 30000 characters",
        f"text: {len(seen['text']) - 1} of 50000 characters",
    ]


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ({f"k{number}": number for number in range(9000)}, " of 9000 fields"),
        ({f"k{number}": {"a": "z" * 400} for number in range(900)}, " of 900 fields"),
        ({"a": [["x" * 90_000]]}, "a[0][0]: "),
        ("x" * 90_000, "the result: "),
        ([1] * 90_000, "the result: "),
    ],
)
def test_whatever_its_shape_something_is_shown(value, part):
    seen = shown(value)
    assert any(part in note for note in seen[CUT])
    assert LONGEST_OBSERVATION // 2 < size(seen) < 2 * LONGEST_OBSERVATION


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(values)
@example({"\a" * 20: 1, "b": "x" * 60})  # what is escaped counts as it is written
@example({f"\a{number}": number for number in range(18)})
def test_a_cut_is_short_and_does_not_depend_on_the_order_of_keys(value):
    def turned(part):
        if isinstance(part, dict):
            return {key: turned(item) for key, item in reversed(part.items())}
        return [turned(item) for item in part] if isinstance(part, list) else part

    seen = shown(value, LIMIT)
    assert seen == shown(turned(value), LIMIT)
    if size(value) <= LIMIT:
        assert seen is value
    else:
        assert seen[CUT]
        assert size({key: item for key, item in seen.items() if key != CUT}) <= 2 * LIMIT


def nested(value: object, depth: int) -> object:
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("innermost", ["x" * 20_000, [], {}, [[]]])
def test_deep_nesting_that_takes_all_room_is_cut_all_the_same(innermost):
    value = {f"k{number}": [nested(innermost, 60), "y" * 20_000] for number in range(150)}
    assert size(shown(value)) < 2 * LONGEST_OBSERVATION
