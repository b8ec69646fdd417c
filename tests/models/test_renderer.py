import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_world import world
from agent_world.codec import decode, encode
from agent_world.identity import canonical_json
from agent_world.models.chat_renderer import ChatTemplateRenderer
from agent_world.models.references import NUMBERS, TEXTS
from agent_world.models.renderer import observed, renderer_for, transcript
from agent_world.models.tiny_renderer import TinyRenderer
from agent_world.rollouts.loop import EpisodeSpec, roll_out
from agent_world.rollouts.model import Observation, Outcome, Step, Tokens, Trajectory
from agent_world.rollouts.policies import Gold
from agent_world.rollouts.randoms import RandomAgent
from tests.models import little
from tests.toy import toy_environment, toy_tasks
from tests.toy_lake import save_toy

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(st.text(max_size=8), JSON, max_size=4)
STEPS = st.one_of(
    st.builds(Step, kind=st.just("tool"), tool=st.text(min_size=1, max_size=12), arguments=ARGUMENTS),
    st.builds(Step, kind=st.just("answer"), answer=JSON | ARGUMENTS),
    st.builds(Step, kind=st.just("reply"), text=st.text(st.characters(exclude_categories=["Cs"]), max_size=20)),
)


@settings(deadline=None)
@given(STEPS)
def test_every_step_of_the_tiny_policy_comes_back_from_its_ids(step):
    script = little.script()
    assert script.parse(script.step(step)) == step


def test_a_tiny_prompt_names_the_environment_the_task_and_the_answer_fields_and_no_tool():
    ids = little.script().prompt
    text = little.tokenizer().decode(ids)
    instruction = little.turn().instruction.replace("Winter Maps", TEXTS[0])
    assert text == f'<u><@toy-library> {instruction}<f> author=" copies='
    assert len(ids) < 70


def test_a_transcript_marks_what_the_policy_wrote_and_nothing_else():
    renderer = little.renderer()
    ids, written, prompt, _ = transcript(renderer, little.script(), little.EPISODE)
    wrote = little.tokenizer().decode([i for i, by_policy in zip(ids, written, strict=True) if by_policy])
    assert wrote == (
        f"<c>search_books title={TEXTS[0]}<o><c>get_book book_id={TEXTS[1]}<o>"
        f"<a> author={TEXTS[2]} copies={NUMBERS[0]}<e>"
    )
    assert ids[:prompt] == little.script().prompt
    assert not any(written[:prompt])


def test_a_transcript_says_what_could_have_been_written():
    """Tool names and keys leave no choice; which tool, which reference does. What breaks the grammar had any choice."""
    renderer = little.renderer()
    ids, written, _, allowed = transcript(renderer, little.script(), little.EPISODE, choices=True)
    wrote = [id for id, by_policy in zip(ids, written, strict=True) if by_policy]
    assert all(choice[id] for id, choice in zip(wrote, allowed, strict=True))
    sizes = [int(choice.sum()) for choice in allowed]
    assert 1 in sizes and max(sizes) < len(little.tokenizer()) / 2
    broken = Step(kind="malformed", tokens=Tokens(ids=(wrote[0], wrote[-1]), logprobs=(-1.0, -1.0)))
    _, _, _, allowed = transcript(renderer, little.script(), [(broken, None)], choices=True)
    assert allowed[0][wrote[0]] and allowed[1] is None


def test_steps_that_carry_their_ids_keep_them():
    renderer = little.renderer()
    odd = Step(kind="malformed", text="??", tokens=Tokens(ids=(300, 301), logprobs=(-1.0, -1.0)))
    ids, written, prompt, _ = transcript(renderer, little.script(), [(odd, little.REFUSED)])
    assert ids[prompt : prompt + 3] == [300, 301, renderer.closing]
    assert written[prompt : prompt + 3] == [True, True, False]


def test_a_mark_inside_text_is_text():
    script = little.script()
    step = Step(kind="answer", answer={"title": "<e> and <c>"})
    ids = script.step(step)
    assert sum(i in little.renderer().stops for i in ids) == 1
    assert script.parse(ids) == step


NO_STEPS = ["", "get_book", "<c>get_book book_id=<o>", "<a> copies=1<o>", "<c><o>", "<a> x=1<u><e>"]
DEEP = [f"<a> copies={opened * 3000}<e>" for opened in ("⟦", "[")] + [f"<a> copies='{'[' * 3000}<e>"]


