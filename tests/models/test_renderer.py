import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_world.models.references import NUMBERS, TEXTS
from agent_world.models.renderer import ChatTemplateRenderer, TinyRenderer, observed, renderer_for, transcript
from agent_world.rollouts.model import Observation, Step, Tokens
from tests.models import little

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
    ids, written, prompt = transcript(renderer, little.script(), little.EPISODE)
    wrote = little.tokenizer().decode([i for i, by_policy in zip(ids, written, strict=True) if by_policy])
    assert wrote == (
        f"<c>search_books title={TEXTS[0]}<o><c>get_book book_id={TEXTS[1]}<o>"
        f"<a> author={TEXTS[2]} copies={NUMBERS[0]}<e>"
    )
    assert ids[:prompt] == little.script().prompt
    assert not any(written[:prompt])


def test_steps_that_carry_their_ids_keep_them():
    renderer = little.renderer()
    odd = Step(kind="malformed", text="??", tokens=Tokens(ids=(300, 301), logprobs=(-1.0, -1.0)))
    ids, written, prompt = transcript(renderer, little.script(), [(odd, little.REFUSED)])
    assert ids[prompt : prompt + 3] == [300, 301, renderer.closing]
    assert written[prompt : prompt + 3] == [True, True, False]


def test_a_mark_inside_text_is_text():
    script = little.script()
    step = Step(kind="answer", answer={"title": "<e> and <c>"})
    ids = script.step(step)
    assert sum(i in little.renderer().stops for i in ids) == 1
    assert script.parse(ids) == step


NO_STEPS = ["", "get_book", "<c>get_book book_id=<o>", "<a> copies=1<o>", "<c><o>", "<a> x=1<u><e>"]


@pytest.mark.parametrize("written", NO_STEPS)
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
    ids, written, _ = transcript(renderer, renderer.begin(turn), little.EPISODE)
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
