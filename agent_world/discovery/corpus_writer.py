"""Writing a corpus: installed packages to searchable documents, linked tables and references, in one SQLite file."""

from __future__ import annotations

import json
import re
import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from agent_world.codec import encode
from agent_world.discovery.background import Background
from agent_world.discovery.keys import Keys, components, discover
from agent_world.discovery.model import RawTable
from agent_world.discovery.packages import PackageContent, read_package
from agent_world.discovery.readers import FULL_ROWS, spread
from agent_world.discovery.sampling import sample
from agent_world.discovery.text import plain_text, stems
from agent_world.discovery.words import expanded
from agent_world.environments.model import Source
from agent_world.errors import BadInputError
from agent_world.identity import canonical_json, sha256

MAX_ROWS = 3_000
FIELDS = ("names", "columns", "cells", "summary", "readme")
_MIN_REFERENCE = 12
_SEPARATE_ABOVE = 60  # tables; a package with more is a collection, and only tables of one file are linked

_SCHEMA = """
CREATE TABLE packages(name TEXT PRIMARY KEY, version TEXT, licence TEXT, summary TEXT, readme TEXT);
CREATE TABLE tables(id INTEGER PRIMARY KEY, document INTEGER, name TEXT, meta TEXT, rows BLOB, complete BLOB);
CREATE TABLE documents(id INTEGER PRIMARY KEY, kind TEXT, package TEXT, title TEXT, keys TEXT, meta TEXT, body BLOB,
                       names TEXT, columns TEXT, cells TEXT, summary TEXT, readme TEXT);
CREATE TABLE refs(document INTEGER, table_id INTEGER, column TEXT, cells BLOB);
CREATE TABLE background(word TEXT PRIMARY KEY, themes INTEGER);
CREATE TABLE faults(item TEXT, reason TEXT, detail TEXT, raw BLOB);
CREATE VIRTUAL TABLE search USING fts5(names, columns, cells, summary, readme, content='documents', content_rowid='id');
"""


def write_corpus(path: Path, names: Sequence[str], background: Background) -> None:
    """Write the corpus of these packages to a new file; one that is missing is noted among the faults."""
    connection = sqlite3.connect(path)
    try:
        connection.executescript(_SCHEMA)
        connection.execute("INSERT INTO background VALUES ('', ?)", (background.themes,))
        connection.executemany("INSERT INTO background VALUES (?, ?)", sorted(background.frequencies.items()))
        for name in names:
            try:
                content = read_package(name)
            except BadInputError as error:
                connection.execute("INSERT INTO faults VALUES (?, 'package_missing', ?, ?)", (name, str(error), b""))
                continue
            _write_package(connection, content)
        connection.execute("INSERT INTO search(search) VALUES ('rebuild')")
        connection.commit()
    finally:
        connection.close()


def _write_package(connection: sqlite3.Connection, content: PackageContent) -> None:
    connection.execute(
        "INSERT INTO packages VALUES (?, ?, ?, ?, ?)",
        (content.name, content.version, content.licence, content.summary, content.readme),
    )
    connection.executemany(
        "INSERT INTO faults VALUES (?, ?, ?, ?)",
        [(fault.item, fault.reason, fault.detail, fault.raw) for fault in content.faults],
    )
    pages = {
        PurePosixPath(path.rpartition("!")[2]).stem.lower(): plain_text(data.decode("utf-8", "replace"))
        for path, data in content.pages
    }
    groups = list(_groups(_distinct_names(content.tables)))
    largest = max((len(tables) for tables, _ in groups), default=0)
    for tables, keys in groups:
        about = " ".join(pages.get(table.name.lower(), "") for table in tables)
        if len(tables) == largest or len(groups) == 1:
            about = f"{content.readme[:3000]} {about}"
        _write_tables(connection, content, tables, keys, about)
    for path, data in content.pages:
        source = Source(
            package=content.name, version=content.version, file=path, sha256=sha256(data), licence=content.licence
        )
        text = plain_text(data.decode("utf-8", "replace"))
        _insert_document(
            connection,
            "page",
            content.name,
            PurePosixPath(path.rpartition("!")[2]).stem,
            "{}",
            {"source": encode(source)},
            zlib.compress(data),
            ("", "", "", "", _stemmed(text[:6000])),
        )


