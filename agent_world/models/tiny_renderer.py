"""The renderer of the tiny policy: environment tag, instruction, answer fields, then the compact notation."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from agent_world.environments.model import Json, PublicTool
from agent_world.models.compact import NEXT, NotationError, dump, dump_record, load, load_record, opening, spelt
from agent_world.models.grammar import Automaton, Guide, Vocabulary, answer_automaton, tools_automaton
from agent_world.models.references import References
from agent_world.models.renderer import Script, by_name, ordered
from agent_world.rollouts.model import Observation, Step, Turn

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

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
        self.longest_step = 128
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
            arguments = dump_record(by_name(step.arguments), short)
            return self._framed("<c>", quote(step.tool or "", safe="") + arguments, "<o>")
        if step.kind == "reply":
            return self._framed("<r>", dump(step.text or ""), "<o>")
        if step.kind == "answer":
            answer = by_name(step.answer)
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
        except (NotationError, RecursionError):
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
            text = dump_record(ordered(value), short)
        else:
            text = NEXT + dump(ordered(value), short)
        return self._encode(text)[: self._renderer.max_observation]

    def _framed(self, opening: str, text: str, closing: str) -> list[int]:
        return [self._id[opening], *self._encode(text), self._id[closing]]

    def _encode(self, text: str) -> list[int]:
        return self._renderer.tokenizer.encode(text, add_special_tokens=False).ids

    def _decode(self, ids: Sequence[int]) -> str:
        return self._renderer.tokenizer.decode(list(ids), skip_special_tokens=False)


def tag_token(environment: str) -> str:
    """The one token that stands for an environment the tokenizer was made with."""
    return f"<@{environment}>"
