import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_world.sandbox import strict_json

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(json_values)
def test_plain_json_comes_through(value):
    assert strict_json.loads(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    "line",
    [
        b'{"a": NaN}',
        b"[Infinity]",
        b"[-Infinity]",
        b"[1e999]",
        b'{"a": 1, "a": 1}',
        b'{"b": {"a": 1, "a": 1}}',
        b'"\\ud800"',
        b'{"\\uDC00x": 1}',
        b"[" * 100_000,
        b"9" * 5000,
        b"\xff",
        b"",
        b"{} {}",
        b"{'a': 1}",
    ],
)
def test_what_readers_disagree_on_is_refused(line):
    with pytest.raises(ValueError):
        strict_json.loads(line)


def test_a_pair_of_surrogates_is_one_character():
    assert strict_json.loads(b'"\\ud83d\\ude00"') == "\U0001f600"
