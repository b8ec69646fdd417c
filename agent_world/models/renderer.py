"""Between turns and token ids: one protocol, one renderer for the tiny policy, one for models with a chat template.

A renderer begins a script for each episode, which keeps what the rendering of a step depends on: the tiny policy refers
to what it has read. A context is what the policy reads and writes in one episode: the prompt, then alternately the ids
that the policy wrote and the ids of what came back. Every renderer builds it by appending, never by writing an earlier
part anew, so that a key-value cache stays valid and the loss mask is exact.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import quote, unquote

from agent_world.environments.model import Json, PublicTool
from agent_world.models.compact import NEXT, NotationError, dump, dump_record, load, load_record, opening, spelt
from agent_world.models.grammar import Automaton, Guide, Vocabulary, answer_automaton, tools_automaton
from agent_world.models.references import References
from agent_world.rollouts.model import Observation, Step, Turn

if TYPE_CHECKING:
    import numpy as np
    from transformers import PreTrainedTokenizerBase


class Renderer(Protocol):
    """Begins scripts.

    `stops` are the ids with which the policy ends a step; `closing` stands in for one that was cut off; `pad` fills.
    """

    stops: frozenset[int]
    closing: int
    pad: int

    def begin(self, turn: Turn) -> Script:
        """The script of the episode that begins with `turn` (whose history is not looked at)."""
        ...


class Script(Protocol):
    """One episode between turns and ids; what it reads it must be given in order.

    `prompt` is what the policy reads before its first step.
    """

    prompt: list[int]

    def step(self, step: Step) -> list[int]:
        """What the policy writes to take `step`, its stop included."""
        ...

    def parse(self, ids: Sequence[int]) -> Step:
        """The step that the policy took by writing `ids`; never raises: what is no step is `malformed`."""
        ...

    def guide(self) -> Guide | None:
        """What holds the policy to well-formed steps while it writes the next one; None lets it write anything."""
        ...

    def observation(self, step: Step, observation: Observation) -> list[int]:
        """What the policy reads between the stop of `step` and its next step."""
        ...


class Transcript(NamedTuple):
    """An episode as one sequence: `ids` [T], `written` [T], true where the policy wrote, `prompt` ids before that.

    `allowed`, where it was asked for, holds for each written id what the policy chose from, bool [vocabulary], or None
    for anything.
    """

    ids: list[int]
    written: list[bool]
    prompt: int
    allowed: Sequence[np.ndarray | None] = ()


def transcript(
    renderer: Renderer, script: Script, steps: Sequence[tuple[Step, Observation | None]], *, choices: bool = False
) -> Transcript:
    """The context after `steps` of the episode whose `script` has just begun; with `choices` also what was allowed.

    Steps that carry their own ids keep them; the others, from solvers and demonstrations, are rendered.
    """
    ids = list(script.prompt)
    written = [False] * len(ids)
    allowed: list[np.ndarray | None] = []
    for step, observation in steps:
        guide = script.guide() if choices else None  # before the step is rendered, which may refer to something new
        wrote = list(step.tokens.ids) if step.tokens else script.step(step)
        allowed += _choices(guide, wrote) if choices else []
        came_back = [] if observation is None else observed(renderer, script, wrote, step, observation)
        ids += wrote + came_back
        written += [True] * len(wrote) + [False] * len(came_back)
    return Transcript(ids, written, len(script.prompt), allowed)


def _choices(guide: Guide | None, wrote: Sequence[int]) -> list[np.ndarray | None]:
    """What could have been written at each place of a step; where something else was, anything could."""
    if guide is None:
        return [None] * len(wrote)
    found: list[np.ndarray | None] = []
    for id in wrote:
        allowed = guide.allowed()
        found.append(allowed if allowed[id] else None)
        guide.advance(id)
    return found


def observed(
    renderer: Renderer, script: Script, wrote: Sequence[int], step: Step, observation: Observation
) -> list[int]:
    """The ids that follow a step: its end where the policy left none, then the observation."""
    ended = bool(wrote) and wrote[-1] in renderer.stops
    return ([] if ended else [renderer.closing]) + script.observation(step, observation)


def renderer_for(tokenizer: PreTrainedTokenizerBase) -> Renderer:
    """The renderer that fits a tokenizer: tiny policies are known by their marks, others need a chat template."""
    if set(TinyRenderer.MARKS) <= set(tokenizer.get_vocab()):
        return TinyRenderer(tokenizer)
    return ChatTemplateRenderer(tokenizer)


_WORD = re.compile(r" ?[a-z]+|[_-]")


class TinyRenderer:
    """Environment tag, instruction, answer fields; then calls, observations and the answer in compact notation.

    What is read is referred to (`references`). No tool list: at a million parameters a list costs tokens and is not
    read (docs/training.md). Scalars of an observation come before its lists, and what is longer than `max_observation`
    ids is cut at its end.
    """

    MARKS = ("<pad>", "<u>", "<f>", "<c>", "<r>", "<o>", "<a>", "<e>")

    def __init__(self, tokenizer: PreTrainedTokenizerBase, *, max_observation: int = 192) -> None:
        self.tokenizer = tokenizer.backend_tokenizer
        self.tokenizer.encode_special_tokens = True  # "<c>" inside an instruction is text, not a mark
        self.max_observation = max_observation
        self.id = {mark: self.tokenizer.token_to_id(mark) for mark in self.MARKS}
        self.stops = frozenset((self.id["<o>"], self.id["<e>"]))
        self.closing = self.id["<o>"]
        self.pad = self.id["<pad>"]
        self._vocabulary = Vocabulary(self.tokenizer)
        self._calls: dict[str, Automaton] = {}
        self._answers = lru_cache(256)(lambda key: answer_automaton(self._vocabulary, json.loads(key)))

    def begin(self, turn: Turn) -> Script:
        """See `Renderer`."""
        return _TinyScript(self, turn, References(self._known))

    def calls(self, tools: Sequence[PublicTool]) -> Automaton:
        """The automaton of all calls of `tools`."""
        key = json.dumps([[tool.name, tool.input_schema] for tool in tools])
        if key not in self._calls:
            self._calls[key] = tools_automaton(self._vocabulary, tools)
        return self._calls[key]

    def answers(self, schema: Mapping[str, Json]) -> Automaton:
        """The automaton of all answers of `schema`."""
        return self._answers(json.dumps(schema))

    @cached_property
    def _known(self) -> Callable[[str], bool]:
        """Whether each word of a text is one token."""
        encode = self.tokenizer.encode
        return cache(lambda text: all(len(encode(word, add_special_tokens=False)) <= 1 for word in _WORD.findall(text)))


class _TinyScript:
    """`Script` of a `TinyRenderer`.

    The prompt is ``<u>tag instruction<f> field=" other_field=``: each answer field with the opening of its type.
    """

    def __init__(self, renderer: TinyRenderer, turn: Turn, references: References) -> None:
        self._renderer, self._references = renderer, references
        self._tools, self._answer_schema = turn.tools, turn.answer_schema
        self._id = renderer.id
        tag = renderer.tokenizer.token_to_id(tag_token(turn.environment))
        head = [self._id["<u>"], *([tag] if tag is not None else self._encode(turn.environment + ":"))]
        fields = "".join(
            f" {quote(name, safe='')}={opening(schema)}"
            for name, schema in sorted(turn.answer_schema.get("properties", {}).items())
        )
        instruction = self._encode(" " + references.read_text(turn.instruction))
        self.prompt = [*head, *instruction, self._id["<f>"], *self._encode(fields)]

    def step(self, step: Step) -> list[int]:
        """``<c>tool key="value<o>``, ``<r>"text<o>`` or ``<a> field="value<e>``."""
        short = self._references.write
        if step.kind == "tool":
            arguments = dump_record(_by_name(step.arguments), short)
            return self._framed("<c>", quote(step.tool or "", safe="") + arguments, "<o>")
        if step.kind == "reply":
            return self._framed("<r>", dump(step.text or ""), "<o>")
        if step.kind == "answer":
            answer = _by_name(step.answer)
            text = dump_record(answer, short) if isinstance(answer, dict) else NEXT + dump(answer, short)
            return self._framed("<a>", text, "<e>")
        return self._encode(step.text or "")

    def parse(self, ids: Sequence[int]) -> Step:
        """The step that the policy wrote; `malformed` with its text when it is none."""
        body = ids[1:-1]
        kind = (ids[0], ids[-1]) if len(ids) > 1 and not set(self._id.values()).intersection(body) else None
        text = self._decode(body)
        meant = self._references.meant
        try:
            if kind == (self._id["<c>"], self._id["<o>"]):
                name, space, rest = text.partition(" ")
                if name:
                    return Step(kind="tool", tool=unquote(name), arguments=load_record(space + rest, meant))
            if kind == (self._id["<r>"], self._id["<o>"]) and isinstance(reply := load(text, meant), str):
                return Step(kind="reply", text=reply)
            if kind == (self._id["<a>"], self._id["<e>"]):
                record = not text.startswith(NEXT)
                return Step(kind="answer", answer=load_record(text, meant) if record else load(text[1:], meant))
        except NotationError:
            pass
        return Step(kind="malformed", text=self._decode(ids))

    def guide(self) -> Guide:
        """A call of one of the tools, a reply, or the answer that is asked for."""
        return Guide(self._automata, self._references)

    @cached_property
    def _automata(self) -> tuple[Automaton, Automaton]:
        """Made when they are first asked for: what is only read in training needs none."""
        return self._renderer.calls(self._tools), self._renderer.answers(self._answer_schema)

    def observation(self, step: Step, observation: Observation) -> list[int]:
        """The result as a record; ``!code message`` for a call that gave none; what the user says is spelt."""
        value = observation.value
        short = spelt if step.kind == "reply" else self._references.read
        if observation.status != "ok":
            error = value.get("error", {}) if isinstance(value, dict) else {}
            text = f"!{error.get('code', observation.status)} {error.get('message', '')}".rstrip()
            text = self._references.read_text(text)
        elif isinstance(value, dict):
            text = dump_record(_ordered(value), short)
        else:
            text = NEXT + dump(_ordered(value), short)
        return self._encode(text)[: self._renderer.max_observation]

    def _framed(self, opening: str, text: str, closing: str) -> list[int]:
        return [self._id[opening], *self._encode(text), self._id[closing]]

    def _encode(self, text: str) -> list[int]:
        return self._renderer.tokenizer.encode(text, add_special_tokens=False).ids

    def _decode(self, ids: Sequence[int]) -> str:
        return self._renderer.tokenizer.decode(list(ids), skip_special_tokens=False)


