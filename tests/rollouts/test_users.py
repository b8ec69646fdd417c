from dataclasses import asdict, replace

import pytest

from agent_world import world
from agent_world.rollouts.users import NOTHING_TO_ADD, ScriptedUser
from agent_world.tasks.model import Wish
from tests.rollouts.cases import ENVIRONMENT, READING
from tests.toy_lake import save_toy

DATE = Wish(kind="constraint", words=("date", "when", "which day"), text="It has to be before Friday.")
SEAT = Wish(kind="preference", words=("seat", "window or aisle"), text="I would like a window seat.")
NAME = Wish(kind="fact", words=("name",), text="My name is Lea Brandt.")


@pytest.fixture
def user() -> ScriptedUser:
    return ScriptedUser((DATE, SEAT, NAME))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Which date suits you?", DATE.text),
        ("WHEN shall I book it, and in whose name?", f"{DATE.text} {NAME.text}"),
        ("Window or aisle?", SEAT.text),
        ("On which   day?", DATE.text),
        ("Shall I update the whenever-list?", NOTHING_TO_ADD),
        ("Done.", NOTHING_TO_ADD),
        ("", NOTHING_TO_ADD),
    ],
)
def test_a_user_tells_what_he_is_asked_for_and_nothing_else(user, text, expected):
    assert user.reply(text) == expected


def test_what_was_told_is_told_again_as_such(user):
    user.reply("When?")
    assert user.told == {DATE}
    assert user.reply("Sorry, when?") == f"As I said: {DATE.text}"


def test_a_constraint_is_insisted_on_and_a_preference_is_given_up(user):
    assert user.reply("That date is not available.") == f"I must insist: {DATE.text}"
    assert (
        user.reply("I can\u2019t find such a seat.")
        == f"I would have liked it, but you may do without this: {SEAT.text}"
    )
    assert user.given_up == {SEAT}
    assert user.reply("So which seat?").startswith("I would have liked it")
    assert user.reply("There is no such name.") == NAME.text


def test_a_user_without_wishes_has_nothing_to_add():
    assert ScriptedUser().reply("What is your name, and when shall I come?") == NOTHING_TO_ADD


def test_what_the_user_of_a_task_wants_is_a_column_of_the_lake(tmp_path):
    lake = world.open(tmp_path / "lake", create=True)
    with lake.begin("tasks", derivation="d") as batch:
        environment, _ = save_toy(batch, ENVIRONMENT)
        plain = replace(READING, environments=(environment,))
        for task in (plain, replace(plain, task_id="asked", user=(DATE, NAME))):
            world.save_task(batch, task)
    wishes = {row["task_id"]: row["user"] for row in lake.read("tasks", columns=["task_id", "user"])}
    assert wishes["asked"] == [{**asdict(wish), "words": list(wish.words)} for wish in (DATE, NAME)]
    assert wishes[READING.task_id] is None
