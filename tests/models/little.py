"""Turns, steps and a tiny model over the toy world, without a sandbox: observations are written by hand."""

from functools import cache

from agent_world.models.tiny import TinySize, make_model, make_tokenizer, vocabulary_texts
from agent_world.models.tiny_renderer import TinyRenderer
from agent_world.rollouts.model import Observation, Step, Turn
from tests.toy import toy_environment, toy_tasks

SIZE = TinySize(width=32, layers=2, heads=2, key_value_heads=1, feed_forward=64, vocabulary=400, context=512)


def ok(**value):
    return Observation(status="ok", value=value)


def call(tool, **arguments):
    return Step(kind="tool", tool=tool, arguments=arguments)


def answer(**fields):
    return Step(kind="answer", answer=fields)


HITS = ok(items=[{"book_id": "B3", "title": "Winter Maps"}], total=1)
BOOK = ok(book_id="B3", title="Winter Maps", author="Bo Lindqvist", genre="novel", year=2011, copies=1)
REFUSED = Observation(status="refused", value={"error": {"code": "no_copies", "message": "All copies are out."}})


def turn(history=(), *, episode="e", seed=0, task=0):
    tasks, environment = toy_tasks(), toy_environment()
    return Turn(
        episode=episode,
        environment=environment.environment_id,
        instruction=tasks[task].instruction,
        tools=tuple(tool.public() for tool in environment.tools),
        answer_schema=tasks[task].answer_schema,
        history=history,
        seed=seed,
    )


EPISODE = (
    (call("search_books", title="Winter Maps"), HITS),
    (call("get_book", book_id="B3"), BOOK),
    (answer(author="Bo Lindqvist", copies=1), None),
)


@cache
def tokenizer():
    texts = list(vocabulary_texts(turn().instruction, EPISODE)) * 20
    return make_tokenizer(texts, ["toy-library"], SIZE)


def renderer():
    return TinyRenderer(tokenizer())


def model(seed=0):
    return make_model(tokenizer(), SIZE, seed).eval()


def script():
    return renderer().begin(turn())
