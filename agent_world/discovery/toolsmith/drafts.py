"""A proposed tool with its tests, and the small builder that keeps those tests uniform."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from agent_world.environments.model import Call, Json, Tool, ToolTest

TestKind = Literal["typical", "refusal", "edge", "effect"]

INVALID = "invalid_arguments"
"""The code with which a session answers arguments that break a tool's input schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A tool as proposed: `about` names the entity or document it serves, `worth` orders rivals (larger is better).

    `unsure` marks a guess about the data that nothing but its tests can settle.
    """

    tool: Tool
    tests: tuple[ToolTest, ...]
    about: str
    worth: float = 1.0
    unsure: bool = False


@dataclass(slots=True)
class TestSheet:
    """Collects the unit tests of one tool; a call that is already there is not added again."""

    __test__ = False

    tool: str
    tests: list[ToolTest] = field(default_factory=list)

    def gives(self, name: str, kind: TestKind, arguments: Mapping[str, Json], expect: Json) -> None:
        """The call gives `expect`."""
        self._add(name, kind, arguments, expect=expect)

    def refuses(self, name: str, arguments: Mapping[str, Json], code: str = INVALID) -> None:
        """The call is turned down with `code`."""
        self._add(name, "refusal", arguments, refusal=code)

    def _add(
        self,
        name: str,
        kind: TestKind,
        arguments: Mapping[str, Json],
        *,
        expect: Json = None,
        refusal: str | None = None,
    ) -> None:
        call = Call(tool=self.tool, arguments=dict(arguments))
        if any(test.call == call for test in self.tests):
            return
        self.tests.append(ToolTest(name=name, tool=self.tool, kind=kind, call=call, expect=expect, refusal=refusal))
