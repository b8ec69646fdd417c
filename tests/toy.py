"""A small hand-made library world for unit tests: four tables, six tools (two of them writing), one document."""

from __future__ import annotations

import sqlite3

from agent_world.environments.model import (
    Call,
    Column,
    Database,
    Document,
    Environment,
    ForeignKey,
    Meaning,
    Source,
    Table,
    Tool,
)
from agent_world.identity import Digest, VersionId, sha256
from agent_world.tasks.model import Criterion, Knobs, Task

SOURCE = Source(package="toy", version="1", file="toy.csv", sha256=sha256("toy"), licence="CC0-1.0")

AUTHORS = [("A1", "Ana Ruiz", "Spain"), ("A2", "Bo Lindqvist", "Sweden"), ("A3", "Zoë Ångström", "Sweden")]
BOOKS = [
    ("B1", "The Quiet Harbour", "A1", "novel", 1998, 3),
    ("B2", "Salt and Stone", "A1", "poetry", 2004, 0),
    ("B3", "Winter Maps", "A2", "novel", 2011, 1),
    ("B4", "100% Rain_fall", "A3", "essay", 2011, 2),
    ("B5", "Nordic Light", "A3", "novel", 2019, 5),
    ("B6", "Letters Home", "A2", "essay", None, 1),
]
MEMBERS = [("M1", "Iris Novak"), ("M2", "Tom Okafor"), ("M3", "Lea Brandt")]

RULES_DOCUMENT = "loan_days: 21\nmax_open_loans: 2\n"


def _column(name: str, type_: str, role: str, words: str, distinct: int, *, nullable: bool = False) -> Column:
    return Column(name=name, type=type_, role=role, words=words, original=name, nullable=nullable, distinct=distinct)


TABLES = (
    Table(
        name="authors",
        singular="author",
        plural="authors",
        primary_key=("author_id",),
        label="name",
        rows=3,
        source=SOURCE,
        columns=(
            _column("author_id", "text", "identifier", "author id", 3),
            _column("name", "text", "label", "name", 3),
            _column("country", "text", "category", "country", 2),
        ),
    ),
    Table(
        name="books",
        singular="book",
        plural="books",
        primary_key=("book_id",),
        label="title",
        rows=6,
        source=SOURCE,
        columns=(
            _column("book_id", "text", "identifier", "book id", 6),
            _column("title", "text", "label", "title", 6),
            _column("author_id", "text", "reference", "author", 3),
            _column("genre", "text", "category", "genre", 3),
            _column("year", "integer", "year", "year", 4, nullable=True),
            _column("copies", "integer", "measure", "copies", 5),
        ),
        foreign_keys=(
            ForeignKey(
                column="author_id", parent="authors", parent_column="author_id", integrity=1.0, origin="declared"
            ),
        ),
    ),
    Table(
        name="members",
        singular="member",
        plural="members",
        primary_key=("member_id",),
        label="name",
        rows=3,
        source=SOURCE,
        columns=(
            _column("member_id", "text", "identifier", "member id", 3),
            _column("name", "text", "label", "name", 3),
        ),
    ),
    Table(
        name="loans",
        singular="loan",
        plural="loans",
        primary_key=("loan_id",),
        rows=0,
        workflow="loan",
        columns=(
            _column("loan_id", "text", "identifier", "loan id", 0),
            _column("book_id", "text", "reference", "book", 0),
            _column("member_id", "text", "reference", "member", 0),
            _column("status", "text", "category", "status", 0),
        ),
        foreign_keys=(
            ForeignKey(column="book_id", parent="books", parent_column="book_id", integrity=1.0, origin="declared"),
            ForeignKey(
                column="member_id", parent="members", parent_column="member_id", integrity=1.0, origin="declared"
            ),
        ),
    ),
)


def _string(description: str) -> dict:
    return {"type": "string", "description": description}


def _object(properties: dict, required: list[str] | None = None) -> dict:
    return {
        "type": "object",
        "properties": properties,
        "required": required if required is not None else list(properties),
        "additionalProperties": False,
    }


