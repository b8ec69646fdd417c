import sqlite3
from dataclasses import replace

from agent_world.tasks.facts import Facts
from tests.toy import toy_environment, toy_files


def facts_with(*statements: str) -> Facts:
    db = sqlite3.connect(":memory:")
    db.deserialize(toy_files()["data.sqlite"])
    for statement in statements:
        db.execute(statement)
    db.commit()
    return Facts(toy_environment().database, {"data.sqlite": db.serialize()})


def name_of(facts: Facts, table: str, key: str, value: str):
    row = facts.row(table, key, value)
    assert row is not None
    return facts.name(table, row)


def test_a_label_that_is_unique_stands_alone():
    name = name_of(facts_with(), "books", "book_id", "B3")
    assert name is not None
    assert (name.text, name.typed) == ("Winter Maps", False)


def test_a_label_that_two_rows_share_up_to_case_and_accents_names_neither():
    facts = facts_with("UPDATE books SET title = 'wínter MAPS' WHERE book_id = 'B5'")
    assert name_of(facts, "books", "book_id", "B3") is None
    assert name_of(facts, "books", "book_id", "B5") is None


def test_a_label_that_another_table_has_as_well_needs_its_noun():
    facts = facts_with("UPDATE members SET name = 'Winter Maps' WHERE member_id = 'M1'")
    name = name_of(facts, "books", "book_id", "B3")
    assert name is not None
    assert name.typed


def test_a_label_that_breaks_a_quotation_is_not_used():
    facts = facts_with("UPDATE books SET title = 'The \"Quiet\" Harbour' WHERE book_id = 'B1'")
    assert name_of(facts, "books", "book_id", "B1") is None


def test_the_mode_of_a_column_is_its_most_frequent_value():
    facts = facts_with()
    assert facts.is_mode("books", "genre", "novel")
    assert not facts.is_mode("books", "genre", "poetry")
    assert facts.share("books", "genre", "novel") == 0.5


def test_a_column_without_repetition_has_no_mode():
    assert not facts_with().is_mode("books", "title", "Winter Maps")


def test_an_environment_without_changes_reads_the_same_twice():
    environment = replace(toy_environment())
    first, second = (Facts(environment.database, environment.files).rows("books") for _ in range(2))
    assert first == second
