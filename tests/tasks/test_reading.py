"""What a result offers to ask for is true of the rows that the question speaks of."""

from dataclasses import replace

import pytest

from agent_world.environments.model import Column, ForeignKey, Meaning
from agent_world.tasks.catalogue import Catalogue, Output
from agent_world.tasks.reading import read
from agent_world.tasks.saying import Given, fact_words

SEQUEL = Column(
    name="sequel_of", type="text", role="reference", words="predecessor", original="sequel_of",
    nullable=True, distinct=0,
)  # fmt: skip


@pytest.fixture
def with_sequels(environment):
    """The library with books that refer to books."""
    books = environment.database.table("books")
    key = ForeignKey(column="sequel_of", parent="books", parent_column="book_id", integrity=1.0, origin="declared")
    books = replace(books, columns=(*books.columns, SEQUEL), foreign_keys=(*books.foreign_keys, key))
    tables = tuple(books if table.name == "books" else table for table in environment.database.tables)
    return Catalogue(replace(environment, database=replace(environment.database, tables=tables)))


def test_the_label_of_another_row_of_the_table_is_asked_for_by_its_relation(with_sequels):
    tool = with_sequels.environment.tool("get_book")
    label = Meaning(kind="label", table="books", column="title")
    own = Output(array=None, field="title", meaning=label)
    other = Output(array=None, field="sequel_of_title", meaning=label)
    assert fact_words(with_sequels, tool, own, "books") == "title"
    assert fact_words(with_sequels, tool, other, "books") == "predecessor"


@pytest.mark.parametrize(("column", "counted"), [("year", False), ("copies", True)])
def test_a_ranking_that_leaves_rows_out_does_not_say_how_many_there_are(environment, column, counted):
    tool = replace(
        environment.tool("search_books"),
        name=f"rank_books_by_{column}",
        inputs={
            "genre": Meaning(kind="filter", table="books", column="genre"),
            "order": Meaning(kind="order", table="books", column=column),
        },
        outputs={
            "items[].title": Meaning(kind="label", table="books", column="title"),
            f"items[].{column}": Meaning(kind="value", table="books", column=column),
            "total": Meaning(kind="count", table="books"),
        },
    )
    given = {
        name: Given(value=value, meaning=tool.inputs[name])
        for name, value in (("genre", "essay"), ("order", "highest"))
    }
    rows = [{"title": "100% Rain_fall", column: 2011}, {"title": "Letters Home", column: 1}]
    offered = read(Catalogue(environment), tool, given, {"items": rows, "total": 2}).askable
    assert any(asked.field == "number" for asked in offered) == counted