_BOOK_FIELDS = {
    "book_id": _string("id of the book"),
    "title": _string("title of the book"),
    "author": _string("name of the author"),
    "genre": _string("genre of the book"),
    "year": {"type": ["integer", "null"], "description": "year of publication"},
    "copies": {"type": "integer", "description": "copies the library owns"},
}
_LOAN_FIELDS = {"loan_id": _string("id of the loan"), "status": _string("out or returned")}

TOOLS = (
    Tool(
        tool_id="toy/search_books",
        name="search_books",
        writes=False,
        pattern="search",
        tables=("books",),
        description="Find books whose title contains the given words. Returns book id and title of each hit.",
        input_schema=_object({"title": _string("part of the title")}),
        output_schema=_object(
            {
                "items": {
                    "type": "array",
                    "items": _object({"book_id": _string("id of the book"), "title": _string("title of the book")}),
                },
                "total": {"type": "integer"},
            }
        ),
        inputs={"title": Meaning(kind="label", table="books", column="title")},
        outputs={
            "items[].book_id": Meaning(kind="key", table="books", column="book_id"),
            "items[].title": Meaning(kind="label", table="books", column="title"),
            "total": Meaning(kind="count", table="books"),
        },
        source='''from toolkit import escape_like


def search_books(world, *, title: str) -> dict:
    """Books whose title contains `title`, whatever its case or accents."""
    rows = world.db.execute(
        "SELECT book_id, title FROM books WHERE fold(title) LIKE '%' || fold(?) || '%' ESCAPE '\\\\' ORDER BY book_id",
        (escape_like(title),),
    ).fetchall()
    return {"items": [dict(row) for row in rows], "total": len(rows)}
''',
    ),
    Tool(
        tool_id="toy/get_book",
        name="get_book",
        writes=False,
        pattern="get",
        tables=("books", "authors"),
        description="All facts about one book: title, author, genre, year of publication, copies owned. "
        "Refuses unknown ids.",
        input_schema=_object({"book_id": _string("id of the book")}),
        output_schema=_object(_BOOK_FIELDS),
        inputs={"book_id": Meaning(kind="key", table="books", column="book_id")},
        outputs={
            "book_id": Meaning(kind="key", table="books", column="book_id"),
            "title": Meaning(kind="label", table="books", column="title"),
            "author": Meaning(kind="label", table="authors", column="name"),
            "genre": Meaning(kind="filter", table="books", column="genre"),
            "year": Meaning(kind="value", table="books", column="year"),
            "copies": Meaning(kind="value", table="books", column="copies"),
        },
        source='''from toolkit import Refused


def get_book(world, *, book_id: str) -> dict:
    """One book by its id."""
    row = world.db.execute(
        "SELECT b.book_id, b.title, a.name AS author, b.genre, b.year, b.copies"
        " FROM books b JOIN authors a USING (author_id) WHERE b.book_id = ?",
        (book_id,),
    ).fetchone()
    if row is None:
        raise Refused("not_found", f"There is no book with id {book_id}.")
    return dict(row)
''',
    ),
    Tool(
        tool_id="toy/count_books_by_genre",
        name="count_books_by_genre",
        writes=False,
        pattern="summary",
        tables=("books",),
        description="How many books and how many copies the library owns in one genre: novel, poetry or essay.",
        input_schema=_object(
            {"genre": {"type": "string", "enum": ["essay", "novel", "poetry"], "description": "genre"}}
        ),
        output_schema=_object({"books": {"type": "integer"}, "copies": {"type": "integer"}}),
        inputs={"genre": Meaning(kind="filter", table="books", column="genre")},
        outputs={
            "books": Meaning(kind="count", table="books"),
            "copies": Meaning(kind="aggregate", table="books", column="copies"),
        },
        source='''def count_books_by_genre(world, *, genre: str) -> dict:
    """Number of titles and of copies in a genre."""
    row = world.db.execute(
        "SELECT count(*) AS books, coalesce(sum(copies), 0) AS copies FROM books WHERE genre = ?", (genre,)
    ).fetchone()
    return dict(row)
''',
    ),
    Tool(
        tool_id="toy/find_member",
        name="find_member",
        writes=False,
        pattern="search",
        tables=("members",),
        description="Find a member by name. Returns member id and name.",
        input_schema=_object({"name": _string("full name of the member")}),
        output_schema=_object({"member_id": _string("id of the member"), "name": _string("name of the member")}),
        inputs={"name": Meaning(kind="label", table="members", column="name")},
        outputs={
            "member_id": Meaning(kind="key", table="members", column="member_id"),
            "name": Meaning(kind="label", table="members", column="name"),
        },
        source='''from toolkit import Refused


def find_member(world, *, name: str) -> dict:
    """The member called `name`."""
    row = world.db.execute("SELECT member_id, name FROM members WHERE fold(name) = fold(?)", (name,)).fetchone()
    if row is None:
        raise Refused("not_found", f"No member is called {name}.")
    return dict(row)
''',
    ),
    Tool(
        tool_id="toy/lend_book",
        name="lend_book",
        writes=True,
        pattern="create",
        tables=("loans", "books", "members"),
        description="Lend a book to a member. The loan becomes OUT. Refuses when all copies are out. "
        "Returns loan id and status.",
        workflow="loan",
        input_schema=_object({"book_id": _string("id of the book"), "member_id": _string("id of the member")}),
        output_schema=_object(_LOAN_FIELDS),
        inputs={
            "book_id": Meaning(kind="key", table="books", column="book_id"),
            "member_id": Meaning(kind="key", table="members", column="member_id"),
        },
        outputs={
            "loan_id": Meaning(kind="minted", table="loans", column="loan_id"),
            "status": Meaning(kind="status", table="loans", column="status"),
        },
        source='''from toolkit import Refused


def lend_book(world, *, book_id: str, member_id: str) -> dict:
    """Open a loan while a copy is left."""
    book = world.db.execute("SELECT copies FROM books WHERE book_id = ?", (book_id,)).fetchone()
    if book is None:
        raise Refused("not_found", f"There is no book with id {book_id}.")
    if world.db.execute("SELECT 1 FROM members WHERE member_id = ?", (member_id,)).fetchone() is None:
        raise Refused("not_found", f"There is no member with id {member_id}.")
    out = world.db.execute("SELECT count(*) FROM loans WHERE book_id = ? AND status = 'out'", (book_id,)).fetchone()[0]
    if out >= book["copies"]:
        raise Refused("no_copies", "All copies are out; wait for one to be returned.")
    loan_id = world.new_id("LN")
    world.db.execute("INSERT INTO loans VALUES (?, ?, ?, 'out')", (loan_id, book_id, member_id))
    return {"loan_id": loan_id, "status": "out"}
''',
    ),
    Tool(
        tool_id="toy/return_book",
        name="return_book",
        writes=True,
        pattern="transition",
        tables=("loans",),
        description="Bring a lent book back. The loan becomes RETURNED. Refuses a loan that is not out.",
        workflow="loan",
        input_schema=_object({"loan_id": _string("id of the loan")}),
        output_schema=_object(_LOAN_FIELDS),
        inputs={"loan_id": Meaning(kind="key", table="loans", column="loan_id")},
        outputs={
            "loan_id": Meaning(kind="key", table="loans", column="loan_id"),
            "status": Meaning(kind="status", table="loans", column="status"),
        },
        source='''from toolkit import Refused


def return_book(world, *, loan_id: str) -> dict:
    """Close an open loan."""
    loan = world.db.execute("SELECT status FROM loans WHERE loan_id = ?", (loan_id,)).fetchone()
    if loan is None:
        raise Refused("not_found", f"There is no loan with id {loan_id}.")
    if loan["status"] != "out":
        raise Refused("not_out", "This loan was already returned.")
    world.db.execute("UPDATE loans SET status = 'returned' WHERE loan_id = ?", (loan_id,))
    return {"loan_id": loan_id, "status": "returned"}
''',
    ),
)


