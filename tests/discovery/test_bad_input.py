"""Bad input costs itself only, and one line says which file, row or tool, what is wrong, and what to do."""

from __future__ import annotations

import json
import shutil

import pytest

from agent_world.discovery.corpus import build_corpus
from agent_world.discovery.model import Quarantined
from agent_world.discovery.readers import read_file
from agent_world.discovery.themes.pool import ThemeSources
from agent_world.discovery.themes.selection import collect_themes
from agent_world.environments.model import Source
from agent_world.errors import BadInputError
from agent_world.identity import sha256

OBJECT = {"type": "object", "properties": {"port": {"type": "string"}}}


def line_of(fault: Quarantined) -> str:
    """A fault as the report shows it, which must be one line with a cure behind the semicolon."""
    why, _, cure = fault.detail.rpartition("; ")
    assert why and cure and "\n" not in fault.detail
    return f"{fault.item}: {fault.detail}"


def collect(corpus, **sources):
    return collect_themes(7, 10, corpus=corpus, sources=ThemeSources(mcp=None, openapi=(), packages=False, **sources))


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("empty", b"", "0 headings, 0 words; write a Markdown document"),
        ("prose", b"only a few words", "0 headings, 4 words; write a Markdown document"),
        ("old", "# Caf\u00e9\n".encode("latin-1") * 60, "save the file as UTF-8"),
    ],
)
def test_a_broken_theme_file_is_named_and_its_neighbours_go_on(corpus, tmp_path, prds, name, data, said):
    (tmp_path / f"{name}.md").write_bytes(data)
    (tmp_path / "whole.md").write_bytes(prds["record-shop-counter"].document.data)
    found = collect(corpus, prds=(tmp_path,))
    assert [theme.theme_id for theme in found.themes] == ["prd:whole"]
    (fault,) = found.quarantined
    assert line_of(fault).startswith(f"prd:{name}: ") and said in line_of(fault)
    assert fault.raw == data


def test_broken_tool_documentation_is_named_and_its_neighbours_go_on(corpus, tmp_path):
    (tmp_path / "cut.json").write_text('[{"name": "a", "parameters"')
    (tmp_path / "whole.json").write_text(json.dumps([{"name": "list_ports", "parameters": OBJECT}]))
    found = collect(corpus, prds=(), function_docs=(tmp_path,))
    assert [theme.theme_id for theme in found.themes] == ["function_docs:whole"]
    (fault,) = found.quarantined
    assert "function_docs:cut" in line_of(fault)


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ({"name": "book"}, "#book: the tool declares no input schema; give it one"),
        ({"parameters": OBJECT}, "#0: the tool has no name; name it"),
        ({"name": "book", "parameters": "port"}, "#book: the input schema is not an object; let it be an object"),
        ({"name": "book", "parameters": {"$ref": "#/port"}}, "#/port, which does not exist; define it"),
        ({"name": "book", "parameters": {"type": "object", "required": "port"}}, "#book: input schema: 'port' is not"),
    ],
)
def test_a_broken_tool_is_named_and_the_others_of_its_document_stay(corpus, tmp_path, tool, said):
    (tmp_path / "ports.json").write_text(json.dumps([tool, {"name": "list_ports", "parameters": OBJECT}]))
    found = collect(corpus, prds=(), function_docs=(tmp_path,))
    assert [[tool["name"] for tool in theme.tools] for theme in found.themes] == [["list_ports"]]
    (fault,) = found.quarantined
    assert line_of(fault).startswith("function_docs:ports#") and said in line_of(fault)
    assert json.loads(fault.raw) == tool


def test_a_document_whose_tools_are_all_broken_gives_no_theme(corpus, tmp_path):
    (tmp_path / "ports.json").write_text(json.dumps([{"name": "book"}]))
    found = collect(corpus, prds=(), function_docs=(tmp_path,))
    assert found.themes == ()
    assert [fault.reason for fault in found.quarantined] == ["no_input_schema", "no_tools"]
    assert all(map(line_of, found.quarantined))


def test_a_ragged_row_is_named_with_its_file_and_number_and_the_others_stay():
    rows = [f"P{n:02d},port {n}" for n in range(30)]
    data = "\n".join(["id,name", *rows[:10], "P99,one,too many", *rows[10:]]).encode()
    source = Source(package="ferries", version="1", file="ports.csv", sha256=sha256(data), licence="CC0-1.0")
    reading = read_file("ports.csv", data, source)
    assert len(reading.tables[0].rows) == 30
    (fault,) = reading.faults
    assert line_of(fault) == (
        "ferries:ports.csv: row 12 has 3 cells, the header has 2; "
        "correct the row, or quote cells that hold the separator"
    )


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("ports.csv", b"id,name\n1,a\n"), ("ports.json", b'{"ports": ['), ("ports.db", b"no database" * 100),
        ("ports.parquet", b"PAR1 no more"), ("ports.xml", b"<ports><port>"), ("ports.csv.gz", b"not packed"),
        ("ports.tab", b""),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_named(name, data):
    source = Source(package="ferries", version="1", file=name, sha256=sha256(data), licence="CC0-1.0")
    reading = read_file(name, data, source)
    assert reading.tables == ()
    assert [line_of(fault).startswith(f"ferries:{name}: ") for fault in reading.faults] == [True]


def test_a_missing_data_package_is_named_and_the_others_are_built(tmp_path):
    corpus = build_corpus(tmp_path, ["no-such-package", "tzdata"], themes=["x"])
    assert list(corpus.packages) == ["tzdata"] and corpus.documents
    (fault,) = [fault for fault in corpus.faults if fault.item == "no-such-package"]
    assert "data package no-such-package: it is not installed; run `make install`" in line_of(fault)


def test_without_any_data_package_nothing_is_built(tmp_path):
    with pytest.raises(BadInputError, match="data packages: none is installed; run `make install`"):
        build_corpus(tmp_path / "cache", ["no-such-package"], themes=["x"])
    assert not (tmp_path / "cache").exists()


def test_a_build_that_cannot_write_leaves_no_corpus(tmp_path, monkeypatch):
    monkeypatch.setattr("agent_world.discovery.corpus.write_corpus", _half_a_corpus)
    with pytest.raises(OSError, match="No space left"):
        build_corpus(tmp_path, ["tzdata"], themes=["x"])
    assert {path.suffix for path in tmp_path.iterdir()} == {".lock"}
    monkeypatch.undo()
    assert build_corpus(tmp_path, ["tzdata"], themes=["x"]).documents
    shutil.rmtree(tmp_path)


def _half_a_corpus(path, *_):
    path.write_bytes(b"SQLite format 3")
    raise OSError(28, "No space left on device")
