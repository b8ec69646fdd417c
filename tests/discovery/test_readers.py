from __future__ import annotations

import gzip
import io
import json
import sqlite3
import zipfile

from agent_world.discovery.columns import null_markers, type_column
from agent_world.discovery.readers import Reading, read_file
from agent_world.discovery.siblings import union_of_siblings
from agent_world.environments.model import Source
from agent_world.identity import sha256


def read(path: str, data: bytes) -> Reading:
    source = Source(package="p", version="1", file=path, sha256=sha256(data), licence="CC0-1.0")
    return read_file(path, data, source)


def lines(*rows: str) -> bytes:
    return ("\n".join(rows) + "\n").encode()


def test_a_marker_is_text_where_the_table_holds_no_numbers():
    (table,) = read("cc.csv", lines("cc,continent", "NA,AF", "US,NA", "DE,EU", "FR,EU", "IT,EU", "ES,EU")).tables
    columns = list(zip(*table.rows, strict=True))
    assert null_markers(columns) == frozenset()
    assert type_column("cc", columns[0]).values[0] == "NA"
    assert type_column("continent", columns[1]).values[1] == "NA"


def test_a_marker_among_numbers_is_null_in_every_column_of_that_table():
    rows = ["tail,delay", "N1,5", "N2,NA", "NA,7", "N4,8", "N5,9", "N6,1"]
    (table,) = read("f.csv", lines(*rows)).tables
    columns = list(zip(*table.rows, strict=True))
    markers = null_markers(columns)
    assert type_column("tail", columns[0], markers).values[2] is None
    assert type_column("delay", columns[1], markers).values == (5, None, 7, 8, 9, 1)


def test_long_ids_and_leading_zeros_survive():
    rows = ["id,zip", "9007199254740993,00501", ",09508", "1,10001", "2,10002", "3,10003", "4,10004"]
    (table,) = read("z.csv", lines(*rows)).tables
    ids, codes = zip(*table.rows, strict=True)
    assert type_column("id", ids).values[:3] == (9007199254740993, None, 1)
    assert type_column("zip", codes).values[:2] == ("00501", "09508")


def test_a_ragged_row_is_set_aside_and_its_neighbours_stay():
    body = [f"{n},x{n}" for n in range(40)]
    reading = read("r.csv", lines("a,b", *body, "3,4,5"))
    assert len(reading.tables[0].rows) == 40
    (fault,) = reading.faults
    assert (fault.reason, fault.raw) == ("ragged_row", b"3,4,5")
    assert "row 42" in fault.detail


def test_rows_that_only_lack_trailing_cells_are_padded_when_that_is_the_style_of_the_file():
    (table,) = read("z.tab", b"# note\n#code\tzone\tcomment\n" + lines(*["AD\tEurope/Andorra"] * 6, "AE\tX\ty")).tables
    assert table.header == ("code", "zone", "comment")
    assert table.rows[0] == ("AD", "Europe/Andorra", None)


def test_byte_order_marks_old_encodings_and_other_separators_are_read():
    (table,) = read("b.csv", b"\xef\xbb\xbf" + lines("id,n", *[f"{n},{n}" for n in range(6)])).tables
    assert table.header[0] == "id"
    (table,) = read("l.csv", lines("id;city", *[f"{n};c" for n in range(6)]) + "9;Orléans\n".encode("latin-1")).tables
    assert table.header == ("id", "city")
    assert table.rows[-1][1] == "Orléans"


def test_empty_and_repeated_headers_become_distinct_names():
    (table,) = read("h.csv", lines("a,a,", *["1,2,3"] * 6)).tables
    assert table.header == ("a", "a 2", "column 3")


def test_json_lines_with_a_broken_line_lose_that_line_only():
    data = lines(*[json.dumps({"a": n}) for n in range(8)], '{"a":2,}')
    reading = read("x.jsonl", data)
    assert len(reading.tables[0].rows) == 8
    assert [fault.reason for fault in reading.faults] == ["broken_json_line"]
    assert "line 9" in reading.faults[0].detail


def test_nested_collections_become_child_tables_that_carry_their_parent():
    document = {
        f"svc{n}": {
            "title": f"T{n}",
            "size": {"cpu": n, "mem": n},
            "ops": {f"op{k}": {"level": "Read"} for k in range(2)},
        }
        for n in range(25)
    }
    tables = {table.name: table for table in read("d.json", json.dumps(document).encode()).tables}
    assert tables["d"].header == ("key", "title", "size_cpu", "size_mem")
    assert len(tables["ops"].rows) == 50
    assert tables["ops"].rows[0] == ("svc0", "op0", "Read")


