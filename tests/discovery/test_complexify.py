from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import pytest

from agent_world.discovery.complexify import complexify
from agent_world.discovery.corpus import build_corpus
from agent_world.discovery.documents import FORMATS, parse
from agent_world.discovery.mining import mine
from agent_world.discovery.richness import known_sources
from agent_world.discovery.snapshot import load
from agent_world.environments.state import logical_digest
from tests.discovery import ferries


@pytest.fixture(scope="module")
def rounds(themes, corpus):
    theme = themes["airport-delay-desk"]
    found = mine(theme, corpus)
    made = [(found.database, dict(found.files))]
    for number in (1, 2):
        made.append(complexify(*made[-1], theme, corpus, number))
    return theme, made


def test_each_round_adds_something_from_a_source_new_to_the_database(rounds):
    _, made = rounds
    for number, (before, after) in enumerate(pairwise(made), 1):
        assert after is not None
        assert after[0].round == number
        assert known_sources(after[0]) > known_sources(before[0])
        added = [table for table in after[0].tables if table.added_in == number]
        added += [document for document in after[0].documents if document.added_in == number]
        assert added
        assert after[0].digest != before[0].digest
        assert after[0].digest == logical_digest(after[1])
        assert after[0].richness["sources"] > before[0].richness["sources"]


def test_a_round_keeps_what_was_there(rounds):
    _, made = rounds
    first = {item.table.name: item.rows() for item in load(*made[0])}
    last = {item.table.name: item.rows() for item in load(*made[-1])}
    assert {name: last[name] for name in first} == first


def test_an_added_table_is_referred_to_and_its_integrity_measured(rounds):
    _, made = rounds
    database, files = made[1]
    (added,) = [table for table in database.tables if table.added_in == 1]
    links = [(table, link) for table in database.tables for link in table.foreign_keys if link.parent == added.name]
    assert links
    values = {item.table.name: item.columns for item in load(database, files)}
    for table, link in links:
        own = [value for value in values[table.name][link.column] if value is not None]
        theirs = set(values[link.parent][link.parent_column])
        assert link.integrity == pytest.approx(sum(value in theirs for value in own) / len(own), abs=1e-4)


def test_a_round_that_finds_nothing_new_does_not_count(rounds, corpus):
    theme, made = rounds
    database, files = made[-1]
    number = 3
    while (richer := complexify(database, files, theme, corpus, number)) and number < 40:
        database, files = richer
        number += 1
    assert richer is None, "sources are finite, so rounds must end"


def test_sheets_read_back_as_records_of_their_source(rounds):
    _, made = rounds
    database, files = made[-1]
    sheets = [document for document in database.documents if document.format in FORMATS and document.source]
    assert sheets
    for sheet in sheets:
        records = parse(sheet.format, files[f"documents/{sheet.path}"])
        assert records and len(records[0]) >= 2


def test_a_sheet_says_first_what_the_database_refers_to_and_how_much_it_leaves_out(rounds):
    _, made = rounds
    database, files = made[-1]
    (sheet,) = [document for document in database.documents if document.format in FORMATS]
    assert re.fullmatch(r"time zones \(40 of \d+\)", sheet.title)
    records = parse(sheet.format, files[f"documents/{sheet.path}"])
    zones = set(next(item for item in load(database, files) if item.table.name == "zones").columns["time_zone"])
    assert all(set(map(str, record.values())) & zones for record in records)


def test_rounds_are_the_same_twice(rounds, corpus):
    theme, made = rounds
    again = complexify(*made[0], theme, corpus, 1)
    assert again == made[1]


def test_the_id_of_a_database_decides_the_format_of_its_sheets(rounds, corpus):
    theme, made = rounds
    formats = set()
    for name in "abcdefgh":
        database, _ = complexify(replace(made[0][0], database_id=name), made[0][1], theme, corpus, 1)
        formats |= {document.format for document in database.documents}
    assert len(formats) >= 3


def test_a_page_is_called_in_words_and_not_by_an_identifier(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path / "site")
    page = ferries.pages(Harbour93="Each harbour has berths where a ferry can moor; a crossing costs its fare.")
    files = {"harbours.csv": ferries.harbours(), "sailings.csv": ferries.sailings(), "docs.tar.gz": page}
    ferries.install(tmp_path / "site", files)
    corpus = build_corpus(tmp_path / "cache", [ferries.NAME], themes=ferries.BACKGROUND)
    found = mine(ferries.THEME, corpus)
    database, _ = complexify(found.database, found.files, ferries.THEME, corpus, 1)
    assert [(document.path, document.title) for document in database.documents] == [
        ("harbour93.html", "About harbour 93")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("history", "added"),
    [("a port since {}", ["towns"]), (25 * "it is told that " + "it was named in {}", [])],
    ids=["short", "long"],
)
def test_a_table_of_which_tools_could_only_list_the_keys_is_not_added(tmp_path, monkeypatch, history, added):
    monkeypatch.syspath_prepend(tmp_path / "site")
    files = {"harbours.csv": ferries.harbours(), "sailings.csv": ferries.sailings()}
    ferries.install(tmp_path / "site", files)
    corpus = build_corpus(tmp_path / "cache", [ferries.NAME], themes=ferries.BACKGROUND)
    found = mine(ferries.THEME, corpus)
    told = [f"{town},{history.format(1500 + place)}" for place, town in enumerate(ferries.TOWNS)]
    ferries.install(tmp_path / "site", {**files, "towns.csv": "\n".join(["town,history", *told])})
    richer = build_corpus(tmp_path / "cache", [ferries.NAME], themes=ferries.BACKGROUND)
    made = complexify(found.database, found.files, ferries.THEME, richer, 1)
    database = made[0] if made else found.database
    assert [table.name for table in database.tables if table.added_in] == added
    assert not [document for document in database.documents if document.path.startswith("towns")]