@pytest.mark.parametrize("written", [*NO_STEPS, *DEEP])
def test_text_that_is_no_step_is_malformed_and_kept(written):
    tokenizer = little.tokenizer()
    pieces = re.split(f"({'|'.join(TinyRenderer.MARKS)})", written)
    ids = [
        i
        for piece in pieces
        for i in (
            [tokenizer.convert_tokens_to_ids(piece)]
            if piece in TinyRenderer.MARKS
            else tokenizer(piece, add_special_tokens=False)["input_ids"]
        )
    ]
    step = little.script().parse(ids)
    assert (step.kind, step.text) == ("malformed", written)


def test_scalars_come_before_lists_and_long_observations_are_cut():
    renderer = TinyRenderer(little.tokenizer(), max_observation=30)
    rows = [{"book_id": f"B{i}"} for i in range(50)]
    ids = renderer.begin(little.turn()).observation(
        little.call("x"), Observation(status="ok", value={"items": rows, "total": 50})
    )
    assert len(ids) == 30
    assert (
        little.tokenizer()
        .decode(ids)
        .startswith(f" total={NUMBERS[0]}50 items=⟦ book_id={TEXTS[1]}¦ book_id={TEXTS[2]}")
    )


def test_a_refusal_shows_its_code_and_message():
    ids = little.script().observation(little.call("x"), little.REFUSED)
    assert little.tokenizer().decode(ids) == f"!no_copies {TEXTS[1]} copies are out."


@pytest.fixture(scope="module", params=["qwen3_training", "qwen3_instruct_2507", "qwen2_5"])
def chat(request):
    import trl
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        special_tokens=["<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([], trainer)
    whole = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>")
    whole.chat_template = (Path(trl.__file__).parent / "chat_templates" / f"{request.param}.jinja").read_text()
    return whole


def test_a_chat_prompt_holds_the_tool_schemas_the_answer_schema_and_the_task(chat):
    text = chat.decode(ChatTemplateRenderer(chat).begin(little.turn()).prompt)
    for tool in little.turn().tools:
        assert f'"name": "{tool.name}"' in text
        assert tool.description in text
    assert "copies owned" in text
    assert little.turn().instruction in text


@settings(deadline=None)
@given(
    step=st.builds(Step, kind=st.just("tool"), tool=st.sampled_from(["get", "find_it"]), arguments=ARGUMENTS)
    | st.builds(Step, kind=st.just("answer"), answer=ARGUMENTS)
)
def test_every_call_and_answer_of_a_chat_model_comes_back_from_its_ids(chat, step):
    script = ChatTemplateRenderer(chat).begin(little.turn())
    assert script.parse(script.step(step)) == step


def test_a_chat_context_grows_as_the_template_would_write_it_at_once(chat):
    renderer, turn = ChatTemplateRenderer(chat), little.turn()
    ids, written, *_ = transcript(renderer, renderer.begin(turn), little.EPISODE)
    text = chat.decode(ids)
    assert text.count("<tool_response>") == 2
    assert text.count("<|im_start|>assistant") == 3
    assert text.endswith('{"author": "Bo Lindqvist", "copies": 1}<|im_end|>')
    wrote = chat.decode([i for i, by_policy in zip(ids, written, strict=True) if by_policy])
    assert "tool_response" not in wrote
    assert wrote.count("<|im_end|>") == 3


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('<think>hm</think><tool_call>{"name": "get", "arguments": "{}"}</tool_call>', "tool"),
        ('<tool_call>{"name": "get", "arguments": {</tool_call>', "malformed"),
        ('```json\n{"copies": 1}\n```', "answer"),
        ('<tool_call>{"name": "get", "arguments": [1]}</tool_call>', "malformed"),
        ('<tool_call>{"name": "get", "arguments": "' + "[" * 5000 + '"}</tool_call>', "malformed"),
        ('<tool_call>{"name": ' + "[" * 5000 + "}</tool_call>", "malformed"),
        ('{"copies": ' + "[" * 5000, "reply"),
        ("Which library?", "reply"),
        ("  ", "malformed"),
    ],
)
def test_what_a_chat_model_writes_is_sorted_into_steps(chat, text, kind):
    ids = chat(text, add_special_tokens=False)["input_ids"] + [chat.eos_token_id]
    assert ChatTemplateRenderer(chat).begin(little.turn()).parse(ids).kind == kind


def test_a_reply_is_answered_by_the_user(chat):
    for renderer, tokenizer in ((ChatTemplateRenderer(chat), chat), (little.renderer(), little.tokenizer())):
        step = Step(kind="reply", text="Which one?")
        script = renderer.begin(little.turn())
        ids = observed(
            renderer, script, script.step(step), step, Observation(status="ok", value={"user": "The first."})
        )
        assert "The first." in tokenizer.decode(ids)


