"""Unit tests of tools, each with its expected value from an independent route."""

from __future__ import annotations

from lake_schemas.base import TableSpec, boolean, json_text, text

TABLE = TableSpec(
    name="tool_tests",
    shape="artifact",
    kind="tool_test",
    meaning="Unit tests of tools, each with its expected value from an independent route.",
    key=("version_id",),
    columns=(
        text("tool", "tool name"),
        text("name", "what it checks"),
        text("kind", "typical, refusal, edge or effect"),
        json_text("call", "the call"),
        json_text("before", "calls that set the scene"),
        json_text("expect", "expected result"),
        text("refusal", "expected refusal code"),
        boolean("passed", "passed in the sandbox, twice alike", observed=True),
        text("reason", "why it failed", observed=True),
        json_text("seen", "what came back", observed=True),
    ),
)
