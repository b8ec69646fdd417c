from dataclasses import replace
from functools import cache

import pytest

from agent_world.discovery.toolsmith.proposal import with_tables
from agent_world.discovery.toolsmith.view import view_of
from agent_world.discovery.toolsmith.workflows import WORKFLOWS, overlays_for, watchlist
from agent_world.environments.tool_gate import check_tools
from agent_world.identity import rng
from agent_world.sandbox import default_sandbox
from tests.discovery.toolsmith.worlds import Words, ferries

ASKED = {
    "loan": Words(nouns=("ship", "loan", "borrower"), verbs=("lend", "return", "renew")),
    "assignment": Words(nouns=("crew", "ship", "employee"), verbs=("assign",)),
    "review": Words(nouns=("claim", "port"), verbs=("approve", "reject")),
}
NAMES = [workflow.NAME for workflow in WORKFLOWS]


@cache
def written(name):
    """One overlay over the ferry line, with the verdicts on its tools."""
    database, files = ferries()
    view, theme = view_of(database, files), ASKED.get(name, Words())
    workflow = next(workflow for workflow in WORKFLOWS if workflow.NAME == name)
    fit = max(workflow.fits(view, theme), key=lambda fit: fit.score)
    overlay = workflow.write(view, fit, theme, rng("test", name))
    tools = [draft.tool for draft in overlay.drafts]
    tests = [test for draft in overlay.drafts for test in draft.tests]
    verdicts = check_tools(database, with_tables(files, overlay.tables), tools, tests, default_sandbox())
    return overlay, verdicts


@pytest.mark.parametrize("name", NAMES)
def test_every_tool_of_a_workflow_does_what_its_ledger_says(name):
    _, verdicts = written(name)
    assert [(v.tool.name, v.detail) for v in verdicts if v.accuracy != 1.0] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_workflow_writes_more_than_it_reads_and_starts_empty(name):
    overlay, _ = written(name)
    writers = [draft.tool for draft in overlay.drafts if draft.tool.writes]
    assert len(writers) >= 4 and len(overlay.drafts) - len(writers) in (1, 2)
    assert all(table.workflow == name and table.rows == 0 for table in overlay.tables)
    assert {tool.workflow for tool in writers} == {name}


@pytest.mark.parametrize("name", NAMES)
def test_the_stories_of_a_tool_have_a_refusal_an_edge_and_an_effect_or_reading(name):
    overlay, _ = written(name)
    for draft in overlay.drafts:
        kinds = [test.kind for test in draft.tests]
        assert len(kinds) >= 4 and "refusal" in kinds and "edge" in kinds, draft.tool.name
        if draft.tool.writes:
            assert "effect" in kinds, draft.tool.name


@pytest.mark.parametrize("name", NAMES)
def test_one_call_mints_what_other_calls_need(name):
    overlay, _ = written(name)
    minted = {
        (m.table, m.column) for draft in overlay.drafts for m in draft.tool.outputs.values() if m.kind == "minted"
    }
    needed = {(m.table, m.column) for draft in overlay.drafts for m in draft.tool.inputs.values() if m.kind == "key"}
    assert len(minted) == 1 and minted <= needed


BROKEN = [
    ("booking", "book_sailing", "AND status <> 'cancelled'", ""),
    ("booking", "book_sailing", "if seats > left:", "if seats >= left:"),
    ("booking", "book_sailing", 'if sailing["departure_time"] is None:', "if False:"),
    ("booking", "move_booking", "return sailing[\"capacity\"] - taken", "return sailing[\"capacity\"]"),
    ("order", "add_sailing_to_order", "sum(price * quantity)", "sum(price)"),
    ("order", "place_order", "SELECT 1 FROM order_lines WHERE order_id = ?", "SELECT 1 FROM orders WHERE order_id = ?"),
    ("loan", "lend_ship", "open_loans >= MOST_OPEN", "open_loans > MOST_OPEN"),
    ("loan", "lend_ship", "SHORT_LOAN_DAYS if", "LOAN_DAYS if"),
    ("watchlist", "move_port_in_itinerary", "rank = rank - 1", "rank = rank"),
    ("watchlist", "add_port_to_itinerary", "len(listed) + 1", "len(listed)"),
    ("ticket", "assign_issue", "status = 'assigned'\", (", "status = 'open'\", ("),
    ("review", "submit_port_claim", "if not port[\"active\"]:", "if port[\"active\"]:"),
    ("assignment", "assign_employee_to_ship", "taken >= MOST", "taken > MOST"),
    ("subscription", "switch_subscription", "!= region", "== region"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "tool_name", "right", "wrong"), BROKEN, ids=lambda value: str(value)[:24])
def test_a_broken_rule_fails_a_test(name, tool_name, right, wrong):
    from dataclasses import replace

    overlay, _ = written(name)
    database, files = ferries()
    tools = [draft.tool for draft in overlay.drafts]
    tool = next(tool for tool in tools if tool.name == tool_name)
    assert right in tool.source
    broken = replace(tool, source=tool.source.replace(right, wrong))
    mixed = [broken if tool.name == tool_name else tool for tool in tools]
    tests = next(draft.tests for draft in overlay.drafts if draft.tool.name == tool_name)
    verdict = next(
        v
        for v in check_tools(database, with_tables(files, overlay.tables), mixed, tests, default_sandbox())
        if v.tool.name == tool_name
    )
    assert verdict.failed


def test_two_overlays_of_different_kinds_are_chosen_for_what_the_data_carries():
    view = view_of(*ferries())
    chosen = overlays_for(view, Words(), seed=3)
    assert [overlay.workflow for overlay in chosen] == ["booking", "assignment"]


def test_the_words_of_a_theme_sway_the_choice():
    view = view_of(*ferries())
    chosen = overlays_for(
        view, Words(nouns=("port", "claim", "approval"), verbs=("approve", "submit", "review")), seed=3
    )
    assert "review" in [overlay.workflow for overlay in chosen]


def test_a_list_is_of_what_people_can_name():
    view = view_of(*ferries())
    assert {fit.subject.label is not None for fit in watchlist.fits(view, Words())} == {True}
    nameless = replace(view, entities=tuple(replace(entity, label=None) for entity in view.entities))
    assert watchlist.fits(nameless, Words())
