"""The digest and the diff of states, compared with plain SQL over whole files."""

import sqlite3
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_world.environments.change_log import Changes
from agent_world.environments.errors import CorruptStateError
from agent_world.environments.model import Environment, ForeignKey, Table, Tool
from agent_world.environments.snapshot import snapshot_of
from agent_world.environments.state import State, diff, logical_digest, normalised
from tests.toy import TABLES, toy_environment, toy_files

SCHEMA = """
CREATE TABLE numbered (id INTEGER PRIMARY KEY, name TEXT, price REAL);
CREATE TABLE keyed (code TEXT PRIMARY KEY, note TEXT, amount NUMERIC);
CREATE TABLE loose (a, b);
CREATE TABLE packed (code TEXT PRIMARY KEY, n INTEGER) WITHOUT ROWID;
CREATE TABLE made (id INTEGER PRIMARY KEY, n INTEGER, twice INTEGER GENERATED ALWAYS AS (n * 2) STORED);
CREATE TABLE descending (id INTEGER PRIMARY KEY DESC, name TEXT);
CREATE INDEX by_note ON keyed (note);
CREATE VIEW cheap AS SELECT * FROM numbered WHERE price < 5;
"""

SQL_TOOL = '''def run_sql(world, *, statements: list, document: str = "") -> dict:
    """Anything at all, each statement a transaction's part."""
    for statement, values in statements:
        world.db.execute(statement, values)
    if document:
        world.write_document("notes.md", document)
    return {}
'''


def big_files(rows: int = 400) -> dict[str, bytes]:
    db = sqlite3.connect(":memory:")
    db.executescript(SCHEMA)
    db.executemany("INSERT INTO numbered VALUES (?, ?, ?)", [(i, f"name {i}", i / 2) for i in range(rows)])
    # Every seventh note is longer than a page.
    notes = [(f"K{i}", "long " * 2000 if i % 7 == 0 else f"note {i}", i) for i in range(rows)]
    db.executemany("INSERT INTO keyed VALUES (?, ?, ?)", notes)
    db.executemany("INSERT INTO loose VALUES (?, ?)", [(i % 5, "x") for i in range(rows)])
    db.executemany("INSERT INTO packed VALUES (?, ?)", [(f"P{i}", i) for i in range(rows)])
    db.executemany("INSERT INTO made (id, n) VALUES (?, ?)", [(i, i) for i in range(rows)])
    db.executemany("INSERT INTO descending VALUES (?, ?)", [(i, f"d {i}") for i in range(rows)])
    db.commit()
    return {"data.sqlite": db.serialize(), "documents/notes.md": b"before"}


def environment_over(files: dict[str, bytes]) -> Environment:
    empty = {"type": "object"}
    tool = Tool(
        tool_id="sql", name="run_sql", description="", input_schema=empty, output_schema=empty, writes=True,
        source=SQL_TOOL, pattern="sql", tables=(),
    )  # fmt: skip
    toy = toy_environment()
    return replace(toy, tools=(tool,), files=files, database=replace(toy.database, tables=()))


