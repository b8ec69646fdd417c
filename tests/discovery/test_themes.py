from __future__ import annotations

import json
from dataclasses import replace

import pytest

from agent_world.discovery.model import Quarantined
from agent_world.discovery.themes.checks import check_tools
from agent_world.discovery.themes.documents import ThemeDocument, read_theme, theme_of
from agent_world.discovery.themes.function_docs import FunctionDocConnector
from agent_world.discovery.themes.google_discovery import GoogleDiscoveryConnector
from agent_world.discovery.themes.openapi import OpenApiConnector
from agent_world.discovery.themes.pool import drafts_of
from agent_world.discovery.themes.prd_markdown import PrdConnector
from agent_world.errors import BadInputError
from agent_world.identity import content_hash

OBJECT = {"type": "object"}
TREE = {
    "type": "object",
    "properties": {"root": {"$ref": "#/$defs/n"}},
    "$defs": {"n": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/n"}}}}},
}


def reasons(found) -> list[str]:
    return [fault.reason for fault in found.faults]


def test_a_recursive_schema_is_kept():
    found = check_tools([{"name": "walk", "inputSchema": TREE}], "o")
    (tool,) = found.tools
    assert tool["input_schema"]["properties"]["root"] == {"$ref": "#/$defs/n"}
    assert len(content_hash("tool", tool)) == 64


def test_a_reference_to_nothing_costs_that_tool_only():
    output = {"type": "object", "properties": {"x": {"$ref": "#/$defs/missing"}}}
    found = check_tools(
        [{"name": "a", "inputSchema": OBJECT, "outputSchema": output}, {"name": "b", "inputSchema": OBJECT}], "o"
    )
    assert [tool["name"] for tool in found.tools] == ["b"]
    assert reasons(found) == ["dangling_ref"]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"name": "a"}, "no_input_schema"),
        ({"inputSchema": OBJECT}, "no_name"),
        ({"name": "a", "inputSchema": {"type": "array"}}, "bad_input_schema"),
        ({"name": "a", "inputSchema": {"type": "object", "properties": {"x": {"type": 7}}}}, "invalid_schema"),
        ("not a tool", "no_name"),
    ],
)
def test_a_malformed_tool_is_set_aside_with_its_raw_text(bad, reason):
    found = check_tools([bad, {"name": "b", "inputSchema": OBJECT}], "o")
    assert [tool["name"] for tool in found.tools] == ["b"]
    assert reasons(found) == [reason]
    assert json.loads(found.faults[0].raw) == bad


def test_equal_names_are_told_apart_and_twins_kept_once():
    other = {"type": "object", "properties": {"x": {"type": "string"}}}
    raw = [
        {"name": "a", "inputSchema": OBJECT},
        {"name": "a", "inputSchema": other},
        {"name": "a", "inputSchema": OBJECT},
    ]
    found = check_tools(raw, "o")
    assert [tool["name"] for tool in found.tools] == ["a", "a_2"]
    assert found.tools[1]["original_name"] == "a"
    assert reasons(found) == ["name_collision", "duplicate_tool"]


def test_long_names_stay_distinct_and_can_be_traced_back():
    names = ["x" * 64 + "left", "x" * 64 + "right"]
    tools = check_tools([{"name": name, "inputSchema": OBJECT} for name in names], "o").tools
    assert len({tool["name"] for tool in tools}) == 2
    assert all(len(tool["name"]) <= 64 for tool in tools)
    assert [tool["original_name"] for tool in tools] == names


def test_foreign_type_names_become_json_types():
    raw = {"name": "f", "parameters": {"type": "dict", "properties": {"x": {"type": "float"}, "y": {"type": "any"}}}}
    schema = check_tools([raw], "o").tools[0]["input_schema"]
    assert (schema["type"], schema["properties"]["x"]["type"]) == ("object", "number")
    assert "type" not in schema["properties"]["y"]


def test_function_documentation_is_read_as_json_or_json_lines(tmp_path):
    docs = [{"name": f"f{n}", "description": "d", "parameters": {"type": "dict", "properties": {}}} for n in range(3)]
    (tmp_path / "lines.json").write_text("\n".join(map(json.dumps, docs)) + '\n{"broken",}\n')
    (tmp_path / "whole.jsonl").write_text(json.dumps(docs, indent=1))
    (tmp_path / "wrapped.jsonl").write_text("\n".join(json.dumps({"function": [doc]}) for doc in docs))
    (tmp_path / "nothing.json").write_text('{"a": 1}')
    connector = FunctionDocConnector(tmp_path)
    read = {document.origin: read_theme(connector, document) for document in connector.documents()}
    for name in ("lines", "whole", "wrapped"):
        assert [tool["name"] for tool in read[f"function_docs:{name}"].theme.tools] == ["f0", "f1", "f2"]
    assert [fault.reason for fault in read["function_docs:lines"].faults] == ["no_name"]
    assert read["function_docs:nothing"].rejection.reason == "no_tools"


