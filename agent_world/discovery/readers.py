"""Files to raw tables, text first: nothing is typed while reading, so that "NA", "0501" and long ids survive.

A row or file that cannot be read is quarantined with its reason; its neighbours go on (notes/hard-inputs.md B).
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import re
import sqlite3
import tarfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from xml.etree import ElementTree

from agent_world.discovery.faults import fault
from agent_world.discovery.model import Quarantined, RawTable
from agent_world.discovery.records import MIN_RECORDS, Records, as_table, cell, records_of_json, records_of_xml
from agent_world.environments.model import Source
from agent_world.identity import sha256

FULL_ROWS = 50_000
SAMPLED_ROWS = 12_000
"""A table of up to FULL_ROWS rows is kept whole; of a longer one, which refers but is not referred to, a sample."""

_TEXT_SUFFIXES = {".csv", ".tab", ".tsv"}
READABLE = {*_TEXT_SUFFIXES, ".json", ".jsonl", ".parquet", ".db", ".sqlite", ".xml"}
_PACKED = {".gz", ".bz2", ".zip", ".tgz"}
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_SHORT_ROWS_ARE_STYLE = 0.05

csv.field_size_limit(10_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one file gave: its tables and what had to be left out."""

    tables: tuple[RawTable, ...] = ()
    faults: tuple[Quarantined, ...] = ()


def is_readable(path: str) -> bool:
    """Whether the suffix of `path` (packed or not) is one that `read_file` understands."""
    return _suffixes(path)[0] in READABLE or path.endswith(".tar.gz")


def read_file(path: str, data: bytes, source: Source) -> Reading:
    """The tables of a file of any readable kind; archives are opened. A fault never raises, it is quarantined."""
    try:
        members = list(_unpack(path, data))
    except (OSError, EOFError, zipfile.BadZipFile, tarfile.TarError) as error:
        return Reading(faults=(_fault(source, "broken_archive", str(error), data),))
    archive = path.lower().endswith((".zip", ".tgz", ".tar.gz"))
    readings = []
    for member, content in members:
        inside = replace(source, file=f"{source.file}!{member}", sha256=sha256(content)) if archive else source
        readings.append(_read_member(member, content, inside))
    return Reading(
        tables=tuple(table for reading in readings for table in reading.tables),
        faults=tuple(fault for reading in readings for fault in reading.faults),
    )


def tables_of_records(records: Records, source: Source) -> tuple[RawTable, ...]:
    """Raw tables of record lists."""
    tables = []
    for name, rows in records.items():
        header, cells = as_table(spread(rows, kept_rows(len(rows))))
        tables.append(RawTable(name=name, header=header, rows=tuple(cells), total=len(rows), source=source))
    return tuple(tables)


def kept_rows(total: int) -> int:
    """How many of `total` rows are kept."""
    return total if total <= FULL_ROWS else SAMPLED_ROWS


