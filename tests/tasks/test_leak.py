from dataclasses import replace

import pytest

from agent_world.tasks.leak import leaks
from tests.rollouts.cases import ENVIRONMENT, PROGRAM, READING, WRITING


def found(text, environment=ENVIRONMENT):
    return [(leak.kind, leak.identifier) for leak in leaks(replace(READING, instruction=text), environment)]


@pytest.mark.parametrize("task", [READING, WRITING, PROGRAM], ids=lambda task: task.task_id)
def test_the_toy_tasks_leak_nothing(task):
    assert leaks(task, ENVIRONMENT) == []


@pytest.mark.parametrize(
    "text",
    [
        "Use search_books for it.",
        "Use Search_Books for it.",
        "First searchBooks, then tell me.",
        "Please count books by genre for novels.",
        "Please count_books_by_genre.",
    ],
)
def test_the_name_of_a_tool_leaks(text):
    assert [kind for kind, _ in found(text)] == ["tool"]


@pytest.mark.parametrize(
    "text", ["What is its book_id?", "What is its bookId?", "What is its BOOK_ID?", "Give the member_id."]
)
def test_an_identifier_of_two_words_leaks(text):
    assert [kind for kind, _ in found(text)] == ["identifier"]


@pytest.mark.parametrize(
    "text",
    [
        "Which author wrote it, and in which year, genre and country?",
        "Search books about the sea and lend one of them.",
        "Give the id of the book.",
        'Who wrote "100% Rain_fall"?',
    ],
)
def test_plain_words_do_not_leak(text):
    assert found(text) == []


def _with_column(name):
    table = ENVIRONMENT.database.tables[0]
    columns = (*table.columns, replace(table.columns[1], name=name, original=name))
    database = replace(ENVIRONMENT.database, tables=(replace(table, columns=columns), *ENVIRONMENT.database.tables[1:]))
    return replace(ENVIRONMENT, database=database)


def test_two_words_written_as_one_are_two_words():
    assert found("What is its tailnum?", _with_column("tailnum")) == [("identifier", "tailnum")]
    assert found("What is its tailnum?", _with_column("tail_num")) == [("identifier", "tail_num")]


@pytest.mark.parametrize("name", ["invoice", "emojis", "polarizability"])
def test_a_word_that_the_word_list_does_not_know_is_still_one_word(name):
    assert found(f"What is its {name}?", _with_column(name)) == []


def test_a_dictionary_word_is_one_word_however_the_schema_splits_it():
    assert found("In which timezone?", _with_column("time_zone")) == []


def test_descriptions_of_the_answer_are_public_too():
    properties = {"author": {"type": "string", "description": "taken from author_id"}, "copies": {"type": "integer"}}
    task = replace(READING, answer_schema={**READING.answer_schema, "properties": properties})
    [leak] = leaks(task, ENVIRONMENT)
    assert (leak.where, leak.identifier) == ("answer_schema.author", "author_id")


def test_a_field_of_the_answer_may_not_be_called_like_a_tool():
    properties = {"lend_book": {"type": "string"}, "copies": {"type": "integer"}}
    task = replace(READING, answer_schema={**READING.answer_schema, "properties": properties})
    [leak] = leaks(task, ENVIRONMENT)
    assert (leak.where, leak.kind) == ("answer_schema.lend_book", "tool")
