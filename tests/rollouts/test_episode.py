import gc
import math
import tracemalloc
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace

import pytest

from agent_world.environments.model import Database, Environment, Tool
from agent_world.environments.state import State
from agent_world.identity import VersionId
from agent_world.rollouts.cutting import CUT
from agent_world.rollouts.episode import Episode, EpisodeOverError, PinMismatchError, judge_together
from agent_world.rollouts.model import Step
from agent_world.rollouts.rewards import UnjudgeableTaskError
from agent_world.tasks.model import Task, Wish
from tests.rollouts.cases import ENVIRONMENT, PROGRAM, READING, WRITING


def opened(task=READING, environment=ENVIRONMENT, **more):
    return Episode(task, environment, seed=7, **more)


def play_gold(episode, task):
    for call in task.plan:
        assert episode.call(call.tool, call.arguments).status == "ok"
    return episode.answer(task.answer)


@pytest.mark.parametrize("task", [READING, WRITING, PROGRAM], ids=lambda task: task.task_id)
def test_gold_passes(task):
    with opened(task) as episode:
        assert play_gold(episode, task).status == "pass"
        assert episode.final_digest


def test_another_version_of_the_environment_is_refused():
    newer = replace(ENVIRONMENT, version=VersionId("toy-library@1"))
    with pytest.raises(PinMismatchError, match="toy-read pins toy-library@0, not toy-library@1"):
        opened(environment=newer)


def test_a_task_that_nothing_can_fail_is_refused():
    with pytest.raises(UnjudgeableTaskError):
        opened(replace(READING, rubric=()))


def test_a_policy_gets_the_turn_and_nothing_else():
    with opened() as episode:
        episode.call("search_books", {"title": "Winter Maps"})
        turn = episode.turn()
    assert (turn.instruction, turn.environment, turn.seed) == (READING.instruction, "toy-library", 7)
    assert [tool.name for tool in turn.tools] == [tool.name for tool in ENVIRONMENT.tools]
    assert not any(hasattr(tool, "source") for tool in turn.tools)
    [(step, observation)] = turn.history
    assert step.tool == "search_books"
    assert observation.value == {"items": [{"book_id": "B3", "title": "Winter Maps"}], "total": 1}


PUBLIC = {
    *("instruction", "tools", "answer_schema", "call", "reply", "answer", "turn", "take"),  # a policy's
    *("steps", "uncut", "over", "outcome", "final_digest", "seed"),  # what came of it
    *("name", "give_up", "blame", "stop", "close"),  # for whoever runs it
}


@pytest.mark.parametrize("task", [READING, WRITING, PROGRAM], ids=lambda task: task.task_id)
def test_nothing_public_of_an_episode_leads_to_the_gold_answer(task):
    with opened(task) as episode:
        public = {name for name in dir(episode) if not name.startswith("_")}
        seen = [getattr(episode, name) for name in public] + [episode.turn()]
        reached = list(_reached(seen))
        episode.answer({})
        reached += _reached([getattr(episode, name) for name in public])
    assert public == PUBLIC
    secrets = (Task, Environment, Tool, Database, State)
    assert not [value for value in reached if isinstance(value, secrets)]
    gold = [task.answer, task.plan, task.rubric, task.state_diff, task.solution, task.verifier]
    assert not [value for value in gold if value and value in reached]


def _reached(values):
    """Everything that the values hold, without calling any of them."""
    for value in values:
        yield value
        if is_dataclass(value):
            yield from _reached(getattr(value, field.name) for field in fields(value))
        elif isinstance(value, Mapping):
            yield from _reached(value.values())
        elif isinstance(value, (list, tuple)):
            yield from _reached(value)


def test_a_tool_that_says_no_or_is_unknown_or_gets_nonsense_is_an_observation():
    with opened() as episode:
        assert episode.call("get_book", {"book_id": "B99"}).status == "refused"
        assert episode.call("burn_book", {}).status == "invalid"
        assert episode.call("get_book", {"book_id": 3}).status == "invalid"
        assert episode.outcome is None


def test_a_reply_goes_to_the_user_and_leaves_the_environment_alone():
    class Echo:
        def reply(self, text):
            return f"you said {text}"

    with opened(user=Echo()) as episode:
        observation = episode.reply("which one?")
        assert observation.value == {"user": "you said which one?"}
        episode.answer(READING.answer)
    assert episode.final_digest == State(ENVIRONMENT.files).digest


WISHES = (
    Wish(kind="constraint", words=("which book", "title"), text="The one about winter."),
    Wish(kind="preference", words=("copies",), text="Count those that are lent as well."),
)