FILES = big_files()
BIG = environment_over(FILES)
keys = st.integers(0, 450)
texts = st.one_of(st.text("ab é", max_size=5), st.just("w" * 9000))
statements = st.one_of(
    st.tuples(st.just("INSERT OR REPLACE INTO numbered VALUES (?, ?, ?)"), st.tuples(keys, texts, keys)),
    st.tuples(st.just("UPDATE numbered SET price = price + 1 WHERE id BETWEEN ? AND ?"), st.tuples(keys, keys)),
    st.tuples(st.just("DELETE FROM numbered WHERE id < ?"), st.tuples(keys)),
    st.tuples(st.just("UPDATE keyed SET note = ? WHERE amount = ?"), st.tuples(texts, keys)),
    st.tuples(st.just("DELETE FROM keyed WHERE amount > ?"), st.tuples(keys)),
    st.tuples(st.just("INSERT INTO loose VALUES (?, ?)"), st.tuples(keys, texts)),
    st.tuples(st.just("DELETE FROM loose WHERE a = ?"), st.tuples(st.integers(0, 5))),
    st.tuples(st.just("UPDATE packed SET n = n + 1 WHERE n < ?"), st.tuples(keys)),
    st.tuples(st.just("UPDATE made SET n = n + 1 WHERE n < ?"), st.tuples(keys)),
    st.tuples(st.just("UPDATE descending SET name = ? WHERE id = ?"), st.tuples(texts, keys)),
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(calls=st.lists(st.lists(statements, max_size=4), max_size=4))
def test_what_follows_the_change_log_agrees_with_reading_everything(calls):
    with BIG.session(seed=1) as session:
        for call in calls:
            assert session.call("run_sql", {"statements": call}).status == "ok"
        state, quick = session.state(), session.diff()
        files = dict(state.files)
    state.check()
    whole = {path: bytes(bytearray(content)) for path, content in files.items()}
    assert state.digest == logical_digest(whole)
    assert quick == diff(State({**FILES, "documents/other.md": b""}), State({**whole, "documents/other.md": b""}), ())
    assert bool(quick) == (state.digest != logical_digest(FILES))


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), growth=st.integers(-2, 2))
def test_pages_of_nonsense_are_a_corrupt_state_or_another_one_and_nothing_else(data, growth):
    base, size = FILES["data.sqlite"], 4096
    number = data.draw(st.sampled_from([1, 2, 3]) | st.integers(1, len(base) // size))
    page = bytearray(base[(number - 1) * size : number * size])
    places = st.integers(0, 120) | st.integers(0, size - 1)
    for at, byte in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), min_size=1, max_size=8)):
        page[at] = byte
    state = State.of(snapshot_of(FILES), Changes({number: bytes(page)}, len(base) // size + growth, {}))
    with suppress(CorruptStateError):
        change = diff(State(FILES), state, ())
        assert bool(change) == (state.digest != logical_digest(FILES))
        state.check()
        whole = State({**state.files, "documents/other.md": b""})
        assert change == diff(State({**FILES, "documents/other.md": b""}), whole, ()), "SQLite reads the same"


@pytest.mark.parametrize(
    "statements",
    [
        # Only the last overflow page of one long note changes; the leaf that points to it does not.
        ["UPDATE keyed SET note = substr(note, 1, length(note) - 4) || 'tail' WHERE code = 'K7'"],
        # Leaves leave the tree without being written.
        ["PRAGMA secure_delete=OFF", "DELETE FROM numbered WHERE id > 100"],
        ["PRAGMA secure_delete=OFF", "DELETE FROM keyed WHERE amount BETWEEN 20 AND 350"],
        # A tree of one leaf grows inner pages, a tree with inner pages shrinks to one leaf.
        ["DELETE FROM numbered WHERE id > 3"],
        ["DELETE FROM loose", "INSERT INTO loose SELECT name, price FROM numbered"],
    ],
)
def test_changes_that_hide_in_the_pages_are_found(statements):
    with BIG.session() as session:
        assert session.call("run_sql", {"statements": [[text, []] for text in statements]}).status == "ok"
        state, quick = session.state(), session.diff()
    whole = dict(state.files)
    assert quick
    assert state.digest == logical_digest(whole) != logical_digest(FILES)
    assert quick == diff(State({**FILES, "documents/o.md": b""}), State({**whole, "documents/o.md": b""}), ())


def test_pages_of_a_transaction_that_was_rolled_back_are_no_change():
    """Such pages are in the log when a tool has SQLite put them there early, and stay there after a smaller commit."""
    early = ["ROLLBACK", "PRAGMA cache_spill=ON", "SAVEPOINT call", "PRAGMA cache_size=5"]
    spill = [[text, []] for text in early]
    spill += [["INSERT INTO keyed VALUES (?, ?, 0)", [f"N{number}", "x" * 5000]] for number in range(300)]
    with BIG.session() as session:
        session.call("run_sql", {"statements": [["DELETE FROM loose WHERE a = 2", []]]})
        before = session.digest()
        assert session.call("run_sql", {"statements": [*spill, ["SELECT nonsense", []]]}).status == "error"
        assert session._logs[0].size() > 1_000_000
        assert session.digest() == before
        session.call("run_sql", {"statements": [["DELETE FROM loose WHERE a = 1", []]]})
        assert set(session.diff().tables) == {"loose"}
        assert session.digest() == logical_digest(dict(session.state().files))


def test_row_order_does_not_change_a_digest():
    def built(order: int) -> dict[str, bytes]:
        db = sqlite3.connect(":memory:")
        db.execute("CREATE TABLE t (id TEXT PRIMARY KEY, n INTEGER)")
        db.executemany("INSERT INTO t VALUES (?, ?)", [(str(i), i) for i in range(50)][::order])
        db.commit()
        return {"data.sqlite": db.serialize()}

    assert built(1) != built(-1)
    assert logical_digest(built(1)) == logical_digest(built(-1))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE books SET copies = copies + 1 WHERE book_id = 'B1'",
        "UPDATE books SET copies = 3.0 WHERE book_id = 'B1'",  # stored as the integer it was
        "UPDATE books SET year = NULL WHERE book_id = 'B1'",
        "DELETE FROM members WHERE member_id = 'M1'",
        "INSERT INTO members VALUES ('M9', 'Iris Novak')",
        "CREATE TABLE more (x)",
        "ALTER TABLE members ADD COLUMN city TEXT",
        "CREATE VIEW novels AS SELECT * FROM books WHERE genre = 'novel'",
    ],
)
def test_a_digest_sees_every_logical_change_and_no_other(statement):
    db = sqlite3.connect(":memory:")
    db.deserialize(toy_files()["data.sqlite"])
    before = list(db.iterdump())
    db.execute(statement)
    db.commit()
    changed = before != list(db.iterdump())
    assert changed != ("3.0" in statement)
    files = {**toy_files(), "data.sqlite": db.serialize()}
    assert (logical_digest(files) != logical_digest(toy_files())) == changed


