"""Between turns and token ids: one protocol, one renderer for the tiny policy, one for models with a chat template.

A context is what the policy reads and writes in one episode: the prompt, then alternately the ids that the policy wrote
and the ids of what came back. Every renderer builds it by appending, never by writing an earlier part anew, so that a
key-value cache stays valid and the loss mask is exact.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import quote, unquote

from agent_world.environments.model import Json, PublicTool
from agent_world.models.compact import NEXT, NotationError, dump, dump_record, load, load_record, opening
from agent_world.rollouts.model import Observation, Step, Turn

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class Renderer(Protocol):
    """Turns to prompt ids, steps to ids and back, observations to ids.

    `stops` are the ids with which the policy ends a step; `closing` stands in for one that was cut off; `pad` fills.
    """

    stops: frozenset[int]
    closing: int
    pad: int

    def prompt(self, turn: Turn) -> list[int]:
        """What the policy reads before its first step."""
        ...

    def step(self, step: Step) -> list[int]:
        """What the policy writes to take `step`, its stop included."""
        ...

    def parse(self, ids: Sequence[int]) -> Step:
        """The step that the policy took by writing `ids`; never raises: what is no step is `malformed`."""
        ...

    def observation(self, step: Step, observation: Observation) -> list[int]:
        """What the policy reads between the stop of `step` and its next step."""
        ...


class Transcript(NamedTuple):
    """An episode as one sequence: `ids` [T], `written` [T], true where the policy wrote."""

    ids: list[int]
    written: list[bool]
    prompt: int


def transcript(renderer: Renderer, turn: Turn, steps: Sequence[tuple[Step, Observation | None]]) -> Transcript:
    """The context after `steps` of the episode that begins with `turn` (whose history is not looked at).

    Steps that carry their own ids keep them; the others, from solvers and demonstrations, are rendered.
    """
    ids = renderer.prompt(turn)
    prompt = len(ids)
    written = [False] * prompt
    for step, observation in steps:
        wrote = list(step.tokens.ids) if step.tokens else renderer.step(step)
        came_back = [] if observation is None else observed(renderer, wrote, step, observation)
        ids += wrote + came_back
        written += [True] * len(wrote) + [False] * len(came_back)
    return Transcript(ids, written, prompt)


def observed(renderer: Renderer, wrote: Sequence[int], step: Step, observation: Observation) -> list[int]:
    """The ids that follow a step: its end where the policy left none, then the observation."""
    ended = bool(wrote) and wrote[-1] in renderer.stops
    return ([] if ended else [renderer.closing]) + renderer.observation(step, observation)


def renderer_for(tokenizer: PreTrainedTokenizerBase) -> Renderer:
    """The renderer that fits a tokenizer: tiny policies are known by their marks, others need a chat template."""
    if set(TinyRenderer.MARKS) <= set(tokenizer.get_vocab()):
        return TinyRenderer(tokenizer)
    return ChatTemplateRenderer(tokenizer)


class TinyRenderer:
    """Environment tag, instruction, answer fields; then calls, observations and the answer in compact notation.

    No tool list: at a million parameters a list costs tokens and is not read (docs/training.md). Scalars of an
    observation come before its lists, and what is longer than `max_observation` ids is cut at its end.
    """

    MARKS = ("<pad>", "<u>", "<f>", "<c>", "<r>", "<o>", "<a>", "<e>")

    def __init__(self, tokenizer: PreTrainedTokenizerBase, *, max_observation: int = 192) -> None:
        self._tokenizer = tokenizer.backend_tokenizer
        self._tokenizer.encode_special_tokens = True  # "<c>" inside an instruction is text, not a mark
        self._max_observation = max_observation
        self._id = {mark: self._tokenizer.token_to_id(mark) for mark in self.MARKS}
        self._marks = frozenset(self._id.values())
        self.stops = frozenset((self._id["<o>"], self._id["<e>"]))
        self.closing = self._id["<o>"]
        self.pad = self._id["<pad>"]

    def prompt(self, turn: Turn) -> list[int]:
        """``<u>tag instruction<f> field=" other_field=``: each answer field with the opening of its type."""
        tag = self._tokenizer.token_to_id(tag_token(turn.environment))
        head = [self._id["<u>"], *([tag] if tag is not None else self._encode(turn.environment + ":"))]
        fields = "".join(
            f" {quote(name, safe='')}={opening(schema)}"
            for name, schema in turn.answer_schema.get("properties", {}).items()
        )
        return [*head, *self._encode(" " + turn.instruction), self._id["<f>"], *self._encode(fields)]

    def step(self, step: Step) -> list[int]:
        """``<c>tool key="value<o>``, ``<r>text<o>`` or ``<a> field="value<e>``."""
        if step.kind == "tool":
            return self._framed("<c>", quote(step.tool or "", safe="") + dump_record(step.arguments), "<o>")
        if step.kind == "reply":
            return self._framed("<r>", step.text or "", "<o>")
        if step.kind == "answer":
            text = dump_record(step.answer) if isinstance(step.answer, dict) else NEXT + dump(step.answer)
            return self._framed("<a>", text, "<e>")
        return self._encode(step.text or "")

    def parse(self, ids: Sequence[int]) -> Step:
        """The step that the policy wrote; `malformed` with its text when it is none."""
        body = ids[1:-1]
        kind = (ids[0], ids[-1]) if len(ids) > 1 and not self._marks.intersection(body) else None
        text = self._tokenizer.decode(list(body), skip_special_tokens=False)
        try:
            if kind == (self._id["<c>"], self._id["<o>"]):
                name, space, rest = text.partition(" ")
                if name:
                    return Step(kind="tool", tool=unquote(name), arguments=load_record(space + rest))
            if kind == (self._id["<r>"], self._id["<o>"]):
                return Step(kind="reply", text=text)
            if kind == (self._id["<a>"], self._id["<e>"]):
                return Step(kind="answer", answer=load(text[1:]) if text.startswith(NEXT) else load_record(text))
        except NotationError:
            pass
        return Step(kind="malformed", text=self._tokenizer.decode(list(ids), skip_special_tokens=False))

    def observation(self, step: Step, observation: Observation) -> list[int]:
        """The result as a record; ``!code message`` for a call that gave none."""
        value = observation.value
        if observation.status != "ok":
            error = value.get("error", {}) if isinstance(value, dict) else {}
            text = f"!{error.get('code', observation.status)} {error.get('message', '')}".rstrip()
        elif isinstance(value, dict):
            text = dump_record(dict(sorted(value.items(), key=lambda pair: isinstance(pair[1], (dict, list)))))
        else:
            text = NEXT + dump(value)
        return self._encode(text)[: self._max_observation]

    def _framed(self, opening: str, text: str, closing: str) -> list[int]:
        return [self._id[opening], *self._encode(text), self._id[closing]]

    def _encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids


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
        self._tokenizer = tokenizer
        self._max_observation = max_observation
        self.stops = frozenset((tokenizer.eos_token_id,))
        self.closing = tokenizer.eos_token_id
        self.pad = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id

    def prompt(self, turn: Turn) -> list[int]:
        """System prompt with the answer schema, tool schemas, instruction, and the header of the first step."""
        messages = [
            {"role": "system", "content": SYSTEM_PROMPT + json.dumps(turn.answer_schema, ensure_ascii=False)},
            {"role": "user", "content": turn.instruction},
        ]
        return self._encode(self._render(messages, [tool_schema(tool) for tool in turn.tools], open_next=True))

    def step(self, step: Step) -> list[int]:
        """What the assistant writes after its header, its end included."""
        if step.kind == "tool":
            call = {"type": "function", "function": {"name": step.tool, "arguments": dict(step.arguments)}}
            message: dict[str, Json] = {"role": "assistant", "content": "", "tool_calls": [call]}
        elif step.kind == "answer":
            message = {"role": "assistant", "content": json.dumps(step.answer, ensure_ascii=False)}
        else:
            message = {"role": "assistant", "content": step.text or ""}
        asked = [{"role": "user", "content": "?"}]
        opened, whole = self._render(asked, open_next=True), self._render([*asked, message])
        written = whole[_common_prefix(opened, whole) :]
        return self._encode(written[: written.rindex(self._tokenizer.eos_token) + len(self._tokenizer.eos_token)])

    def parse(self, ids: Sequence[int]) -> Step:
        """A tool call, the answer (one JSON object), or a reply; `malformed` for a broken call or nothing at all."""
        kept = [i for i in ids if i not in self.stops]
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

    def observation(self, step: Step, observation: Observation) -> list[int]:
        """The rest of the assistant's frame, the result as a message of the tool or the user, the next header."""
        if step.kind == "tool":
            content = json.dumps(observation.value, ensure_ascii=False)
            message = {"role": "tool", "name": step.tool, "content": self._cut(content)}
        else:
            value = observation.value
            message = {"role": "user", "content": value if isinstance(value, str) else json.dumps(value)}
        before = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]
        head, whole = self._render(before), self._render([*before, message], open_next=True)
        end = head.rindex(self._tokenizer.eos_token) + len(self._tokenizer.eos_token)
        if head[:end] != whole[:end]:
            raise ValueError("this chat template rewrites earlier messages; use its prefix-preserving variant")
        return self._encode(whole[end:])

    def _cut(self, text: str) -> str:
        ids = self._encode(text)
        limit = self._max_observation
        return text if len(ids) <= limit else self._tokenizer.decode(ids[:limit]) + " …"

    def _render(
        self, messages: list[dict[str, Json]], tools: list[Json] | None = None, *, open_next: bool = False
    ) -> str:
        return self._tokenizer.apply_chat_template(
            messages, tools=tools, add_generation_prompt=open_next, tokenize=False, enable_thinking=False
        )

    def _encode(self, text: str) -> list[int]:
        return self._tokenizer(text, add_special_tokens=False)["input_ids"]


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
