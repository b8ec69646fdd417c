import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_world.models.compact import NotationError, dump, dump_record, load, load_record, opening

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
SPECIMENS = st.sampled_from(
    [
        "2",
        "true",
        "a=b",
        " x",
        "",
        "[x|y]",
        '"q"',
        "Łódź",
        "New York",
        "a\nb",
        "\ud800",
        "1e5",
        "{}",
        "⟦x¦y⟧",
        "x k",
        "'\"",
    ]
)
VALUES = st.recursive(
    SCALARS | SPECIMENS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None)
@given(VALUES)
def test_every_json_value_comes_back_as_it_was(value):
    again = load(dump(value))
    assert again == value
    assert type(again) is type(value)


@settings(deadline=None)
@given(st.dictionaries(st.text(), VALUES, max_size=5))
def test_every_record_comes_back_as_it_was(record):
    assert load_record(dump_record(record)) == record


def test_the_notation_is_short_and_keeps_strings_as_instructions_quote_them():
    record = {
        "book_id": "B3",
        "page": 2,
        "tags": ["new", "rare"],
        "items": [{"id": "7", "ok": True}, {"id": 8, "ok": None}],
    }
    assert dump_record(record) == ' book_id="B3 page=2 tags=⟦"new¦"rare⟧ items=⟦ id="7 ok=true¦ id=8 ok=null⟧'


@pytest.mark.parametrize(
    "text", [" a", " a=", " a=⟦1", " a=⦃ b=1", "a=1", " a=1⟧", " a='\"x", " a=1¦2", " a=novel", " a=NaN", " a=1e999"]
)
def test_text_outside_the_notation_is_refused_with_its_place(text):
    with pytest.raises(NotationError, match="at character"):
        load_record(text)


def test_an_opening_tells_the_type():
    assert [opening({"type": kind}) for kind in ("string", "array", "object", "integer")] == ['"', "⟦", "⦃", ""]
    assert dump("x").startswith(opening({"type": "string"}))
    assert dump(["x"]).startswith(opening({"type": "array"}))
