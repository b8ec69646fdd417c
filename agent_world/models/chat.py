"""A policy behind an OpenAI-compatible endpoint: tools as functions, the answer as a call of ``submit_answer``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from agent_world.identity import canonical_json, sha256
from agent_world.models.client import ChatClient
from agent_world.rollouts.model import Observation, Step, Turn

SUBMIT = "submit_answer"
SYSTEM_PROMPT = f"""\
You complete a task in a live environment by calling tools, one call at a time. Read each result before the next call.
Change nothing that the task does not ask for. When you know everything the task asks for and every change it asks for
is made, call {SUBMIT} once with the final answer. Never guess a value that a tool can tell you."""
_KEPT_SEED = 2**31 - 1


class ChatPolicy:
    """Acts through chat completions; the messages are rebuilt from the turn, so it keeps no state.

    A message without a tool call is a reply to the user. A call whose arguments are no JSON object is a malformed step.
    Of several calls in one message only the first is made. `max_parallel` requests run at once.
    """

    def __init__(
        self,
        client: ChatClient,
        *,
        temperature: float = 1.0,
        top_p: float = 1.0,
        max_tokens: int = 2048,
        max_parallel: int = 8,
        system_prompt: str = SYSTEM_PROMPT,
    ) -> None:
        self.client = client
        self.name = client.endpoint.model
        self._sampling = {"temperature": temperature, "top_p": top_p, "max_tokens": max_tokens}
        self._max_parallel, self._system_prompt = max_parallel, system_prompt
        self.version = f"{self.name}@{sha256(canonical_json([self._sampling, system_prompt]))[:12]}"

    def act(self, turns: Sequence[Turn]) -> list[Step]:
        """One completion a turn.

        Raises:
            EndpointError: the endpoint failed for one of the turns, for good.
        """
        if len(turns) == 1 or self._max_parallel == 1:
            return [self._step(turn) for turn in turns]
        with ThreadPoolExecutor(self._max_parallel, thread_name_prefix="chat") as pool:
            return list(pool.map(self._step, turns))

    def forget(self, episodes: Sequence[str]) -> None:
        """Nothing is kept."""

    def _step(self, turn: Turn) -> Step:
        submit = submit_name(turn)
        request = {
            "messages": messages(turn, self._system_prompt),
            "tools": tool_functions(turn),
            "tool_choice": "auto",
            "parallel_tool_calls": False,
            "seed": turn.seed & _KEPT_SEED,
            **self._sampling,
        }
        return step_of(self.client.complete(request)["choices"][0]["message"], submit)


def submit_name(turn: Turn) -> str:
    """The name of the function that takes the answer: ``submit_answer``, longer when a tool is called so."""
    name, taken = SUBMIT, {tool.name for tool in turn.tools}
    while name in taken:
        name += "_"
    return name


def tool_functions(turn: Turn) -> list[dict[str, Any]]:
    """The environment's tools and the answer as function definitions."""
    tools = [function_schema(tool.name, tool.description, tool.input_schema) for tool in turn.tools]
    submit = function_schema(submit_name(turn), "Give the final answer and end the task.", turn.answer_schema)
    return [*tools, submit]


def messages(turn: Turn, system_prompt: str) -> list[dict[str, Any]]:
    """The conversation so far."""
    said: list[dict[str, Any]] = [
        {"role": "system", "content": system_prompt},
        {"role": "user", "content": turn.instruction},
    ]
    for index, (step, observation) in enumerate(turn.history):
        said += _exchange(f"call_{index}", step, observation)
    return said


def step_of(message: Mapping[str, Any], submit: str) -> Step:
    """The step that an assistant message makes."""
    calls = message.get("tool_calls") or []
    text = message.get("content") or ""
    if not calls:
        return Step(kind="reply", text=text) if text.strip() else Step(kind="malformed", text=text)
    function = calls[0].get("function") or {}
    name, raw = function.get("name"), function.get("arguments") or "{}"
    arguments = json_object(raw)
    if not name or arguments is None:
        return Step(kind="malformed", text=f"{name}({raw})"[:2000])
    if name == submit:
        return Step(kind="answer", answer=arguments, text=text or None)
    return Step(kind="tool", tool=name, arguments=arguments, text=text or None)


def json_object(raw: object) -> dict[str, Any] | None:
    """The JSON object that a model gave, as itself or as text; None when it is none."""
    try:
        value = json.loads(raw) if isinstance(raw, str) else raw
    except (ValueError, RecursionError):
        return None
    return dict(value) if isinstance(value, Mapping) else None


def _exchange(call: str, step: Step, observation: Observation) -> list[dict[str, Any]]:
    result = canonical_json(observation.value)
    if step.kind == "tool":
        function = {"name": step.tool, "arguments": canonical_json(step.arguments)}
        made = {"id": call, "type": "function", "function": function}
        return [
            {"role": "assistant", "content": step.text or "", "tool_calls": [made]},
            {"role": "tool", "tool_call_id": call, "content": result},
        ]
    spoken = observation.value.get("user") if isinstance(observation.value, Mapping) else None
    return [{"role": "assistant", "content": step.text or ""}, {"role": "user", "content": spoken or result}]


def function_schema(name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """A function in the form of the OpenAI API, which chat templates share."""
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": dict(parameters)},
    }