def toy_files() -> dict[str, bytes]:
    """The bytes of the toy snapshot."""
    db = sqlite3.connect(":memory:")
    db.executescript(
        """
        CREATE TABLE authors (author_id TEXT PRIMARY KEY, name TEXT NOT NULL, country TEXT NOT NULL);
        CREATE TABLE books (book_id TEXT PRIMARY KEY, title TEXT NOT NULL, author_id TEXT NOT NULL REFERENCES authors,
                            genre TEXT NOT NULL, year INTEGER, copies INTEGER NOT NULL);
        CREATE TABLE members (member_id TEXT PRIMARY KEY, name TEXT NOT NULL);
        CREATE TABLE loans (loan_id TEXT PRIMARY KEY, book_id TEXT NOT NULL REFERENCES books,
                            member_id TEXT NOT NULL REFERENCES members, status TEXT NOT NULL);
        """
    )
    db.executemany("INSERT INTO authors VALUES (?, ?, ?)", AUTHORS)
    db.executemany("INSERT INTO books VALUES (?, ?, ?, ?, ?, ?)", BOOKS)
    db.executemany("INSERT INTO members VALUES (?, ?)", MEMBERS)
    db.commit()
    return {"data.sqlite": db.serialize(), "documents/rules.yaml": RULES_DOCUMENT.encode()}


