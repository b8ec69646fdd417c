import random
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_world.environments.model import PublicTool
from agent_world.models.grammar import Vocabulary, answer_automaton, tools_automaton
from agent_world.models.references import MARKS, NUMBERS, TEXTS
from agent_world.rollouts.model import Observation, Step
from tests.models import little

NAME = st.text(st.sampled_from("abz_AZ09-é =¦."), min_size=1, max_size=6)
WORD = st.sampled_from(["novel", "out", "a b", "Kölle", "x' y", "", "B3", "東京", "100% sure"])
ENUM = st.sampled_from(["novel", "B3", "a=b", "⟦x⟧", "", TEXTS[0], 3, -1.5, None, True])
DECIMAL = st.floats(min_value=-1e15, max_value=1e15).filter(lambda number: "e" not in repr(number))
INTEGER = st.integers(min_value=-(10**19), max_value=10**19)
SCALARS = {"string": WORD, "integer": INTEGER, "number": INTEGER | DECIMAL, "boolean": st.booleans(), "null": st.none()}


@st.composite
def objects(draw, inner):
    properties = draw(st.dictionaries(NAME, inner, max_size=3))
    required = draw(st.sets(st.sampled_from(sorted(properties)))) if properties else set()
    return {"type": "object", "properties": properties, "required": sorted(required), "additionalProperties": False}


LEAVES = st.one_of(
    st.sampled_from(sorted(SCALARS)).map(lambda kind: {"type": kind}),
    st.lists(st.sampled_from(sorted(SCALARS)), min_size=1, max_size=3, unique=True).map(lambda kinds: {"type": kinds}),
    st.lists(ENUM, min_size=1, max_size=3).map(lambda values: {"enum": values}),
)
SCHEMAS = st.recursive(
    LEAVES, lambda inner: inner.map(lambda items: {"type": "array", "items": items}) | objects(inner), max_leaves=4
)
TOOLS = st.lists(
    st.builds(
        PublicTool, name=NAME, description=st.just(""), input_schema=objects(SCHEMAS),
        output_schema=st.just({}), writes=st.booleans(),
    ),
    min_size=1, max_size=3, unique_by=lambda tool: tool.name,
)  # fmt: skip


