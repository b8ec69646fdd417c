from dataclasses import replace

import pytest

from agent_world.discovery.structure import structure
from agent_world.discovery.toolsmith.documents import document_drafts
from agent_world.discovery.toolsmith.view import view_of
from agent_world.environments.model import DOCUMENTS_FOLDER
from agent_world.environments.tool_gate import check_tools
from agent_world.identity import VersionId
from agent_world.sandbox import default_sandbox
from tests.discovery.toolsmith.worlds import ferries, page, raw_table, sheet

HEADER = ("port_id", "note", "tariff", "since")
ROWS = [
    ("P000", "Ålesund's “old” quay", "no", 1961),
    ("P001", "50% & #1: {a_b}", "0x1F", 1970),
    ("P002", None, "1.20", 1982),
    ("P003", "tilde ~ and back\\slash ^", "yes", 1990),
    ("P004", "it's 'quoted', \"twice\"", "null", 2001),
    ("P005", "a < b > c", "- dash", 2011),
]
HTML = (
    "<html><body><h2>Line</h2><h3>Fares</h3><p>Ten &lt; eleven &amp; <code>x</code>, so.</p>"
    "<dl><dt>a</dt><dd>b</dd></dl>"
    "<h3>Dogs <em>welcome</em></h3><p>On a&nbsp;leash.</p></body></html>"
)
MARKDOWN = "intro\n\n# Fares\n\nTen is less than *eleven*.\n\n## Dogs   welcome\n\nOn a leash,\nalways.\n"


def judged(*documents):
    database, files = ferries(*documents)
    drafts = document_drafts(view_of(database, files), files, seed=1)
    tools, tests = [draft.tool for draft in drafts], [test for draft in drafts for test in draft.tests]
    return {verdict.tool.name: verdict for verdict in check_tools(database, files, tools, tests, default_sandbox())}


@pytest.mark.parametrize("form", ["json", "csv", "yaml", "sql", "tex", "html"])
def test_a_sheet_of_any_format_is_read_as_other_readers_read_it(form):
    verdicts = judged(sheet(form, HEADER, ROWS))
    reader = verdicts["read_harbour_fee_sheet"]
    assert (reader.accuracy, reader.detail) == (1.0, "")
    assert len(reader.results) >= 4 and reader.tool.documents == (f"harbour-fees.{form}",)


@pytest.mark.parametrize("form", ["json", "csv", "yaml"])
def test_a_sheet_that_is_easily_written_can_be_corrected(form):
    verdict = judged(sheet(form, HEADER, ROWS))["correct_harbour_fee_sheet"]
    assert (verdict.accuracy, verdict.detail, verdict.tool.writes) == (1.0, "", True)


@pytest.mark.parametrize("form", ["sql", "tex", "html"])
def test_any_other_sheet_takes_notes(form):
    verdict = judged(sheet(form, HEADER, ROWS))["annotate_harbour_fee_sheet"]
    assert (verdict.accuracy, verdict.detail, verdict.tool.writes) == (1.0, "", True)


@pytest.mark.parametrize(("form", "text"), [("html", HTML), ("md", MARKDOWN)])
def test_a_page_is_read_by_section_and_takes_notes(form, text):
    verdicts = judged(page(form, text))
    assert {name: (v.accuracy, v.detail) for name, v in verdicts.items()} == {
        "read_guide_page": (1.0, ""),
        "annotate_guide_page": (1.0, ""),
    }
    assert verdicts["read_guide_page"].tool.input_schema["properties"]["section"]["enum"] == ["Fares", "Dogs welcome"]


def test_the_key_of_a_sheet_is_tied_to_the_records_it_repeats():
    tool = judged(sheet("json", HEADER, ROWS))["read_harbour_fee_sheet"].tool
    assert (tool.inputs["port_id"].table, tool.inputs["port_id"].column) == ("ports", "port_id")


def test_a_column_that_tells_entries_apart_is_the_key():
    rows = [("x", f"P{n:03d}", n) for n in range(6)]
    tool = judged(sheet("csv", ("kind", "port_id", "fee"), rows))["read_harbour_fee_sheet"].tool
    assert list(tool.inputs) == ["port_id"]


def test_a_document_nobody_can_make_out_gets_no_tool():
    assert judged(page("json", "{}")) == {}


def test_a_page_without_sections_only_takes_notes():
    assert list(judged(page("md", "no heading here"))) == ["annotate_guide_page"]


def test_a_number_that_a_sheet_shares_with_the_records_is_no_key_of_theirs():
    """Both count from one: that says nothing."""
    decks = raw_table("decks", ("deck_id", "name"), [(n, f"Deck {n}") for n in range(1, 41)])
    database, files = structure([decks], database_id="decks", theme=VersionId("decks@0"))
    document, data = sheet("json", ("fee_number", "note"), [(n, f"note {n}") for n in range(1, 21)])
    database = replace(database, documents=(document,))
    files |= {f"{DOCUMENTS_FOLDER}/{document.path}": data}
    [reader] = [
        draft.tool
        for draft in document_drafts(view_of(database, files), files, seed=1)
        if draft.tool.pattern == "document_read"
    ]  # fmt: skip
    assert database.tables[0].column("deck_id").type == "integer"
    assert reader.inputs["fee_number"].kind == "value"
