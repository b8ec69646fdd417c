"""Noun phrases of any wording become terms; what is no such phrase does not."""

import pytest

from agent_world.solver.discourse import Discourse
from agent_world.solver.grammar import Grammar
from agent_world.solver.index import toolbox_of
from agent_world.solver.kinds import kinds_of
from agent_world.solver.mentions import tokenise
from agent_world.solver.terms import (
    Attribute,
    Back,
    Best,
    Condition,
    Count,
    Figure,
    Group,
    Made,
    Named,
    Several,
    Which,
)
from tests.solver.desk import flight_desk

FLIGHT, AIRPORT = ("flight",), ("airport",)


@pytest.fixture(scope="module")
def box():
    return toolbox_of(tuple(tool.public() for tool in flight_desk().tools))


def parsed(text, box):
    found = Grammar(kinds_of(box), tokenise(text)).phrase(0)
    return None if found is None else found.term


def cheap(**more):
    return Group(noun=FLIGHT, conditions=(Condition(words=("price",), operator="le", value=80),), **more)


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("flight F104", Named(noun=FLIGHT, text="F104", value="F104")),
        ("the flights whose price is at most 80", cheap()),
        ("the number of flights whose price is no more than 80", Count(of=cheap())),
        ("how many flights there are", Count(of=Back(noun=FLIGHT, plural=True))),
        ("the mean price of the flights whose price is up to 80", Figure(summary="mean", words=("price",), of=cheap())),
        (
            "the flight with the fewest seats among the flights whose price is at most 80",
            Best(of=cheap(), words=("seats",), more=False),
        ),
        (
            "the city of the airport of the flight F104",
            Attribute(
                words=("city",), of=Attribute(words=("airport",), of=Named(noun=FLIGHT, text="F104", value="F104"))
            ),
        ),
        (
            "the airports with the same country as that airport",
            Group(noun=AIRPORT, conditions=(Condition(words=("country",), operator="like", value=Back(noun=AIRPORT)),)),
        ),
        (
            "the airports not marked international",
            Group(noun=AIRPORT, conditions=(Condition(words=("international",), operator="marked", negated=True),)),
        ),
        ("the status of the new booking", Attribute(words=("status",), of=Made(noun=("book",)))),
        ("the seats left after that", Attribute(words=("seats", "left"), of=Made())),
        ("which flight it was", Which(of=Back(noun=FLIGHT))),
        (
            'the words of the section "Bags" of the page of rules',
            Attribute(
                words=("words",),
                of=Named(noun=("sect",), text="Bags", value="Bags", within=("page", "of", "rules")),
            ),
        ),
    ],
)
def test_a_phrase_is_a_term(text, term, box):
    assert parsed(text, box) == term


@pytest.mark.parametrize("text", ["a seat on the plane", "please book it", "an issue of the flight F104"])
def test_what_is_no_fact_is_no_term(text, box):
    assert not isinstance(parsed(text, box), Attribute)


def test_an_adjective_before_a_noun_keeps_it_from_being_read_alone(box):
    tokens = tokenise("Put me on the evening flight with the lowest price.")
    assert Discourse.of(tokens, kinds_of(box)).picks == []


def test_what_was_named_is_what_later_words_are_about(box):
    text = "Compare flights F104, F105 and F106 and cancel the one with the higher price."
    named = Several(parts=tuple(Named(noun=FLIGHT, text=code, value=code) for code in ("F104", "F105", "F106")))
    discourse = Discourse.of(tokenise(text), kinds_of(box))
    assert discourse.picks == [Best(of=named, words=("price",), more=True, compared=True)]
    assert discourse.resolved(parsed("which flight it is", box)) == Which(of=discourse.picks[0])
    assert discourse.resolved(parsed("the flights whose price is at most 80", box)) == cheap(of=named)


def test_them_is_the_set_before_anything_was_sorted_out(box):
    text = (
        "How many flights whose price is at most 80 are there, and how many of them have seats? Of those, tell me more."
    )
    discourse = Discourse.of(tokenise(text), kinds_of(box))
    assert discourse.resolved(parsed("the highest price among them", box)) == Figure(
        summary="highest", words=("price",), of=cheap()
    )


def test_a_kind_in_the_plural_at_the_beginning_is_no_part_of_a_name(box):
    tokens = tokenise("Airports Oslo and Bergen: which is higher?", words=box.weights)
    named = Several(parts=tuple(Named(noun=AIRPORT, text=name, value=name) for name in ("Oslo", "Bergen")))
    assert Discourse.of(tokens, kinds_of(box)).topics == [named]


def test_each_of_them_are_those_that_were_spoken_of(box):
    discourse = Discourse.of(tokenise("Find the flights whose price is at most 80."), kinds_of(box))
    assert discourse.resolved(parsed("each of them", box)) == cheap()