def _ordered(value: Json) -> Json:
    """`value` with the keys of its records in order, scalars first: a trajectory of the lake does not keep another."""
    return _sorted(value, lambda item: (isinstance(item[1], (Mapping, list, tuple)), item[0]))


def _by_name(value: Json) -> Json:
    """`value` with the keys of its records by name, as the grammar wants them."""
    return _sorted(value, lambda item: item[0])


def _sorted(value: Json, key: Callable[[tuple[str, Json]], Any]) -> Json:
    if isinstance(value, Mapping):
        return {name: _sorted(item, key) for name, item in sorted(value.items(), key=key)}
    return [_sorted(item, key) for item in value] if isinstance(value, (list, tuple)) else value


def tag_token(environment: str) -> str:
    """The one token that stands for an environment the tokenizer was made with."""
    return f"<@{environment}>"


SYSTEM_PROMPT = (
    "You work on a task with the help of tools. Call one tool at a time and read its result before the next call. "
    "Do only what is asked. When you know the answer, write it as one JSON object and nothing else. "
    "The object must follow this JSON Schema:\n"
)

_TOOL_CALL = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)
_THOUGHT = re.compile(r"^\s*<think>.*?(</think>|$)", re.DOTALL)
_FENCE = re.compile(r"^```(?:json)?\s*(.*?)\s*```$", re.DOTALL)


