"""The renderer of models with a chat template that knows tools."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_world.environments.model import Json
from agent_world.models.chat import function_schema, json_object
from agent_world.models.renderer import Script, by_name, ordered
from agent_world.rollouts.model import Observation, Step, Turn

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

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
        self.longest_step = 2048

    def begin(self, turn: Turn) -> Script:
        """A script whose prompt holds answer schema, tool schemas, instruction, and the header of the first step."""
        messages = [
            {"role": "system", "content": SYSTEM_PROMPT + json.dumps(turn.answer_schema, ensure_ascii=False)},
            {"role": "user", "content": turn.instruction},
        ]
        tools = [function_schema(tool.name, tool.description, tool.input_schema) for tool in turn.tools]
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
            call = {"type": "function", "function": {"name": step.tool, "arguments": by_name(step.arguments)}}
            message: dict[str, Json] = {"role": "assistant", "content": "", "tool_calls": [call]}
        elif step.kind == "answer":
            message = {"role": "assistant", "content": json.dumps(by_name(step.answer), ensure_ascii=False)}
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
        answer = json_object(fenced.group(1) if (fenced := _FENCE.match(text)) else text)
        if answer is not None:
            return Step(kind="answer", answer=answer)
        if "<tool_call>" not in text:
            return Step(kind="reply" if text else "malformed", text=text)
        call = json_object(found.group(1)) if (found := _TOOL_CALL.search(text)) else None
        arguments = json_object(call.get("arguments", {})) if call else None
        if call and isinstance(call.get("name"), str) and arguments is not None:
            return Step(kind="tool", tool=call["name"], arguments=arguments)
        return Step(kind="malformed", text=text)

    def guide(self) -> None:
        """A model with a chat template has learnt its format."""

    def observation(self, step: Step, observation: Observation) -> list[int]:
        """The rest of the assistant's frame, the result as a message of the tool or the user, the next header."""
        if step.kind == "tool":
            content = json.dumps(ordered(observation.value), ensure_ascii=False)
            message = {"role": "tool", "name": step.tool, "content": self._cut(content)}
        else:
            value = ordered(observation.value)
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


def _common_prefix(one: str, other: str) -> int:
    """How many characters the header of a generation has in common with the rendered message.

    Templates that open a generation with an empty thought write none, or another one, before a finished message.
    """
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
