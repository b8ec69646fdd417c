from dataclasses import replace

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_world.models.renderer import transcript
from agent_world.rollouts.model import Step, Tokens
from tests.models import little
from tests.rollouts.cases import field, schema
from tests.trainers import jobs
from trainers.data import first_turn
from trainers.demonstration import Demonstration
from trainers.splicing import spliced

READ = Demonstration(first_turn(jobs.bound(jobs.READING)), little.EPISODE)
WRITE = Demonstration(first_turn(jobs.bound(jobs.WRITING)), jobs.LOANS)


def asking(instruction="Say it.", **answer):
    """A demonstration without calls that gives this answer."""
    turn = replace(
        READ.turn, instruction=instruction, answer_schema=schema(**{name: field("integer") for name in answer})
    )
    return Demonstration(turn, ((little.answer(**answer), None),))


@pytest.mark.parametrize(("one", "other"), [(READ, WRITE), (READ, READ)])
def test_one_after_the_other_the_steps_are_those_of_both_and_the_answer_has_the_fields_of_both(one, other):
    both = spliced(one, other)
    assert both.turn.instruction == f"{one.turn.instruction} {other.turn.instruction}"
    assert both.steps[:-1] == (*one.steps[:-1], *other.steps[:-1])
    answer, nothing = both.steps[-1]
    assert (answer.kind, nothing) == ("answer", None)
    assert list(answer.answer.values()) == [*one.steps[-1][0].answer.values(), *other.steps[-1][0].answer.values()]
    jsonschema.validate(answer.answer, both.turn.answer_schema)
    assert set(both.turn.answer_schema["required"]) == set(both.turn.answer_schema["properties"]) == set(answer.answer)
    assert (both.turn.environment, both.turn.tools) == (one.turn.environment, one.turn.tools)


def test_the_one_that_writes_comes_last_since_the_other_has_seen_the_untouched_database():
    assert spliced(WRITE, READ) == spliced(READ, WRITE)
    assert spliced(WRITE, READ).steps[: len(READ.steps) - 1] == READ.steps[:-1]


def test_the_joined_ones_stay_as_they_were():
    before = repr((READ, WRITE))
    spliced(READ, WRITE)
    assert repr((READ, WRITE)) == before


@pytest.mark.parametrize(
    ("one", "other", "joined"),
    [
        ({"copies": 1}, {"copies": 2}, {"copies": 1, "copies_2": 2}),
        ({"copies": 1, "copies_2": 2}, {"copies": 3}, {"copies": 1, "copies_2": 2, "copies_3": 3}),
        (
            {"copies": 1, "copies_2": 2},
            {"copies": 3, "copies_2": 4},
            {"copies": 1, "copies_2": 2, "copies_3": 3, "copies_4": 4},
        ),
        ({"copies": 1}, {"copies": 2, "copies_2": 3}, {"copies": 1, "copies_2": 2, "copies_3": 3}),
        ({"iso_3166": 1}, {"iso_3166": 2}, {"iso_3166": 1, "iso_3166_2": 2}),
        ({"copies": 1}, {"year": 2}, {"copies": 1, "year": 2}),
    ],
)
def test_fields_of_one_name_are_numbered_in_the_order_they_are_asked_for(one, other, joined):
    both = spliced(asking(**one), asking(**other))
    assert both.steps[-1][0].answer == joined
    assert set(both.turn.answer_schema["properties"]) == set(joined)


NAMES = st.sampled_from(["a", "a_2", "a_3", "a_2_2", "b", "b_10"])
ANSWERS = st.dictionaries(NAMES, st.integers(), max_size=5)


@given(st.lists(ANSWERS, min_size=2, max_size=4))
def test_however_often_it_is_joined_no_value_is_lost_and_none_overwritten(answers):
    both = asking(**answers[0])
    for answer in answers[1:]:
        both = spliced(both, asking(**answer))
    given_values = [value for answer in answers for value in answer.values()]
    assert list(both.steps[-1][0].answer.values()) == given_values
    jsonschema.validate(both.steps[-1][0].answer, both.turn.answer_schema)


def test_two_that_write_are_never_joined():
    assert spliced(WRITE, WRITE) is None
    twice = spliced(READ, WRITE)
    assert spliced(twice, WRITE) is None
    assert spliced(WRITE, twice) is None
    assert spliced(twice, READ) is not None


@pytest.mark.parametrize("answer", [None, "B3", ["B3"], 3])
def test_an_answer_without_fields_is_joined_with_nothing(answer):
    bare = Demonstration(READ.turn, (*little.EPISODE[:-1], (Step(kind="answer", answer=answer), None)))
    assert spliced(bare, READ) is None
    assert spliced(READ, bare) is None


def test_a_joined_demonstration_is_one_episode_with_one_set_of_references():
    """The title that the second reads is another mark than in an episode of its own, and the ids say so."""
    renderer, both = little.renderer(), spliced(WRITE, READ)
    script = renderer.begin(both.turn)
    ids, written, _, _ = transcript(renderer, script, both.steps)
    again = renderer.begin(both.turn)
    for step, observation in both.steps:
        assert again.parse(again.step(step)) == step
        if observation is not None:
            again.observation(step, observation)
    assert sum(written) == sum(len(script.step(step)) for step, _ in both.steps)
    assert ids[-1] == renderer.id["<e>"]


def test_ids_that_a_policy_wrote_do_not_go_into_the_joined_context():
    tokens = Tokens(ids=(300, 301), logprobs=(-1.0, -1.0))
    own = Demonstration(READ.turn, tuple((replace(step, tokens=tokens), seen) for step, seen in READ.steps))
    for both in (spliced(own, WRITE), spliced(WRITE, own)):
        assert all(step.tokens is None for step, _ in both.steps)