def test_the_user_of_a_task_tells_what_it_holds_back_and_the_transcript_has_both_sides():
    task = replace(READING, user=WISHES)
    with opened(task) as episode:
        episode.reply("Which book do you mean?")
        episode.reply("Which title, please?")
        turn = episode.turn()
        assert play_gold(episode, task).status == "pass"
    assert [(step.text, observation.value["user"]) for step, observation in turn.history] == [
        ("Which book do you mean?", "The one about winter."),
        ("Which title, please?", "As I said: The one about winter."),
    ]
    assert not any(wish.text in task.instruction for wish in WISHES)
    with opened(task) as other:
        assert other.reply("Which title?").value == {"user": "The one about winter."}, "each episode has its own user"


def test_a_state_that_moves_while_the_user_speaks_is_no_reward():
    class Meddling:
        def reply(self, text):
            return str(episode._session.call("lend_book", {"book_id": "B1", "member_id": "M1"}).value)

    with opened(user=Meddling()) as episode:
        assert episode.reply("Hello?").value["error"]["code"] == "harness"
    assert episode.outcome.status == "infra_error"
    assert "moved during a reply" in episode.outcome.detail


LONG = """def get_book(world, *, book_id):
    return {"book_id": book_id, "pages": [f"page {number} " + "x" * 90 for number in range(1000)]}
"""


def test_a_long_observation_is_cut_for_the_policy_and_kept_whole():
    with opened(environment=_with_tool(LONG)) as episode:
        seen = episode.call("get_book", {"book_id": "B3"})
        [(_, recorded)] = episode.steps
        [(_, shown)] = episode.turn().history
        assert seen == recorded == shown
        count = len(seen.value["pages"])
        assert seen.value[CUT] == [f"pages: {count} of 1000 items"]
        assert (seen.value["book_id"], count < 1000) == ("B3", True)
        assert len(episode.uncut[0]["pages"]) == 1000
        episode.call("search_books", {"title": "Winter Maps"})
        assert set(episode.uncut) == {0}


@pytest.mark.parametrize(
    "step",
    [
        Step(kind="malformed", text="hm"),
        Step(kind="dance", text="hm"),  # type: ignore[arg-type]
        Step(kind="tool"),
        Step(kind="tool", tool="get_book", arguments={"book_id": math.nan}),
        Step(kind="answer", answer={"copies": math.inf}),
        Step(kind="answer", answer={"author": "x" * 70_000}),
    ],
)
def test_what_is_no_step_is_recorded_as_malformed_and_the_episode_goes_on(step):
    with opened() as episode:
        observation = episode.take(step)
        assert observation.status == "invalid"
        assert observation.value["error"]["code"] == "malformed_step"
        assert episode.steps[-1][0].kind == "malformed"
        assert play_gold(episode, READING).status == "pass"


def test_nothing_can_be_done_after_the_end():
    with opened() as episode:
        episode.answer(READING.answer)
        with pytest.raises(EpisodeOverError, match="toy-read has ended"):
            episode.call("get_book", {"book_id": "B3"})
        with pytest.raises(EpisodeOverError):
            episode.answer(READING.answer)


def test_leaving_without_an_answer_fails():
    with opened() as episode:
        episode.call("get_book", {"book_id": "B3"})
    assert (episode.outcome.status, episode.outcome.failed) == ("fail", ("no_answer",))


class _Broken:
    """A user simulator that breaks: part of the harness."""

    def reply(self, text):
        raise ConnectionError("the simulator is gone")


def test_a_fault_of_the_harness_is_no_reward():
    with opened(user=_Broken()) as episode:
        observation = episode.reply("hello?")
        assert observation.value["error"]["code"] == "harness"
    assert episode.outcome.status == "infra_error"
    assert episode.outcome.reward is None
    assert "the simulator is gone" in episode.outcome.detail


def test_an_environment_that_cannot_be_opened_is_no_reward():
    foreign = replace(ENVIRONMENT, runtime="something-else")
    with opened(environment=foreign) as episode:
        assert episode.over
    assert episode.outcome.status == "infra_error"


def test_an_environment_that_cannot_be_read_is_no_reward():
    corrupt = replace(ENVIRONMENT, files={"data.sqlite": b"not a database"})
    with opened(environment=corrupt) as episode:
        assert episode.over or episode.answer(READING.answer).status == "infra_error"
    assert episode.outcome.status == "infra_error"


def _with_tool(source):
    tools = tuple(replace(tool, source=source) if tool.name == "get_book" else tool for tool in ENVIRONMENT.tools)
    return replace(ENVIRONMENT, tools=tools)