def test_openapi_with_a_self_reference_gives_one_tool_with_a_stable_name(tmp_path):
    schema = {"type": "object", "properties": {"parent": {"$ref": "#/components/schemas/C"}}}
    post = {
        "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/C"}}}},
        "responses": {"200": {"description": "ok"}},
    }
    document = {
        "openapi": "3.0.0",
        "info": {"title": "t", "version": "1"},
        "paths": {"/c": {"post": post}},
        "components": {"schemas": {"C": schema}},
    }
    (tmp_path / "c.json").write_text(json.dumps(document))
    (tmp_path / "broken.json").write_text("{")
    connector = OpenApiConnector(tmp_path)
    good, bad = None, None
    for item in connector.documents():
        reading = read_theme(connector, item)
        good, bad = (reading, bad) if reading.theme else (good, reading)
    (tool,) = good.theme.tools
    assert tool["name"] == "post_c"
    assert tool["input_schema"]["properties"] == {"parent": {"type": "object"}}
    assert bad.rejection.reason == "broken_document"


def test_a_missing_or_broken_archive_says_what_to_do(tmp_path):
    with pytest.raises(BadInputError, match="make install"):
        list(OpenApiConnector(tmp_path / "none").documents())
    (tmp_path / "x.tgz").write_bytes(b"no archive")
    with pytest.raises(BadInputError, match="delete it"):
        list(OpenApiConnector(tmp_path / "x.tgz").documents())


def test_real_service_models_become_themes_with_tools_of_their_own_words(service_drafts):
    assert len(service_drafts) > 400
    draft = next(draft for draft in service_drafts if draft.document.origin == "botocore:sqs")
    assert draft.title == "Amazon Simple Queue Service"
    assert "queue" in draft.nouns
    assert {"purge", "send", "receive"} <= set(draft.verbs)
    send = next(tool for tool in draft.raw_tools if tool["name"] == "SendMessage")
    assert send["input_schema"]["required"] == ["QueueUrl", "MessageBody"]


def test_real_discovery_documents_with_cycles_become_themes():
    connector = GoogleDiscoveryConnector()
    documents = {document.origin: document for document in connector.documents()}
    assert len(documents) > 300
    theme = read_theme(connector, documents["google_discovery:docs"]).theme  # its schemas refer to themselves
    assert "documents" in {word for tool in theme.tools for word in tool["name"].split(".")}


def test_a_broken_theme_file_does_not_stop_its_neighbours(tmp_path, prds):
    (tmp_path / "good.md").write_text(prds["record-shop-counter"].document.data.decode())
    (tmp_path / "empty.md").write_text("nothing here")
    (tmp_path / "latin.md").write_bytes("# Café\n".encode("latin-1") * 60)
    found = list(drafts_of([PrdConnector(tmp_path)]))
    faults = {item.item: item.reason for item in found if isinstance(item, Quarantined)}
    assert faults == {"prd:empty": "not_a_prd", "prd:latin": "not_utf8"}
    assert sum(not isinstance(item, Quarantined) for item in found) == 1
    with pytest.raises(BadInputError):
        list(PrdConnector(tmp_path / "missing").documents())


def test_the_bundled_requirement_documents_are_whole(prds):
    assert len(prds) == 6
    for draft in prds.values():
        text = draft.document.data.decode()
        assert 60 <= len(text.splitlines()) <= 120
        for part in ("Background", "Goals", "User stories", "Workflow", "Interfaces", "Acceptance"):
            assert f"## {part}" in text
        assert len(draft.nouns) >= 10 and len(draft.verbs) >= 5


def test_an_unusable_document_is_a_fault_not_an_error():
    document = ThemeDocument(source="M2", origin="google_discovery:x", data=b"[1, 2]", licence="")
    reading = read_theme(GoogleDiscoveryConnector(), document)
    assert reading.theme is None
    assert reading.rejection.raw == b"[1, 2]"


@pytest.mark.parametrize(("missing", "reason"), [({"title": " "}, "no_title"), ({"description": ""}, "no_description")])
def test_a_document_that_does_not_say_what_it_is_about_gives_no_theme(prds, missing, reason):
    reading = theme_of(replace(prds["record-shop-counter"], **missing))
    assert reading.theme is None
    assert (reading.rejection.reason, reading.rejection.item) == (reason, "prd:record-shop-counter")
    assert theme_of(prds["record-shop-counter"]).rejection is None