class ChatTemplateRenderer:
    """Any tokenizer whose chat template knows tools: schemas in the prompt, ``<tool_call>`` JSON parsed.

    Raises:
        ValueError: the tokenizer has no chat template.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, *, max_observation: int = 2048) -> None:
        if not tokenizer.chat_template:
            raise ValueError("the tokenizer has no chat template; give the model directory a chat_template.jinja")
        self.tokenizer = tokenizer
        self.max_observation = max_observation
        self.stops = frozenset((tokenizer.eos_token_id,))
        self.closing = tokenizer.eos_token_id
        self.pad = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id

    def begin(self, turn: Turn) -> Script:
        """A script whose prompt holds answer schema, tool schemas, instruction, and the header of the first step."""
        messages = [
            {"role": "system", "content": SYSTEM_PROMPT + json.dumps(turn.answer_schema, ensure_ascii=False)},
            {"role": "user", "content": turn.instruction},
        ]
        tools = [tool_schema(tool) for tool in turn.tools]
        return _ChatScript(self, self.encode(self.render(messages, tools, open_next=True)))

    def render(
        self, messages: list[dict[str, Json]], tools: list[Json] | None = None, *, open_next: bool = False
    ) -> str:
        """The messages as the template writes them, with the header of the next one when `open_next`."""
        return self.tokenizer.apply_chat_template(
            messages, tools=tools, add_generation_prompt=open_next, tokenize=False, enable_thinking=False
        )

    def encode(self, text: str) -> list[int]:
        """Ids of text in which marks are marks."""
        return self.tokenizer(text, add_special_tokens=False)["input_ids"]


class _ChatScript:
    """`Script` of a `ChatTemplateRenderer`; no step depends on what was read."""

    def __init__(self, renderer: ChatTemplateRenderer, prompt: list[int]) -> None:
        self.prompt = prompt
        self._renderer, self._tokenizer = renderer, renderer.tokenizer
        self._render, self._encode = renderer.render, renderer.encode

    def step(self, step: Step) -> list[int]:
        """What the assistant writes after its header, its end included."""
        if step.kind == "tool":
            call = {"type": "function", "function": {"name": step.tool, "arguments": _by_name(step.arguments)}}
            message: dict[str, Json] = {"role": "assistant", "content": "", "tool_calls": [call]}
        elif step.kind == "answer":
            message = {"role": "assistant", "content": json.dumps(_by_name(step.answer), ensure_ascii=False)}
        else:
            message = {"role": "assistant", "content": step.text or ""}
        asked = [{"role": "user", "content": "?"}]
        opened, whole = self._render(asked, open_next=True), self._render([*asked, message])
        written = whole[_common_prefix(opened, whole) :]
        return self._encode(written[: written.rindex(self._tokenizer.eos_token) + len(self._tokenizer.eos_token)])

    def parse(self, ids: Sequence[int]) -> Step:
        """A tool call, the answer (one JSON object), or a reply; `malformed` for a broken call or nothing at all."""
        kept = [i for i in ids if i not in self._renderer.stops]
        text = _THOUGHT.sub("", self._tokenizer.decode(kept, skip_special_tokens=False)).strip()
        answer = _json_object(fenced.group(1) if (fenced := _FENCE.match(text)) else text)
        if answer is not None:
            return Step(kind="answer", answer=answer)
        if "<tool_call>" not in text:
            return Step(kind="reply" if text else "malformed", text=text)
        call = _json_object(found.group(1)) if (found := _TOOL_CALL.search(text)) else None
        arguments = call.get("arguments", {}) if call else None
        arguments = _json_object(arguments) if isinstance(arguments, str) else arguments
        if call and isinstance(call.get("name"), str) and isinstance(arguments, dict):
            return Step(kind="tool", tool=call["name"], arguments=arguments)
        return Step(kind="malformed", text=text)

    def guide(self) -> None:
        """A model with a chat template has learnt its format."""

    def observation(self, step: Step, observation: Observation) -> list[int]:
        """The rest of the assistant's frame, the result as a message of the tool or the user, the next header."""
        if step.kind == "tool":
            content = json.dumps(_ordered(observation.value), ensure_ascii=False)
            message = {"role": "tool", "name": step.tool, "content": self._cut(content)}
        else:
            value = _ordered(observation.value)
            message = {"role": "user", "content": value if isinstance(value, str) else json.dumps(value)}
        before = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]
        head, whole = self._render(before), self._render([*before, message], open_next=True)
        end = head.rindex(self._tokenizer.eos_token) + len(self._tokenizer.eos_token)
        if head[:end] != whole[:end]:
            raise ValueError("this chat template rewrites earlier messages; use its prefix-preserving variant")
        return self._encode(whole[end:])

    def _cut(self, text: str) -> str:
        ids = self._encode(text)
        limit = self._renderer.max_observation
        return text if len(ids) <= limit else self._tokenizer.decode(ids[:limit]) + " …"


def tool_schema(tool: PublicTool) -> dict[str, Json]:
    """A tool in the form of the OpenAI API, which chat templates share."""
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.input_schema)},
    }


def _common_prefix(one: str, other: str) -> int:
    """How many characters the header of a generation has in common with the rendered message.

    Templates that open a generation with an empty thought write none, or another one, before a finished message.
    """
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _json_object(text: str) -> dict[str, Json] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
