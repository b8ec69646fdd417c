import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_world.sandbox import strict_json
from agent_world.sandbox.strict_json import StrictJsonError

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(json_values)
def test_plain_json_comes_through(value):
    assert strict_json.loads(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    ("line", "flaw"),
    [
        (b'{"a": NaN}', "not_finite"),
        (b"[Infinity]", "not_finite"),
        (b"[-Infinity]", "not_finite"),
        (b"[1e999]", "not_finite"),
        (b'{"a": 1, "a": 1}', "key_twice"),
        (b'{"b": {"a": 1, "a": 1}}', "key_twice"),
        (b'"\\ud800"', "lone_surrogate"),
        (b'{"\\uDC00x": 1}', "lone_surrogate"),
        (b'["\\ud83d", "\\ude00"]', "lone_surrogate"),
        (b"[" * 100_000, "nested_too_deeply"),
        (b"[" * 129 + b"]" * 129, "nested_too_deeply"),
        (b'{"a":' * 129 + b"1" + b"}" * 129, "nested_too_deeply"),
        (b"9" * 5000, "endless_number"),
        (b"[-" + b"9" * 5000 + b"]", "endless_number"),
        (b"\xff", "not_text"),
        (b"\xed\xa0\x80", "not_text"),
        (b"", "not_json"),
        (b"{} {}", "not_json"),
        (b"{'a': 1}", "not_json"),
    ],
)
def test_what_readers_disagree_on_is_refused_and_says_for_what(line, flaw):
    with pytest.raises(StrictJsonError) as refused:
        strict_json.loads(line)
    assert refused.value.flaw == flaw
    assert str(refused.value).startswith(flaw)


def test_what_is_wide_is_not_deep():
    value = [[[n] for n in range(200)], {"a": {str(n): {} for n in range(200)}}]
    assert strict_json.loads(json.dumps(value).encode()) == value
    assert strict_json.loads(b"[" * 128 + b"]" * 128) is not None


def test_a_pair_of_surrogates_is_one_character():
    assert strict_json.loads(b'"\\ud83d\\ude00"') == "\U0001f600"
