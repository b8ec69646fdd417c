"""A database is refused for each thing that its payload says and its bytes do not."""

import sqlite3
from dataclasses import replace

import pytest

from agent_world.auditing.databases import database_faults
from agent_world.environments.model import SQLITE_FILE
from agent_world.environments.state import logical_digest
from tests.toy import toy_environment, toy_files

FILES = toy_files()
DATABASE = replace(toy_environment().database, digest=logical_digest(FILES))
BOOKS = DATABASE.table("books")


def changed(*statements, files=FILES):
    """The files after some SQL, foreign keys not enforced."""
    db = sqlite3.connect(":memory:")
    db.deserialize(files[SQLITE_FILE])
    for statement in statements:
        db.execute(statement)
    db.commit()
    return {**files, SQLITE_FILE: db.serialize()}


def with_books(**fields):
    tables = tuple(replace(table, **fields) if table == BOOKS else table for table in DATABASE.tables)
    return replace(DATABASE, tables=tables)


def test_a_sound_database_has_no_fault():
    assert database_faults(DATABASE, FILES) == []


def test_rows_in_another_order_are_the_same_database():
    again = changed("CREATE TABLE kept AS SELECT * FROM members ORDER BY member_id DESC", "DELETE FROM members",
                    "INSERT INTO members SELECT * FROM kept", "DROP TABLE kept")  # fmt: skip
    assert again != FILES
    assert database_faults(DATABASE, again) == []


@pytest.mark.parametrize("files", [
    changed("UPDATE books SET copies = 4 WHERE book_id = 'B1'"),
    {**FILES, "documents/rules.yaml": b"loan_days: 22\n"},
])  # fmt: skip
def test_other_content_has_another_digest(files):
    assert database_faults(DATABASE, files) == ["other_digest"]


def test_a_row_that_is_gone_is_missed():
    assert database_faults(DATABASE, changed("DELETE FROM members WHERE member_id = 'M3'")) == [
        "other_rows (members)", "other_digest",
    ]  # fmt: skip


def test_integrity_is_measured_again():
    orphan = changed("UPDATE books SET author_id = 'A9' WHERE book_id = 'B1'")
    faults = database_faults(replace(DATABASE, digest=logical_digest(orphan)), orphan)
    assert faults[0] == "other_integrity (books.author_id: 0.8333, not 1.0)"
    assert faults[1].startswith("failed_insert (")
    (key,) = BOOKS.foreign_keys
    overstated = with_books(foreign_keys=(replace(key, integrity=0.9),))
    assert database_faults(overstated, FILES) == ["other_integrity (books.author_id: 1.0, not 0.9)"]


def test_a_column_that_is_not_there_is_another_schema():
    assert database_faults(with_books(columns=BOOKS.columns[:-1]), FILES) == ["other_schema (books)"]


def test_bytes_that_are_no_database_are_unreadable():
    (fault,) = database_faults(DATABASE, {**FILES, SQLITE_FILE: b"nothing"})
    assert fault.startswith("unreadable (")
