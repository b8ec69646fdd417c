from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_world.discovery.documents import FORMATS, parse, render

CELLS = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=12).map(
    lambda text: "x" + text.strip()
)
ROWS = st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=6)


@pytest.mark.parametrize("format", FORMATS)
@given(rows=ROWS)
@settings(max_examples=40, deadline=None)
def test_a_document_reads_back_as_it_was_written(format, rows):
    assert parse(format, render(format, "things", ["name", "of_what"], rows)) == [
        {"name": first, "of_what": second} for first, second in rows
    ]


@pytest.mark.parametrize("format", FORMATS)
def test_special_signs_and_gaps_survive(format):
    rows = [("50% & #1_a", None), ("<b>&amp; \\ {x} ~^$", "it's")]
    records = parse(format, render(format, "t", ["cell", "other"], rows))
    assert [tuple(record.values()) for record in records] == rows


def test_numbers_keep_their_type_where_the_format_has_one():
    for format in ("json", "yaml", "sql"):
        assert parse(format, render(format, "t", ["n", "x"], [(1, 2.5)])) == [{"n": 1, "x": 2.5}]
