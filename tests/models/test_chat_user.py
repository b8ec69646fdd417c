import pytest

from agent_world.models.cassette import Cassette
from agent_world.models.chat_user import ChatUser, chat_users
from agent_world.models.client import ChatClient, Endpoint, EndpointError
from agent_world.rollouts.episode import Episode
from agent_world.tasks.model import Wish
from tests.rollouts.cases import ENVIRONMENT, READING

WISHES = (
    Wish(kind="constraint", words=("date",), text="before Friday"),
    Wish(kind="preference", words=("seat",), text="a window seat"),
)


class Recorded(ChatClient):
    """A client whose model says these things, one after the other, and keeps what it was asked."""

    def __init__(self, tape, *said: str) -> None:
        super().__init__(Endpoint(base_url="http://127.0.0.1:1/v1", model="user"), cassette=Cassette(tape, "record"))
        self.asked: list[dict] = []
        self._said = iter(said)

    def _send(self, body):
        self.asked.append(dict(body))
        return {"choices": [{"message": {"role": "assistant", "content": next(self._said)}}]}


def test_the_model_knows_the_wishes_and_hears_the_whole_conversation(tmp_path):
    client = Recorded(tmp_path / "tape.jsonl", " Before Friday. ", "Then any seat.")
    user = ChatUser(client, "Book me a trip.", WISHES, seed=3)
    assert user.reply("Which date?") == "Before Friday."
    assert user.reply("No window seat is left.") == "Then any seat."
    system, *said = client.asked[1]["messages"]
    assert "Book me a trip." in system["content"]
    assert "A must: before Friday\nA wish: a window seat" in system["content"]
    assert [(one["role"], one["content"]) for one in said] == [
        ("user", "Which date?"),
        ("assistant", "Before Friday."),
        ("user", "No window seat is left."),
    ]
    assert client.asked[0]["seed"] == 3


def test_a_conversation_is_replayed_from_its_cassette(tmp_path):
    tape = tmp_path / "tape.jsonl"
    first = ChatUser(Recorded(tape, "Yes.", "No."), "Do it.")
    heard = [first.reply("Shall I?"), first.reply("Sure?")]
    again = ChatUser(
        ChatClient(Endpoint(base_url="http://elsewhere/v1", model="user"), cassette=Cassette(tape)), "Do it."
    )
    assert [again.reply("Shall I?"), again.reply("Sure?")] == heard


def test_a_model_that_says_nothing_is_a_fault_of_the_harness(tmp_path):
    user = chat_users(Recorded(tmp_path / "tape.jsonl", "  "))(READING, 0)
    with Episode(READING, ENVIRONMENT, seed=0, user=user) as episode:
        episode.reply("Are you there?")
    assert episode.outcome.status == "infra_error"
    assert EndpointError.__name__ in episode.outcome.detail
    with pytest.raises(EndpointError):
        ChatUser(Recorded(tmp_path / "other.jsonl", ""), "x").reply("y")
