from __future__ import annotations

import pytest

from agent_world import world
from agent_world.reporting.figures import flawed_tools_table
from agent_world.reporting.report import write_report

CALL = {"tool": "get_book", "arguments": {"book_id": "B1"}}
SEEN = {"error": {"code": "not_found", "message": "no such book"}}


@pytest.fixture
def lake(tmp_path):
    """A kept tool with an accuracy of 0.75, one of 1.0, and a rejected one with the name of the first."""
    opened = world.open(tmp_path / "lake", create=True)
    with opened.begin("toy", derivation="d0") as batch:
        flawed = tool(batch, "get_book", accuracy=0.75)
        case(batch, flawed, 1, expect={"title": "x" * 300}, passed=False, reason="wrong_refusal", seen=SEEN)
        case(batch, flawed, 2, refusal="not_found", passed=False, reason="not_refused", seen={"a": 1}, before=[CALL])
        case(batch, flawed, 3, expect={"title": "y"}, passed=True)
        case(batch, tool(batch, "whole", accuracy=1.0), 1, expect={}, passed=True)
        rejected = tool(batch, "get_book", accuracy=0.0, accepted=False, source="another")
        case(batch, rejected, 9, expect={}, passed=False, reason="wrong_value", seen={})
        batch.record(
            "gate_verdicts",
            {"gate": "tool", "subject_kind": "tool", "subject": flawed, "environment": "library", "accepted": True,
             "reason": None, "evidence": {}, "author": "rule", "round": 0},
        )  # fmt: skip
    return opened


def tool(batch, name, *, accuracy, accepted=True, source="def ..."):
    version = batch.create("tool", f"library/{name}", {"name": name, "tool_id": f"library/{name}", "source": source})
    batch.observe(version, {"accepted": accepted, "accuracy": accuracy, "tests": 4})
    return version


def case(batch, tool, number, *, expect=None, refusal=None, before=(), **seen):
    payload = {
        "tool": "get_book", "name": f"case {number}", "call": CALL, "before": list(before), "expect": expect,
        "refusal": refusal,
    }  # fmt: skip
    test = batch.create("tool_test", f"library/get_book/{number:02d}", payload, parents=[(tool, "tool")])
    batch.observe(test, seen)


def test_every_failing_case_of_a_kept_tool_is_shown_with_its_call_what_was_expected_and_what_came(lake):
    first, second = sorted(flawed_tools_table(lake), key=lambda row: row["test"])
    assert first["tool"] == "library/get_book"
    assert (first["accuracy"], first["test"], first["reason"]) == (0.75, "case 1", "wrong_refusal")
    assert first["call"] == 'get_book {"book_id":"B1"}'
    assert first["expected"].startswith('{"title":"xxx')
    assert len(first["expected"]) == 200
    assert first["seen"] == '{"error":{"code":"not_found","message":"no such book"}}'
    assert second["call"] == 'get_book {"book_id":"B1"}; get_book {"book_id":"B1"}'
    assert second["expected"] == '{"refusal":"not_found"}'


def test_the_report_shows_the_failing_cases(lake):
    page = write_report(lake)
    assert "get_book {&quot;book_id&quot;:&quot;B1&quot;}" in page
    assert "no such book" in page