def spread(rows: Sequence, limit: int) -> Sequence:
    """At most `limit` rows at even distances, the first one included."""
    if len(rows) <= limit:
        return rows
    return [rows[index * len(rows) // limit] for index in range(limit)]


def read_csv(name: str, data: bytes, source: Source) -> Reading:
    """A delimited text file: encoding, dialect and header are detected; ragged rows are quarantined.

    Rows that only lack trailing cells are the style of the file when they are many, and are padded.
    """
    text = decode_text(data)
    comment, lines = _strip_comments(text)
    if not lines:
        return Reading(faults=(_fault(source, "empty", "the file has no rows", data),))
    delimiter = _delimiter(lines, "\t" if name.endswith((".tab", ".tsv")) else ",")
    total = len(lines)
    if total > FULL_ROWS and '"' not in text:  # then a line is a row, and only the rows that are kept need parsing
        lines = [lines[0], *spread(lines[1:], SAMPLED_ROWS)]
    rows = [row for row in csv.reader(io.StringIO("\n".join(lines)), delimiter=delimiter) if row]
    header, body = _header(rows, comment.split(delimiter) if comment else None)
    width = len(header)
    if width < 2 or len(body) < MIN_RECORDS:
        return Reading(faults=(_fault(source, "not_a_table", f"{width} columns, {len(body)} rows", data),))
    short = sum(len(row) < width for row in body) / len(body) >= _SHORT_ROWS_ARE_STYLE
    ragged = [
        (number, row) for number, row in enumerate(body, 2) if len(row) > width or (len(row) < width and not short)
    ]
    if len(ragged) > 0.2 * len(body):
        return Reading(faults=(_fault(source, "ragged_file", f"most rows do not have {width} cells", data),))
    kept = [row for row in body if len(row) == width or (short and len(row) < width)] if ragged else body
    rows = tuple(
        (*(value.strip() or None for value in row), *(None for _ in range(width - len(row))))
        for row in spread(kept, kept_rows(len(kept)))
    )
    faults = tuple(
        _fault(
            source,
            "ragged_row",
            f"row {number} has {len(row)} cells, the header has {width}",
            delimiter.join(row).encode(),
        )
        for number, row in ragged
    )
    table = RawTable(
        name=file_stem(name),
        header=header,
        rows=rows,
        source=source,
        total=len(kept) if total == len(lines) else total - 1,
    )
    return Reading(tables=(table,), faults=faults)


def read_sqlite(data: bytes, source: Source) -> Reading:
    """Every table of a SQLite file, with the keys that its schema declares."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.deserialize(data)
        names = [
            row[0]
            for row in connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
            )
        ]
        tables = [_sqlite_table(connection, name, source) for name in names]
    except sqlite3.DatabaseError as error:
        return Reading(faults=(_fault(source, "broken_sqlite", str(error), data[:4096]),))
    finally:
        connection.close()
    return Reading(tables=tuple(table for table in tables if table.total >= MIN_RECORDS))


def _sqlite_table(connection: sqlite3.Connection, name: str, source: Source) -> RawTable:
    quoted = '"' + name.replace('"', '""') + '"'
    info = connection.execute(f"PRAGMA table_info({quoted})").fetchall()
    total = connection.execute(f"SELECT count(*) FROM {quoted}").fetchone()[0]
    step = total // kept_rows(total) if total else 1
    where = f"WHERE rowid % {step} = 1" if step > 1 else ""
    rows = tuple(
        tuple(None if isinstance(value, bytes) else cell(value) for value in row)
        for row in connection.execute(f"SELECT * FROM {quoted} {where} LIMIT {FULL_ROWS}")
    )
    links = connection.execute(f"PRAGMA foreign_key_list({quoted})").fetchall()
    by_constraint = Counter(link[0] for link in links)
    return RawTable(
        name=name,
        header=tuple(row[1] for row in info),
        rows=rows,
        total=total,
        source=source,
        declared_key=tuple(row[1] for row in sorted(info, key=lambda row: row[5]) if row[5]),
        declared_links=tuple((link[3], link[2], link[4] or "") for link in links if by_constraint[link[0]] == 1),
    )


def read_parquet(name: str, data: bytes, source: Source) -> Reading:
    """A Parquet file as text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(io.BytesIO(data))
    except (pa.ArrowInvalid, OSError) as error:
        return Reading(faults=(_fault(source, "broken_parquet", str(error), data[:4096]),))
    total = table.num_rows
    kept = kept_rows(total)
    if kept < total:
        table = table.take([index * total // kept for index in range(kept)])
    columns = [[cell(value) for value in column.to_pylist()] for column in table.columns]
    rows = tuple(zip(*columns, strict=True))
    raw = RawTable(name=file_stem(name), header=tuple(table.column_names), rows=rows, total=total, source=source)
    return Reading(tables=(raw,) if total >= MIN_RECORDS else ())


def read_json(name: str, data: bytes, source: Source) -> Reading:
    """A JSON document, or JSON lines by content whatever the name says; a broken line is quarantined."""
    text = decode_text(data)
    try:
        return Reading(tables=tables_of_records(records_of_json(json.loads(text), file_stem(name)), source))
    except json.JSONDecodeError as error:
        whole_error = str(error)
    except RecursionError:
        return Reading(faults=(_fault(source, "nested_too_deep", "deeper than the parser allows", data[:4096]),))
    records, faults = [], []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError as error:
            faults.append(_fault(source, "broken_json_line", f"line {number}: {error}", line.encode()))
    if len(faults) > len(records):
        return Reading(faults=(_fault(source, "broken_json", whole_error, data[:4096]),))
    return Reading(tables=tables_of_records(records_of_json(records, file_stem(name)), source), faults=tuple(faults))


def read_xml(name: str, data: bytes, source: Source) -> Reading:
    """Repeated elements of an XML file as tables."""
    try:
        return Reading(tables=tables_of_records(records_of_xml(data, file_stem(name)), source))
    except ElementTree.ParseError as error:
        return Reading(faults=(_fault(source, "broken_xml", str(error), data[:4096]),))


def _read_member(path: str, data: bytes, source: Source) -> Reading:
    suffix = PurePosixPath(path.lower()).suffix
    if suffix in _TEXT_SUFFIXES:
        return read_csv(path, data, source)
    if suffix in {".db", ".sqlite"}:
        return read_sqlite(data, source)
    if suffix == ".parquet":
        return read_parquet(path, data, source)
    if suffix == ".xml":
        return read_xml(path, data, source)
    return read_json(path, data, source)


def _unpack(path: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    lower = path.lower()
    if lower.endswith((".tar.gz", ".tgz")):
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for entry in archive:
                name = PurePosixPath(entry.name)
                hidden = any(part.startswith("._") for part in name.parts)
                if entry.isfile() and not hidden and _suffixes(entry.name)[0] in READABLE:
                    yield from _unpack(entry.name, archive.extractfile(entry).read())
    elif lower.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for name in sorted(archive.namelist()):
                if not name.startswith("__MACOSX") and _suffixes(name)[0] in READABLE:
                    yield from _unpack(name, archive.read(name))
    elif lower.endswith(".gz"):
        yield from _unpack(path[:-3], gzip.decompress(data))
    elif lower.endswith(".bz2"):
        yield from _unpack(path[:-4], bz2.decompress(data))
    else:
        yield path, data


def _suffixes(path: str) -> tuple[str, str]:
    """The suffix that says what the content is, and the one of the packing around it ("" for none)."""
    pure = PurePosixPath(path.lower())
    if pure.suffix in _PACKED:
        inner = PurePosixPath(pure.stem).suffix
        return (inner or (".csv" if pure.suffix == ".zip" else "")), pure.suffix
    return pure.suffix, ""


def file_stem(path: str) -> str:
    """The name of a file without folders and suffixes."""
    return PurePosixPath(path).name.split(".")[0]


def decode_text(data: bytes) -> str:
    """Text in whichever of the usual encodings it is."""
    for encoding in ("utf-8-sig", "cp1252", "latin-1"):
        try:
            return data.decode(encoding).replace("\0", "")
        except UnicodeDecodeError:
            continue
    raise AssertionError("latin-1 decodes any bytes")


def _strip_comments(text: str) -> tuple[str | None, list[str]]:
    """The last comment line before the data that can name columns, and the lines that are not comments."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")  # splitlines() would also cut at U+2028
    start = next((number for number, line in enumerate(lines) if line.strip() and not line.startswith("#")), len(lines))
    marked = [line for line in lines[:start] if line.startswith("#") and any(mark in line for mark in "\t;|")]
    comment = re.sub(r"\t+", "\t", marked[-1].lstrip("#").strip()) if marked else None
    return comment, lines if start == 0 else [line for line in lines[start:] if not line.startswith("#")]


def _delimiter(lines: Sequence[str], default: str) -> str:
    sample = [line for line in lines[:200] if line]
    counts = {mark: [line.count(mark) for line in sample] for mark in "\t,;|"}
    if counts[default] and min(counts[default][:20]) > 0:
        return default
    return max(counts, key=lambda mark: (min(counts[mark], default=0), mark == default))


def _header(rows: list[list[str]], comment: list[str] | None) -> tuple[tuple[str, ...], list[list[str]]]:
    first = rows[0]
    if comment and len(comment) >= max(2, min(len(row) for row in rows[:50])):
        return unique_names(comment), rows
    if any(_NUMBER.fullmatch(value.strip()) for value in first):
        return unique_names([""] * len(first)), rows
    return unique_names(first), rows[1:]


def unique_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names as found, empty ones numbered, repeated ones told apart by a number."""
    seen: Counter[str] = Counter()
    unique = []
    for position, name in enumerate(names, 1):
        base = name.strip() or f"column {position}"
        seen[base.lower()] += 1
        unique.append(base if seen[base.lower()] == 1 else f"{base} {seen[base.lower()]}")
    return tuple(unique)


def _fault(source: Source, reason: str, why: str, raw: bytes) -> Quarantined:
    return fault("corpus", f"{source.package}:{source.file}", reason, why, raw)