def test_the_renderer_follows_from_the_tokenizer(chat):
    assert isinstance(renderer_for(little.tokenizer()), TinyRenderer)
    assert isinstance(renderer_for(chat), ChatTemplateRenderer)
    plain = little.tokenizer().__class__(tokenizer_object=chat.backend_tokenizer, eos_token="<|im_end|>")
    with pytest.raises(ValueError, match="no chat template"):
        renderer_for(plain)


def reordered(value):
    """The value with the keys of every record the other way round."""
    if isinstance(value, dict):
        return {name: reordered(item) for name, item in reversed(value.items())}
    return [reordered(item) for item in value] if isinstance(value, list) else value


RECORDS = st.dictionaries(st.text(max_size=6), JSON, max_size=4)
EPISODES = st.lists(
    st.tuples(
        st.builds(Step, kind=st.just("tool"), tool=st.just("get_book"), arguments=RECORDS),
        st.builds(Observation, status=st.just("ok"), value=RECORDS | st.lists(RECORDS, max_size=3)),
    ),
    max_size=3,
)


def ids_of(renderer, steps):
    return transcript(renderer, renderer.begin(little.turn()), steps).ids


@settings(deadline=None)
@given(EPISODES, RECORDS)
def test_the_order_of_keys_in_what_is_read_and_written_does_not_matter(steps, answer):
    renderer = little.renderer()
    live = [*steps, (Step(kind="answer", answer=answer), None)]
    turned = [
        (replace(step, arguments=reordered(step.arguments), answer=reordered(step.answer)), observation)
        for step, observation in live
    ]
    turned = [
        (step, observation and replace(observation, value=reordered(observation.value))) for step, observation in turned
    ]
    stored = json.loads(canonical_json(encode(_recorded(live))))
    assert ids_of(renderer, live) == ids_of(renderer, turned) == ids_of(renderer, decode(Trajectory, stored).steps)


def _recorded(steps):
    return Trajectory(
        trajectory_id="t", task="t@0", environment="e@0", policy="p", policy_version="1", sample=0, seed=0,
        steps=tuple(steps), outcome=Outcome(status="pass"), final_digest=None,
    )  # fmt: skip


@pytest.fixture(scope="module")
def lived(tmp_path_factory):
    """Episodes of the toy world as they were lived, and as the lake gives them back: pairs."""
    home = world.open(tmp_path_factory.mktemp("lake") / "lake", create=True)
    with home.begin("toy", derivation="toy") as batch:
        environment, _ = save_toy(batch, toy_environment())
        pinned = [replace(task, environments=(environment,)) for task in toy_tasks()]
        tasks = {world.save_task(batch, task): task for task in pinned}
    toy = home.environment(environment)
    specs = [
        EpisodeSpec(task=task, environment=toy, task_version=version, sample=sample, seed=sample)
        for version, task in tasks.items()
        for sample in range(4)
    ]
    policies = (Gold(tasks.values()), RandomAgent(informed=True))
    live = [trajectory for policy in policies for trajectory in roll_out(specs, policy, max_steps=12)]
    with home.begin("episodes", derivation="episodes") as batch:
        versions = [world.save_trajectory(batch, each, purpose="demonstration", round=0) for each in live]
    again = world.open(home.uri)
    return [(trajectory, again.trajectory(version)) for trajectory, version in zip(live, versions, strict=True)]


def test_a_trajectory_of_the_lake_renders_to_the_ids_of_the_live_one(lived, chat):
    assert {observation.status for one, _ in lived for _, observation in one.steps if observation} >= {"ok", "refused"}
    for renderer in (little.renderer(), ChatTemplateRenderer(chat)):
        for live, stored in lived:
            assert stored.steps == live.steps
            assert ids_of(renderer, stored.steps) == ids_of(renderer, live.steps)


def test_the_order_of_keys_does_not_matter_to_a_chat_model(chat):
    renderer = ChatTemplateRenderer(chat)
    arguments, value = {"b": 1, "a": {"d": [], "c": 2}}, {"z": [{"y": 1, "x": 2}], "w": 3}
    for kind in ({"kind": "tool", "tool": "get"}, {"kind": "reply", "text": "?"}):
        steps = [(Step(arguments=arguments, **kind), Observation(status="ok", value=value))]
        turned = [(Step(arguments=reordered(arguments), **kind), Observation(status="ok", value=reordered(value)))]
        assert ids_of(renderer, steps) == ids_of(renderer, turned)
    answers = [[(Step(kind="answer", answer=answer), None)] for answer in (arguments, reordered(arguments))]
    assert ids_of(renderer, answers[0]) == ids_of(renderer, answers[1])
