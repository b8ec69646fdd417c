import jsonschema
import pytest

from agent_world.identity import rng
from agent_world.rollouts.arguments import draw_arguments, entities, leaves, numbers
from agent_world.rollouts.canonical import misfits
from agent_world.rollouts.loop import EpisodeSpec, roll_out
from agent_world.rollouts.randoms import RandomAgent
from tests.rollouts.cases import ENVIRONMENT, READING, WRITING


def runs(task, informed, count=12):
    specs = [EpisodeSpec(task=task, environment=ENVIRONMENT, sample=k, seed=k) for k in range(count)]
    return roll_out(specs, RandomAgent(informed=informed))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('Lend "Nordic Light" to Tom Okafor and tell me the state.', ["Nordic Light", "Tom Okafor"]),
        ("Who wrote Winter Maps, and how many copies are there?", ["Winter Maps"]),
        ("Find Zoë Ångström. Then count her books.", ["Zoë Ångström"]),
        ("how many are there", []),
    ],
)
def test_entities_are_what_is_quoted_and_what_is_capitalised(text, named):
    assert entities(text) == named


def test_numbers_are_found():
    assert numbers("at least 3 of 12.5 by -2, not B5") == [3, 12.5, -2]


def test_leaves_carry_their_nearest_key():
    assert list(leaves({"items": [{"a": 1}, {"a": 2}], "tags": ["x"]})) == [("a", 1), ("a", 2), ("tags", "x")]


@pytest.mark.parametrize("seed", range(30))
def test_drawn_arguments_are_valid(seed):
    schema = {
        "type": "object",
        "properties": {
            "genre": {"type": "string", "enum": ["novel", "essay"]},
            "page": {"type": "integer", "minimum": 1, "maximum": 3},
            "above": {"type": "number", "exclusiveMinimum": 2},
            "tags": {"type": "array", "items": {"type": "string"}},
            "open": {"type": "boolean"},
            "note": {"type": ["string", "null"]},
        },
        "required": ["genre", "page", "above", "tags"],
        "additionalProperties": False,
    }
    jsonschema.validate(draw_arguments(schema, rng("test", seed), lambda *_: None), schema)


def test_an_informed_agent_looks_the_entities_up_first():
    for trajectory in runs(WRITING, informed=True):
        first = trajectory.steps[0][0]
        assert "Nordic Light" in first.arguments.values()
    assert any("Nordic Light" not in t.steps[0][0].arguments.values() for t in runs(WRITING, informed=False))


def test_arguments_come_from_the_instruction_and_from_what_was_seen():
    allowed = {"Winter Maps", "essay", "novel", "poetry"}
    for trajectory in runs(READING, informed=False):
        known = set(allowed)
        for step, observation in trajectory.steps:
            texts = {value for _, value in leaves(dict(step.arguments)) if isinstance(value, str)}
            assert texts <= known
            if observation is not None:
                known |= {value for _, value in leaves(observation.value) if isinstance(value, str)}


@pytest.mark.parametrize("informed", [True, False])
def test_random_agents_speak_the_format_and_are_seeded(informed):
    once, again = runs(READING, informed), runs(READING, informed)
    assert once == again
    assert any(trajectory.steps != once[0].steps for trajectory in once)
    for trajectory in once:
        assert trajectory.outcome.status == "fail"
        assert misfits(trajectory.steps[-1][0].answer, READING.answer_schema) == []
