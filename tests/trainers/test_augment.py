import random

from hypothesis import given
from hypothesis import strategies as st

from agent_world.rollouts.model import Step
from tests.models import little
from tests.trainers.jobs import LOANS, WRITING
from trainers.augment import Episode, names_in, substituted

LENDING = Episode(instruction=WRITING.instruction, steps=LOANS)
POOL = ["Oslo", "Grand Central", "X9", "Zoë Ångström"]


def replaced(seed=0, invented=0.5, episode=LENDING):
    return substituted(episode, POOL, random.Random(seed), invented=invented)


def test_names_are_what_the_policy_could_read_before_it_wrote_it():
    assert names_in(LENDING) == ["B5", "LN3171", "M2", "Nordic Light", "Tom Okafor"]


def test_categories_dates_and_what_the_policy_had_to_know_stay():
    episode = Episode(
        instruction="Which novel of 2011-05-01 is by Ana Ruiz?",
        steps=(
            (little.call("search", genre="novel", day="2011-05-01", sort="Newest", author="Ana Ruiz"), little.BOOK),
            (little.answer(title="Winter Maps", genre="novel"), None),
        ),
    )
    assert names_in(episode) == ["Ana Ruiz", "B3", "Bo Lindqvist", "Winter Maps"]


@given(st.integers(0, 2**32), st.floats(0, 1))
def test_the_episode_stays_consistent_under_its_new_names(seed, invented):
    episode = replaced(seed, invented)
    (search, hits), (find, member), (lend, _), (answer, _) = episode.steps
    assert search.arguments["title"] in episode.instruction
    assert find.arguments["name"] in episode.instruction
    assert lend.arguments == {"book_id": hits.value["items"][0]["book_id"], "member_id": member.value["member_id"]}
    assert hits.value["items"][0]["title"] == search.arguments["title"]
    assert answer.answer == {"status": "out"}


def test_invented_names_keep_their_shape():
    new = replaced(invented=1.0).steps[2][1].value["loan_id"]
    assert new != "LN3171"
    assert (new[:2].isupper(), new[2:].isdigit(), len(new)) == (True, True, 6)


def test_the_same_draw_gives_the_same_names_and_another_gives_others():
    assert replaced(1) == replaced(1)
    assert len({replaced(seed).instruction for seed in range(20)}) > 15


def test_a_name_inside_another_word_is_left():
    steps = (
        (little.call("find", name="Ana"), little.ok(name="Ana", town="Anatolia")),
        (little.answer(town="Anatolia"), None),
    )
    episode = replaced(3, 1.0, Episode(instruction="Where does Ana live?", steps=steps))
    assert episode.steps[1][0].answer["town"] == episode.steps[0][1].value["town"]
    assert len(episode.steps[0][1].value["town"]) == len("Anatolia")


def test_ids_recorded_for_the_old_names_are_dropped():
    from agent_world.rollouts.model import Tokens

    step = Step(kind="answer", answer={"a": "Nordic Light"}, tokens=Tokens(ids=(1,), logprobs=(0.0,)))
    assert replaced(episode=Episode(instruction="Nordic Light?", steps=((step, None),))).steps[0][0].tokens is None