def _write_tables(
    connection: sqlite3.Connection, content: PackageContent, tables: Sequence[RawTable], keys: Keys, about: str
) -> None:
    title = ", ".join(table.name for table in tables[:6])
    files = " ".join(dict.fromkeys(PurePosixPath(table.source.file).stem for table in tables))
    fields = (
        _stemmed(_opened(table.name for table in tables) + " " + files),
        _stemmed(_opened(column for table in tables for column in table.header)),
        _stemmed(" ".join(_frequent_cells(tables))[:6000]),
        _stemmed(f"{content.summary} {content.name}"),
        _stemmed(about[:6000]),
    )
    document = _insert_document(
        connection,
        "tables",
        content.name,
        title,
        canonical_json(encode(keys)),
        {"tables": [table.name for table in tables]},
        None,
        fields,
    )
    sampled = sample(tables, keys.links, MAX_ROWS)
    for table, small in zip(tables, sampled, strict=True):
        referred = table.name in keys.primary and len(small.rows) < len(table.rows) <= FULL_ROWS
        meta = encode(replace(table, rows=()))
        cursor = connection.execute(
            "INSERT INTO tables(document, name, meta, rows, complete) VALUES (?, ?, ?, ?, ?)",
            (
                document,
                table.name,
                canonical_json(meta),
                _packed(small.rows),
                _packed(table.rows) if referred else None,
            ),
        )
        known = table if referred or len(small.rows) == len(table.rows) else small
        connection.executemany(
            "INSERT INTO refs VALUES (?, ?, ?, ?)",
            [
                (document, cursor.lastrowid, column, zlib.compress(json.dumps(cells, ensure_ascii=False).encode(), 3))
                for column, cells in _naming_columns(known)
            ],
        )


def _naming_columns(table: RawTable) -> Iterator[tuple[str, list[str]]]:
    """Columns of distinct words or codes: what rows of other tables may refer to."""
    for position, column in enumerate(table.header):
        cells = [row[position] for row in table.rows if row[position]]
        distinct = set(cells)
        if (
            len(cells) == len(distinct) >= _MIN_REFERENCE
            and len(cells) >= 0.5 * len(table.rows)
            and not column.startswith("column ")
            and max(map(len, cells)) <= 60
            and sum(cell.replace(".", "").replace("-", "").isdigit() for cell in cells) < 0.2 * len(cells)
        ):
            yield column, sorted(distinct)


def _insert_document(
    connection: sqlite3.Connection,
    kind: str,
    package: str,
    title: str,
    keys: str,
    meta: Mapping[str, Any],
    body: bytes | None,
    fields: Sequence[str],
) -> int:
    cursor = connection.execute(
        f"INSERT INTO documents(kind, package, title, keys, meta, body, {', '.join(FIELDS)}) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (kind, package, title, keys, canonical_json(meta), body, *fields),
    )
    return int(cursor.lastrowid or 0)


def _groups(tables: Sequence[RawTable]) -> Iterator[tuple[list[RawTable], Keys]]:
    """Tables that hang together, with their keys."""
    separate = len(tables) > _SEPARATE_ABOVE
    folders: dict[str, list[RawTable]] = {}
    for table in tables:
        folders.setdefault(table.source.file if separate else "", []).append(table)
    for members in folders.values():
        keys = discover(members)
        for names in components(members, keys.links):
            group = [table for table in members if table.name in names]
            yield (
                group,
                Keys(
                    primary={name: keys.primary[name] for name in names if name in keys.primary},
                    links=tuple(link for link in keys.links if link.child in names),
                ),
            )


def _distinct_names(tables: Sequence[RawTable]) -> list[RawTable]:
    """Tables told apart by the folder they came from when two have one name."""
    counts = Counter(table.name for table in tables)
    seen: Counter[str] = Counter()
    named = []
    for table in tables:
        name = table.name
        if counts[name] > 1:
            name = f"{PurePosixPath(table.source.file.rpartition('!')[2]).parent.name} {name}"
        seen[name] += 1
        named.append(replace(table, name=name if seen[name] == 1 else f"{name} {seen[name]}"))
    return named


def _frequent_cells(tables: Sequence[RawTable]) -> Iterator[str]:
    for table in tables:
        for position in range(len(table.header)):
            cells = Counter(
                row[position][:60]
                for row in table.rows[:3000]
                if row[position] and not re.fullmatch(r"[-\d.,:/TZ ]+", row[position])
            )
            repeated = sorted((cell for cell in cells if cells[cell] > 1), key=lambda cell: (-cells[cell], cell))
            yield from repeated[:12] or spread(sorted(cells), 24)


def _opened(names: Iterable[str]) -> str:
    """Identifiers as words, abbreviations also written out."""
    return " . ".join(f"{name} . {' '.join(expanded(name))}" for name in names)


def _stemmed(text: str) -> str:
    return " ".join(stems(text))


def _packed(rows: Sequence[Sequence[str | None]]) -> bytes:
    return zlib.compress(json.dumps(rows, ensure_ascii=False).encode(), 3)
