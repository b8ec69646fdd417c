import random
import sqlite3
from dataclasses import replace

import pytest

from agent_world.environments.model import Meaning, Tool
from agent_world.tasks.catalogue import Catalogue
from agent_world.tasks.synthesis import synthesise
from tests.toy import AUTHORS, toy_environment

_LIST_BOOKS = Tool(
    tool_id="toy/list_books", name="list_books", writes=False, pattern="filter", tables=("books", "authors"),
    description="List books by genre and by least number of copies; leave a filter out to take all. Five books a page.",
    input_schema={
        "type": "object", "required": [], "additionalProperties": False,
        "properties": {
            "genre": {"type": "string", "description": "only books of this genre"},
            "min_copies": {"type": "integer", "description": "only books of which there are at least so many copies"},
            "page": {"type": "integer", "minimum": 1, "default": 1, "description": "which page, from 1"},
        },
    },
    output_schema={
        "type": "object", "required": ["items", "total", "page", "pages"], "additionalProperties": False,
        "properties": {
            "items": {"type": "array", "items": {"type": "object", "additionalProperties": False, "properties": {
                "book_id": {"type": "string", "description": "id of the book"},
                "title": {"type": "string", "description": "title"},
                "author": {"type": "string", "description": "name of the author"},
                "copies": {"type": "integer", "description": "copies"},
                "genre": {"type": "string", "description": "genre"},
            }}},
            "total": {"type": "integer"}, "page": {"type": "integer"}, "pages": {"type": "integer"},
        },
    },
    inputs={
        "genre": Meaning(kind="filter", table="books", column="genre"),
        "min_copies": Meaning(kind="threshold", table="books", column="copies"),
        "page": Meaning(kind="page"),
    },
    outputs={
        "items[].book_id": Meaning(kind="key", table="books", column="book_id"),
        "items[].title": Meaning(kind="label", table="books", column="title"),
        "items[].author": Meaning(kind="label", table="authors", column="name"),
        "items[].copies": Meaning(kind="value", table="books", column="copies"),
        "items[].genre": Meaning(kind="filter", table="books", column="genre"),
        "total": Meaning(kind="count", table="books"), "page": Meaning(kind="page"), "pages": Meaning(kind="page"),
    },
    source='''from toolkit import paged


def list_books(world, *, genre: str | None = None, min_copies: int | None = None, page: int = 1) -> dict:
    """Books that pass the filters, by id."""
    rows = world.db.execute(
        "SELECT b.book_id, b.title, a.name AS author, b.copies, b.genre FROM books b JOIN authors a USING (author_id)"
        " WHERE (:genre IS NULL OR b.genre = :genre) AND (:copies IS NULL OR b.copies >= :copies) ORDER BY b.book_id",
        {"genre": genre, "copies": min_copies},
    ).fetchall()
    return paged(rows, page, 5)
''',
)  # fmt: skip


@pytest.fixture(scope="session")
def environment():
    return toy_environment()


@pytest.fixture(scope="session")
def catalogue(environment):
    return Catalogue(environment)


@pytest.fixture(scope="session")
def candidates(environment):
    return synthesise(environment, count=40, seed=1)


@pytest.fixture(scope="session")
def library(environment):
    """The toy world with two hundred more books and a list of them in pages."""
    chance = random.Random(7)
    db = sqlite3.connect(":memory:")
    db.deserialize(environment.files["data.sqlite"])
    for number in range(100, 300):
        author, genre = chance.choice(AUTHORS)[0], chance.choice(["novel", "novel", "essay", "poetry"])
        row = (f"B{number}", f"Volume {number}", author, genre, chance.randint(1900, 2020), chance.randint(0, 400))
        db.execute("INSERT INTO books VALUES (?, ?, ?, ?, ?, ?)", row)
    db.commit()
    grown = {"genre": 3, "copies": 150, "year": 90, "title": 206, "book_id": 206}
    tables = tuple(
        replace(t, rows=206, columns=tuple(replace(c, distinct=grown.get(c.name, c.distinct)) for c in t.columns))
        if t.name == "books"
        else t
        for t in environment.database.tables
    )
    return replace(
        environment,
        files={**environment.files, "data.sqlite": db.serialize()},
        database=replace(environment.database, tables=tables),
        tools=(*environment.tools, _LIST_BOOKS),
        tool_versions=(*environment.tool_versions, "toy/list_books@0"),
    )