def values(schema):
    """Values that fit a schema and can be spelt: no text longer than a policy may write, no exponent."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return st.one_of([_values(kind, schema) for kind in kinds])


def _values(kind, schema):
    if kind == "array":
        return st.lists(values(schema["items"]), max_size=3)
    if kind == "object":
        fields = {name: values(its) for name, its in schema["properties"].items()}
        required = schema["required"]
        return st.fixed_dictionaries(
            {name: fields[name] for name in required},
            optional={name: its for name, its in fields.items() if name not in required},
        )
    return SCALARS[kind]


def complete(schema):
    """A schema of which every field is required, as those of answers are."""
    return {**schema, "required": sorted(schema["properties"])}


def begun(tools=None, schema=None, read=()):
    turn = little.turn()
    turn = replace(turn, tools=tools or turn.tools, answer_schema=schema or turn.answer_schema)
    script = little.renderer().begin(turn)
    if read:
        script.observation(little.call("x"), Observation(status="ok", value={"items": list(read)}))
    return script


def leaves(value):
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]
    return [leaf for item in value for leaf in leaves(item)] if isinstance(value, list) else [value]


def assert_allowed(script, step):
    guide, ids = script.guide(), script.step(step)
    for place, id in enumerate(ids):
        assert guide.allowed()[id], f"{little.tokenizer().decode(ids[place:])!r} of {little.tokenizer().decode(ids)!r}"
        guide.advance(id)
    return guide


def write(guide, source, at_most=400):
    """A step written by choosing among the allowed ids, rather those with which things end."""
    stops, ids = little.renderer().stops, []
    while len(ids) < at_most and not (ids and ids[-1] in stops):
        allowed = np.flatnonzero(guide.allowed())
        assert len(allowed) < len(guide.allowed()), "nothing may follow"
        ids.append(int(source.choice(allowed)))
        guide.advance(ids[-1])
    return ids


@settings(deadline=None)
@given(st.data())
def test_every_call_that_fits_its_schema_may_be_written(data):
    tools = data.draw(TOOLS)
    tool = data.draw(st.sampled_from(tools))
    arguments = data.draw(_values("object", tool.input_schema))
    jsonschema.validate(arguments, tool.input_schema)
    read = data.draw(st.lists(st.sampled_from(leaves(arguments)), max_size=3)) if leaves(arguments) else []
    script = begun(tools, read=read)
    step = Step(kind="tool", tool=tool.name, arguments=arguments)
    assert_allowed(script, step)
    assert script.parse(script.step(step)) == step


@settings(deadline=None)
@given(st.data())
def test_every_answer_that_fits_its_schema_may_be_written(data):
    schema = complete(data.draw(objects(SCHEMAS)))
    answer = data.draw(_values("object", schema))
    jsonschema.validate(answer, schema)
    read = data.draw(st.lists(st.sampled_from(leaves(answer)), max_size=3)) if leaves(answer) else []
    assert_allowed(begun(schema=schema, read=read), Step(kind="answer", answer=answer))


def test_a_real_episode_may_be_written_step_for_step():
    script = begun()
    for step, observation in little.EPISODE:
        guide = assert_allowed(script, step)
        assert guide.allowed().all(), "a step has ended: whatever follows is let through"
        if observation is not None:
            script.observation(step, observation)


@settings(deadline=None, max_examples=60)
@given(TOOLS, objects(SCHEMAS), st.lists(WORD | INTEGER, max_size=3), st.integers(min_value=0))
def test_whatever_is_let_through_is_a_step_with_known_names_and_all_that_is_required(tools, schema, read, seed):
    schema = complete(schema)
    script = begun(tools, schema, read)
    ids = write(script.guide(), random.Random(seed))
    if ids[-1] not in little.renderer().stops:
        return  # a list may be as long as the policy likes
    step = script.parse(ids)
    assert step.kind in ("tool", "reply", "answer"), little.tokenizer().decode(ids)
    if step.kind == "tool":
        (tool,) = [tool for tool in tools if tool.name == step.tool]
        assert_known(step.arguments, tool.input_schema)
    elif step.kind == "answer":
        assert_known(step.answer, schema)


def assert_known(value, schema):
    """Exactly known keys and all required ones, down to the last record."""
    if isinstance(value, dict):
        assert set(schema["required"]) <= set(value) <= set(schema["properties"])
        for name, item in value.items():
            assert_known(item, schema["properties"][name])
    if isinstance(value, list):
        for item in value:
            assert_known(item, schema["items"])


@pytest.mark.parametrize("kind", ["integer", "number", "boolean", "null", "array", "string"])
def test_what_is_let_through_has_the_type_of_its_schema_whatever_is_chosen(kind):
    schema = {"type": "object", "properties": {"x": {"type": kind, "items": {"type": "integer"}}}, "required": ["x"]}
    source, valid = random.Random(kind), 0
    for _ in range(25):
        script = begun(schema=schema, read=[7, "B3"])
        guide = script.guide()
        guide.advance(little.renderer().id["<a>"])
        ids = [little.renderer().id["<a>"], *write(guide, source, at_most=60)]
        if ids[-1] in little.renderer().stops:
            jsonschema.validate(script.parse(ids).answer, schema)
            valid += 1
    assert valid > 3


@pytest.mark.parametrize("mark", [*"⟦⟧⦃⦄¦", TEXTS[0], TEXTS[-1], NUMBERS[0], NUMBERS[-1]])
def test_no_mark_can_be_put_together_from_bytes(mark):
    script, tokenizer = begun(), little.tokenizer()
    guide = script.guide()
    for id in [little.renderer().id["<c>"], *_encode('get_book book_id="x')]:
        assert guide.allowed()[id]
        guide.advance(id)
    refused = 0
    for id in map(tokenizer.convert_tokens_to_ids, _spelling(mark)):
        refused += not guide.allowed()[id]
        guide.advance(id)
    assert refused


def _spelling(mark):
    from tokenizers.pre_tokenizers import ByteLevel

    return ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(mark)[0][0]


def _encode(text):
    return little.renderer().tokenizer.encode(text, add_special_tokens=False).ids


NOT_STEPS = [
    ("<c>", "no_such_tool"),
    ("<c>", 'get_book title="x'),
    ("<c>", 'get_book book_id="x book_id="y'),
    ("<c>", "get_book book_id=7"),
    ("<c>", f"get_book book_id={TEXTS[5]}"),
    ("<a>", ' copies=1 author="x'),
    ("<a>", ' author="x copies=007'),
    ("<a>", ' author="x copies=1.5'),
    ("<a>", ' author="x copies=--1'),
    ("<a>", f' author="x copies={TEXTS[0]}'),
    ("<r>", ""),
]


@pytest.mark.parametrize(("opening", "text"), NOT_STEPS)
def test_what_breaks_the_schema_is_held_back(opening, text):
    guide, allowed = begun(read=["B3"]).guide(), []
    for id in [little.renderer().id[opening], *_encode(text), *little.renderer().stops]:
        allowed.append(bool(guide.allowed()[id]))
        guide.advance(id)
    assert allowed[0]
    assert not all(allowed[:-1])


@pytest.mark.parametrize("value", ["two\nlines", "a=b", "20 °C", "long " * 30, TEXTS[0]])
def test_what_cannot_be_spelt_can_be_referred_to_once_it_was_read(value):
    step = little.call("search_books", title=value)
    with pytest.raises(AssertionError):
        assert_allowed(begun(), step)
    assert_allowed(begun(read=[value]), step)


def test_a_call_cannot_end_before_what_is_required_nor_an_answer_before_all_fields():
    stop = little.renderer().id
    for opening, text, end in (("<c>", "get_book", "<o>"), ("<a>", ' author="x', "<e>"), ("<c>", "lend_book", "<o>")):
        guide = begun().guide()
        for id in [stop[opening], *_encode(text)]:
            assert guide.allowed()[id]
            guide.advance(id)
        assert not guide.allowed()[stop[end]]


def test_only_marks_that_were_given_may_be_written():
    script = begun(read=["B3", "B5", 7])
    guide = script.guide()
    for id in [little.renderer().id["<c>"], *_encode("get_book book_id=")]:
        guide.advance(id)
    ids = {little.tokenizer().convert_tokens_to_ids(mark): mark for mark in MARKS}
    allowed = {ids[id] for id in np.flatnonzero(guide.allowed()) if id in ids}
    assert allowed == set(TEXTS[:3]), "the name in the instruction and the two that were read, and no number"


def test_an_automaton_is_that_of_its_schema_alone():
    vocabulary = Vocabulary(little.renderer().tokenizer)
    tools, schema = little.turn().tools, little.turn().answer_schema
    for one, other in (
        (tools_automaton(vocabulary, tools), tools_automaton(vocabulary, tools)),
        (answer_automaton(vocabulary, schema), answer_automaton(vocabulary, schema)),
    ):
        start = one.closure([0])
        assert start == other.closure([0])
        assert (one.mask(start).allowed == other.mask(start).allowed).all()