def test_recursive_xml_becomes_a_table_with_parents():
    inner = "".join(f"<diag><name>A{n}.1</name><desc>part {n}</desc></diag>" for n in range(3))
    body = f"<diag><name>A0</name><desc>top</desc>{inner}</diag>" * 3
    (table,) = read("x.xml", f"<root>{body}</root>".encode()).tables
    rows = [dict(zip(table.header, row, strict=True)) for row in table.rows]
    assert rows[1] == {"name": "A0.1", "desc": "part 0", "parent": "A0", "leaf": "true"}
    assert rows[0]["leaf"] == "false"


def test_cells_lose_the_blanks_that_line_them_up():
    rows = ["name,   dose", *(f"kind {n},  {n}.5" for n in range(8))]
    (table,) = read("d.csv", lines(*rows)).tables
    assert (table.header, table.rows[1]) == (("name", "dose"), ("kind 1", "1.5"))


def test_a_map_that_only_wraps_a_value_is_called_as_what_it_wraps():
    regions = [{"code": f"r{n}", "country": {"Value": f"C{n}"}, "size": {"low": n, "high": 2 * n}} for n in range(8)]
    (table,) = read("regions.json", json.dumps(regions).encode()).tables
    assert table.header == ("code", "country", "size_low", "size_high")


def test_elements_without_a_letter_in_their_name_are_called_after_the_file():
    rows = "".join(f"<_><x>{n}</x><y>{n * n}</y></_>" for n in range(8))
    (table,) = read("stages.xml", f"<all>{rows}</all>".encode()).tables
    assert table.name == "stages"


def test_packed_files_are_opened_and_broken_ones_quarantined():
    table = lines("a,b", *["1,2"] * 7)
    assert len(read("t.csv.gz", gzip.compress(table)).tables[0].rows) == 7
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("inner.csv", table)
    assert read("t.zip", packed.getvalue()).tables[0].source.file == "t.zip!inner.csv"
    assert [fault.reason for fault in read("t.csv.gz", b"not gzip").faults] == ["broken_archive"]


def test_a_sqlite_file_keeps_what_it_declares():
    connection = sqlite3.connect(":memory:")
    connection.executescript(
        "CREATE TABLE areas(id TEXT PRIMARY KEY, name TEXT);"
        "CREATE TABLE series(id TEXT PRIMARY KEY, area TEXT REFERENCES areas(id));"
    )
    connection.executemany("INSERT INTO areas VALUES (?, ?)", [(f"{n:04d}", f"n{n}") for n in range(9)])
    connection.executemany("INSERT INTO series VALUES (?, ?)", [(f"s{n}", f"{n:04d}") for n in range(9)])
    connection.commit()
    tables = {table.name: table for table in read("c.db", connection.serialize()).tables}
    assert tables["series"].declared_links == (("area", "areas", "id"),)
    assert tables["areas"].rows[0] == ("0000", "n0")
    assert read("c.db", b"garbage" * 100).faults[0].reason == "broken_sqlite"


def test_sibling_files_of_one_shape_become_one_table():
    parts = [f"d/{name}.csv" for name in ("north", "south", "east", "west")]
    tables = [read(path, lines("a,b", *["1,2"] * 6)).tables[0] for path in parts]
    (merged,) = union_of_siblings(tables)
    assert (merged.name, merged.header, len(merged.rows)) == ("d", ("a", "b", "part"), 24)
    assert {row[2] for row in merged.rows} == {"north", "south", "east", "west"}


def test_clocks_dates_flags_and_thousands_are_read_by_rule():
    clock = type_column("dep_time", [str(h * 100 + m) for h in range(24) for m in (0, 30)])
    assert clock.values[3] == "01:30"
    assert clock.rule
    assert type_column("when", ["1/31/2014", "12/5/2014"]).values == ("2014-01-31", "2014-12-05")
    assert type_column("when", ["1/2/2014", "3/4/2014"]).values == ("1/2/2014", "3/4/2014")
    assert type_column("ok", ["true", "false", None]).values == (1, 0, None)
    assert type_column("n", ["1,200", "7"]).values == (1200, 7)
