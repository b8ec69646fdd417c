import random
from dataclasses import replace

import pytest

from agent_world.environments.model import Meaning
from agent_world.tasks.phrases import Act, Ask, Condition, Fact, Group, Meet, Thing, plain, tell
from agent_world.tasks.requests import act
from agent_world.tasks.saying import Given
from agent_world.tasks.wording import instruction

MAPS = Thing(noun="book", name="Winter Maps")
LOAN = Thing(noun="loan", made=True)


def test_facts_of_one_thing_are_told_together():
    facts = [Fact(words="genre", about=MAPS), Fact(words="year", about=MAPS)]
    assert tell(facts) == 'the genre and the year of "Winter Maps"'
    assert tell(facts, known=MAPS) == "its genre and year"


def test_a_group_is_told_with_its_conditions():
    conditions = (
        Condition(words="genre", comparison="is", value="novel"),
        Condition(words="copies", comparison="at least", value=3),
        Condition(words="author", comparison="same", like=MAPS),
        Condition(words="deprecated", comparison="marked", value=False),
    )
    group = Group(plural="books", conditions=conditions)
    assert group.say() == (
        'books not marked deprecated with the same author as "Winter Maps"'
        ' whose genre is "novel" and copies are at least 3'
    )


def test_a_label_that_other_tables_have_comes_with_its_noun():
    assert Thing(noun="book", name="Rome", typed=True).say() == 'the book "Rome"'
    italy = Thing(noun="country", name="Italy")
    assert Thing(noun="city", relation=("capital", italy)).say() == 'the capital of "Italy"'


def test_a_code_of_several_words_is_quoted():
    assert Thing(noun="zone", code="Africa/Juba").say() == "zone Africa/Juba"
    assert Thing(noun="award", code="Won 2 Oscars. Nominated for 1 Oscar.").say() == (
        'award "Won 2 Oscars. Nominated for 1 Oscar."'
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("delay of departure", "departure delay"),
        ("mean price of a unit", "mean unit price"),
        ("number of albums", "number of albums"),
        ("number of tail", "tail number"),
        ("year", "year"),
    ],
)
def test_compounds_are_said_as_people_say_them(words, said):
    assert plain(words) == said


@pytest.mark.parametrize("level", [0, 1, 2])
def test_every_level_says_what_to_do_and_what_to_tell(level):
    facts = (Fact(words="status", about=LOAN), Fact(words="genre", about=MAPS))
    for seed in range(20):
        beats = [Meet(thing=MAPS), Act(phrase='lend "Winter Maps" to "Ana"', about=LOAN), Ask(facts=facts)]
        text = instruction(beats, level, random.Random(seed))
        assert 'end "Winter Maps" to "Ana"' in text
        assert "genre" in text
        assert "status" in text
        assert text[0].isupper()
        assert text[-1] in ".?"


def test_the_first_level_states_the_steps_in_order():
    beats = [Meet(thing=MAPS), Ask(facts=(Fact(words="genre", about=MAPS),))]
    text = instruction(beats, 0, random.Random(1))
    assert text.index("Winter Maps") < text.index("its genre")


def test_a_long_description_is_not_said_twice():
    top = Thing(noun="book", pick="book with the most copies")
    facts = (Fact(words="genre", about=top), Fact(words="number", about=Group(plural="loans", conditions=(
        Condition(words="book", comparison="is", like=top),))))  # fmt: skip
    text = instruction([Ask(facts=facts)], 1, random.Random(3))
    assert text.count("the book with the most copies") == 1
    assert "that book" in text


def test_a_writing_call_is_said_by_its_description_with_its_arguments(environment):
    given = {
        "book_id": Given(value="B3", meaning=Meaning(kind="key", table="books", column="book_id"), thing=MAPS),
        "member_id": Given(
            value="M1", meaning=Meaning(kind="key", table="members", column="member_id"),
            thing=Thing(noun="member", name="Iris Novak"),
        ),
    }  # fmt: skip
    assert act(environment.tool("lend_book"), given).phrase == 'lend "Winter Maps" to "Iris Novak"'


def test_a_correction_says_entry_and_field_whatever_their_order(environment):
    tool = replace(
        environment.tool("return_book"),
        pattern="document_update",
        description="Correct one field in the sheet of books.",
    )
    text = Meaning(kind="text")
    said = {"field": "pages", "isbn": "B3", "value": "120"}
    given = {name: Given(value=value, meaning=text) for name, value in said.items()}
    assert act(tool, given).phrase == 'correct the pages of the entry "B3" in the sheet of books to "120"'


def test_a_change_of_what_was_just_made_points_at_it(environment):
    given = {"loan_id": Given(value="LN1", meaning=Meaning(kind="key", table="loans", column="loan_id"), thing=LOAN)}
    assert act(environment.tool("return_book"), given).phrase == "return that loan"


def test_a_range_is_a_condition_that_can_be_compared_and_said():
    from agent_world.environments.model import Meaning
    from agent_world.tasks.catalogue import Catalogue
    from agent_world.tasks.saying import conditions
    from agent_world.tasks.walk import Given
    from tests.toy import toy_environment

    catalogue = Catalogue(toy_environment())
    copies = Meaning(kind="threshold", table="books", column="copies")
    given = {"min_copies": Given(value=1, meaning=copies), "max_copies": Given(value=3, meaning=copies)}
    (found,) = conditions(catalogue, catalogue.environment.tools[0], given)
    assert len({found, found}) == 1
    assert found.say() == "copies are from 1 to 3"