def test_a_digest_sees_documents():
    assert logical_digest({**toy_files(), "documents/rules.yaml": b"x"}) != logical_digest(toy_files())


def test_a_number_and_its_text_are_different_values():
    def built(value: object) -> dict[str, bytes]:
        db = sqlite3.connect(":memory:")
        db.execute("CREATE TABLE t (x)")
        db.execute("INSERT INTO t VALUES (?)", (value,))
        db.commit()
        return {"data.sqlite": db.serialize()}

    values = [1, 1.0, "1", b"1", None, "n", "i1"]
    assert len({logical_digest(built(value)) for value in values}) == len(values)


def test_a_diff_names_rows_by_their_key():
    with toy_environment().session(seed=3) as session:
        loan = session.call("lend_book", {"book_id": "B1", "member_id": "M1"}).value["loan_id"]
        session.call("return_book", {"loan_id": loan})
        difference = session.diff()
        normal = normalised(difference, session.environment.database)
    assert difference.tables["loans"].added == (
        {"loan_id": loan, "book_id": "B1", "member_id": "M1", "status": "returned"},
    )
    row = {"loan_id": "$1", "book_id": "B1", "member_id": "M1", "status": "returned"}
    assert normal == {"loans": {"added": [row], "removed": [], "changed": []}}


def test_two_orders_of_the_same_loans_are_one_normalised_diff():
    def lend(*pairs: tuple[str, str]) -> dict:
        with toy_environment().session(seed=len(pairs[0][0] + pairs[0][1])) as session:
            for book, member in pairs:
                assert session.call("lend_book", {"book_id": book, "member_id": member}).status == "ok"
            return normalised(session.diff(), session.environment.database)

    first, second, third = ("B1", "M1"), ("B5", "M2"), ("B5", "M3")
    assert lend(first, second, third) == lend(third, first, second)
    assert lend(first, second) != lend(first, third)


def test_references_to_a_new_row_are_normalised_with_it():
    tables = (
        Table(
            name="orders", singular="order", plural="orders", columns=(), primary_key=("order_id",), rows=0,
            workflow="order",
        ),
        Table(
            name="lines", singular="line", plural="lines", columns=(), primary_key=("line_id",), rows=0,
            workflow="order",
            foreign_keys=(
                ForeignKey(
                    column="order_id", parent="orders", parent_column="order_id", integrity=1.0, origin="declared"
                ),
            ),
        ),
    )  # fmt: skip
    database = replace(toy_environment().database, tables=tables)

    def ordered(order: int, *lines: tuple[int, str]) -> dict:
        def built(rows: bool) -> dict[str, bytes]:
            db = sqlite3.connect(":memory:")
            db.executescript(
                "CREATE TABLE orders (order_id INTEGER PRIMARY KEY, note TEXT);"
                "CREATE TABLE lines (line_id INTEGER PRIMARY KEY, order_id INTEGER, item TEXT, pieces INTEGER)"
            )
            if rows:
                db.execute("INSERT INTO orders VALUES (?, 'n')", (order,))
                db.executemany("INSERT INTO lines VALUES (?, ?, ?, ?)", [(n, order, item, order) for n, item in lines])
            db.commit()
            return {"data.sqlite": db.serialize()}

        return normalised(diff(State(built(False)), State(built(True)), tables), database)

    one, other = ordered(3, (1, "tea"), (2, "salt")), ordered(3, (9, "salt"), (8, "tea"))
    assert one == other
    assert {line["order_id"] for line in one["lines"]["added"]} == {one["orders"]["added"][0]["order_id"]}
    # A number that happens to equal an id is no reference.
    assert {line["pieces"] for line in one["lines"]["added"]} == {3}


def test_a_changed_row_shows_only_what_changed():
    database = replace(toy_environment().database, tables=TABLES)
    db = sqlite3.connect(":memory:")
    db.deserialize(toy_files()["data.sqlite"])
    db.execute("UPDATE books SET copies = 9 WHERE book_id = 'B2'")
    db.commit()
    after = State({**toy_files(), "data.sqlite": db.serialize(), "documents/new.md": b"hello"})
    normal = normalised(diff(State(toy_files()), after, TABLES), database)
    assert normal["books"] == {
        "added": [],
        "removed": [],
        "changed": [{"key": {"book_id": "B2"}, "before": {"copies": 0}, "after": {"copies": 9}}],
    }
    assert normal["documents/new.md"]["before"] is None
    assert set(normal) == {"books", "documents/new.md"}


def test_a_file_that_is_no_database_is_named_so():
    with pytest.raises(CorruptStateError, match="no SQLite database"):
        logical_digest({"data.sqlite": b"hello" * 1000})