def toy_environment() -> Environment:
    """The accepted toy environment."""
    return Environment(
        environment_id="toy-library",
        version=VersionId("toy-library@0"),
        title="City library",
        description="Books, authors, members and loans of a small library.",
        theme=VersionId("toy-theme@0"),
        database=Database(
            database_id="toy-library",
            theme=VersionId("toy-theme@0"),
            round=0,
            tables=TABLES,
            documents=(Document(path="rules.yaml", format="yaml", title="Loan rules", source=SOURCE),),
            digest=Digest("0" * 64),
        ),
        database_version=VersionId("toy-database@0"),
        tools=TOOLS,
        tool_versions=tuple(VersionId(f"{tool.tool_id}@0") for tool in TOOLS),
        files=toy_files(),
    )


def toy_tasks() -> tuple[Task, Task]:
    """A read-only graph task of two calls and a state-changing one of three."""
    reading = Task(
        task_id="toy-read",
        kind="graph",
        environments=(VersionId("toy-library@0"),),
        seed=11,
        instruction="Who wrote Winter Maps, and how many copies of it does the library own?",
        answer_schema=_object(
            {"author": _string("name of the author"), "copies": {"type": "integer", "description": "copies owned"}}
        ),
        answer={"author": "Bo Lindqvist", "copies": 1},
        plan=(
            Call(tool="search_books", arguments={"title": "Winter Maps"}),
            Call(tool="get_book", arguments={"book_id": "B3"}),
        ),
        shape=("search_books", "get_book"),
        rubric=(
            Criterion(name="author", kind="field_equals", field="author", expected="Bo Lindqvist"),
            Criterion(name="copies", kind="field_equals", field="copies", expected=1),
            Criterion(name="state", kind="state_equals", expected={}),
        ),
        state_diff={},
        knobs=Knobs(
            calls=2,
            distinct_tools=2,
            weak_share=1.0,
            independent_share=0.0,
            branches=0,
            loops=0,
            tables=2,
            aggregates=0,
            writes=0,
            rewriting=0,
        ),
    )
    loan = {
        "loans": {
            "added": [{"loan_id": "$1", "book_id": "B5", "member_id": "M2", "status": "out"}],
            "removed": [],
            "changed": [],
        }
    }
    writing = Task(
        task_id="toy-write",
        kind="graph",
        environments=(VersionId("toy-library@0"),),
        seed=12,
        instruction="Lend Nordic Light to Tom Okafor and tell me the state of that loan.",
        answer_schema=_object({"status": _string("state of the loan")}),
        answer={"status": "out"},
        plan=(
            Call(tool="search_books", arguments={"title": "Nordic Light"}),
            Call(tool="find_member", arguments={"name": "Tom Okafor"}),
            Call(tool="lend_book", arguments={"book_id": "B5", "member_id": "M2"}),
        ),
        shape=("search_books", "find_member", "lend_book"),
        rubric=(
            Criterion(name="status", kind="field_equals", field="status", expected="out"),
            Criterion(name="state", kind="state_equals", expected=loan),
        ),
        state_diff=loan,
        knobs=Knobs(
            calls=3,
            distinct_tools=3,
            weak_share=1.0,
            independent_share=0.0,
            branches=0,
            loops=0,
            tables=3,
            aggregates=0,
            writes=1,
            rewriting=0,
        ),
    )
    return reading, writing
