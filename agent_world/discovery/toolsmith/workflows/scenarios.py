"""Tests of a workflow: little stories of calls whose last answer a plain-Python ledger foretells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_world.discovery.toolsmith.answers.ledger import Ledger, Refusal
from agent_world.discovery.toolsmith.drafts import INVALID, TestKind
from agent_world.environments.model import Call, Json, ToolTest


@dataclass(frozen=True, slots=True)
class Made:
    """In a story: the value that call number `call` gave as `field`."""

    call: int
    field: str


Step = tuple[str, Mapping[str, Any]]
"""A tool and its arguments, some of which may be `Made` earlier in the story."""


@dataclass(slots=True)
class Scenarios:
    """Collects the tests of one overlay. Each story runs on a fresh ledger.

    In a test, an argument or an expected value that an earlier call made is written
    ``{"$ref": "before[0].booking_id"}``, an id that the checked call makes itself ``{"$minted": "BK"}``.
    """

    ledger: Callable[[], Ledger]
    tests: dict[str, list[ToolTest]] = field(default_factory=dict)

    def add(self, tool: str, name: str, kind: TestKind, *steps: Step) -> None:
        """A test of `tool`: what the last of `steps` gives after the others, or how it is refused."""
        ledger = self.ledger()
        results: list[Mapping[str, Json]] = []
        calls: list[Call] = []
        refused = None
        for called, arguments in steps:
            given = {key: _given(value, results) for key, value in arguments.items()}
            calls.append(Call(tool=called, arguments={key: _reference(value) for key, value in arguments.items()}))
            try:
                results.append(ledger.call(called, given))
                refused = None
            except Refusal as refusal:
                results.append({})
                refused = refusal.code
        known: dict[str, str] = {}
        for number, result in enumerate(results[:-1]):
            for key, value in result.items():
                if isinstance(value, str) and value in ledger.minted:
                    known.setdefault(value, f"before[{number}].{key}")
        expect = None if refused else _placed(results[-1], ledger.minted, known)
        self._keep(
            ToolTest(
                name=name,
                tool=tool,
                kind="refusal" if refused else kind,
                before=tuple(calls[:-1]),
                call=calls[-1],
                expect=expect,
                refusal=refused,
            )
        )

    def invalid(self, tool: str, name: str, arguments: Mapping[str, Json]) -> None:
        """A test of arguments that break the schema of `tool`."""
        self._keep(
            ToolTest(
                name=name, tool=tool, kind="refusal", call=Call(tool=tool, arguments=dict(arguments)), refusal=INVALID
            )
        )

    def transition(
        self,
        tool: str,
        show: str,
        record_id: str,
        first: Sequence[Step],
        other: Sequence[Step],
        show_first: str = "is kept",
    ) -> None:
        """The stories every change of state has: it works, it lasts, it hits the right record, the unknown is refused.

        `first` and `other` make a record each, in the state that the change starts from; their first call makes its id.
        """
        self.add(tool, "works", "typical", *first, (tool, {record_id: Made(0, record_id)}))
        self.add(
            tool,
            show_first,
            "effect",
            *first,
            (tool, {record_id: Made(0, record_id)}),
            (show, {record_id: Made(0, record_id)}),
        )
        self.add(
            tool,
            "hits the second one made",
            "edge",
            *first,
            *_shifted(other, len(first)),
            (tool, {record_id: Made(len(first), record_id)}),
        )
        self.add(
            tool,
            "leaves the first one alone",
            "effect",
            *first,
            *_shifted(other, len(first)),
            (tool, {record_id: Made(len(first), record_id)}),
            (show, {record_id: Made(0, record_id)}),
        )
        self.add(tool, "is refused twice", "refusal", *first, *[(tool, {record_id: Made(0, record_id)})] * 2)
        self.add(tool, "refuses an unknown id", "refusal", (tool, {record_id: "XX0000"}))

    def _keep(self, test: ToolTest) -> None:
        own = self.tests.setdefault(test.tool, [])
        if not any((other.before, other.call) == (test.before, test.call) for other in own):
            own.append(test)


def _shifted(steps: Sequence[Step], by: int) -> list[Step]:
    """Steps that come `by` calls later in a story."""
    return [
        (tool, {k: Made(v.call + by, v.field) if isinstance(v, Made) else v for k, v in arguments.items()})
        for tool, arguments in steps
    ]


def _given(value: Any, results: Sequence[Mapping[str, Json]]) -> Json:
    return results[value.call][value.field] if isinstance(value, Made) else value


def _reference(value: Any) -> Json:
    return {"$ref": f"before[{value.call}].{value.field}"} if isinstance(value, Made) else value


def _placed(value: Json, minted: Mapping[str, str], known: Mapping[str, str]) -> Json:
    """`value` with the ids of the ledger replaced: by a reference to an earlier call, else by their prefix."""
    if isinstance(value, dict):
        return {key: _placed(item, minted, known) for key, item in value.items()}
    if isinstance(value, list):
        return [_placed(item, minted, known) for item in value]
    if isinstance(value, str) and value in known:
        return {"$ref": known[value]}
    return {"$minted": minted[value]} if isinstance(value, str) and value in minted else value