@pytest.mark.parametrize(
    "body", ["raise ValueError('my fault')", "import os; os._exit(9)", "return {'x': float('nan')}", "return 3"]
)
def test_a_tool_that_breaks_is_an_observation_and_the_episode_still_ends_in_a_reward(body):
    with opened(environment=_with_tool(f"def get_book(world, *, book_id):\n    {body}\n")) as episode:
        assert episode.call("get_book", {"book_id": "B3"}).status == "error"
        assert episode.answer({"author": "nobody", "copies": 0}).status == "fail"


SPOILING = """import os


def get_book(world, *, book_id):
    DAMAGE
    return {"book_id": book_id}
"""
_REWRITTEN = """world.db.execute("PRAGMA writable_schema = ON")
    world.db.execute("UPDATE sqlite_schema SET rootpage = NUMBER WHERE name = 'NAME'")"""
_OF_ANOTHER = "(SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_books_1')"
DAMAGE = {
    "nonsense where its changes lie": "os.pwrite(5, b'nonsense' * 1000, 0)",
    "nonsense where its documents lie": "os.write(7, b'[]\\n')",
    "a table that points nowhere": _REWRITTEN.replace("NUMBER", "999").replace("NAME", "members"),
    # The rows are those of gold, and so is their digest; only whoever reads by the index sees others.
    "an index that is another's": _REWRITTEN.replace("NUMBER", _OF_ANOTHER).replace(
        "NAME", "sqlite_autoindex_authors_1"
    ),
    "a column that has another name": "world.db.execute('ALTER TABLE members RENAME COLUMN name TO label')",
}


def _spoiling(damage):
    environment = _with_tool(SPOILING.replace("DAMAGE", damage))
    tools = tuple(replace(tool, writes=True) if tool.name == "get_book" else tool for tool in environment.tools)
    return replace(environment, tools=tools)


@pytest.mark.parametrize("task", [READING, PROGRAM], ids=lambda task: task.task_id)
@pytest.mark.parametrize("damage", DAMAGE)
def test_an_episode_in_which_a_tool_broke_the_state_fails_and_says_so(task, damage):
    environment = _spoiling(DAMAGE[damage])
    with opened(task, environment) as episode:
        assert episode.call("get_book", {"book_id": "B3"}).status == "ok"
        assert episode.reply("Is it still there?").status == "ok"
        outcome = episode.answer(task.answer)
    assert (outcome.status, outcome.reward, outcome.failed) == ("fail", 0.0, ("corrupt_state",)), outcome
    assert outcome.detail.startswith("a tool broke the state: ")
    assert episode.final_digest
    with opened(task, environment) as later:
        assert later.answer(task.answer).status == "pass", "only its own session was hurt"
    with opened(task, _spoiling("pass")) as harmless:
        harmless.call("get_book", {"book_id": "B3"})
        assert harmless.answer(task.answer).status == "pass", "it was the damage that failed"


def test_a_broken_state_that_looks_like_another_episodes_fails_alone():
    environment = _spoiling(DAMAGE["an index that is another's"])
    with opened(environment=environment) as broken, opened(environment=environment) as sound:
        broken.call("get_book", {"book_id": "B3"})
        for episode in (broken, sound):
            episode.take(Step(kind="answer", answer=READING.answer))
        assert broken.final_digest == sound.final_digest
        judge_together([broken, sound])
    assert [episode.outcome.status for episode in (broken, sound)] == ["fail", "pass"]


def test_a_snapshot_that_was_broken_from_the_start_is_no_fault_of_a_tool():
    sound = ENVIRONMENT.files["data.sqlite"]
    damaged = sound[:4096] + b"\xff" * (len(sound) - 4096)
    with opened(environment=replace(ENVIRONMENT, files={"data.sqlite": damaged})) as episode:
        outcome = episode.answer(READING.answer)
    assert (outcome.status, episode.final_digest) == ("infra_error", None)


def test_what_long_observations_were_takes_no_memory_for_all_of_an_episode():
    source = """import random


def get_book(world, *, book_id):
    return {"text": random.Random(book_id).randbytes(250_000).hex()}
"""
    with opened(environment=_with_tool(source)) as episode:
        episode.call("get_book", {"book_id": "B0"})
        tracemalloc.start()
        for number in range(1, 21):
            episode.call("get_book", {"book_id": f"B{number}"})
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert held < 3_000_000, "20 texts of half a million characters were kept, 20 cuts of them are held"
        texts = {len(episode.uncut[index]["text"]) for index in range(21)}
        assert (texts, len({episode.uncut[index]["text"] for index in (3, 20)})) == ({500_000}, 2)
