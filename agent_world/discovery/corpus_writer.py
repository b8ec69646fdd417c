"""Writing a corpus: installed packages to searchable documents, linked tables and references, in one SQLite file."""

from __future__ import annotations

import json
import re
import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from agent_world.codec import encode
from agent_world.discovery.background import Background
from agent_world.discovery.keys import Keys, components, discover
from agent_world.discovery.model import Quarantined, RawTable
from agent_world.discovery.packages import PackageContent, read_package
from agent_world.discovery.readers import FULL_ROWS, spread
from agent_world.discovery.sampling import sample
from agent_world.discovery.text import plain_text, stems
from agent_world.discovery.word_space import WordSpace
from agent_world.discovery.words import expanded
from agent_world.engine import Engine
from agent_world.environments.model import Source
from agent_world.errors import AgentWorldError
from agent_world.identity import canonical_json, sha256

MAX_ROWS = 3_000
FIELDS = ("names", "columns", "cells", "summary", "readme")
_FEW = 10  # packages; below, starting workers costs more than it saves
_MIN_REFERENCE = 12
_SEPARATE_ABOVE = 60  # tables; a package with more is a collection, and only tables of one file are linked

_SCHEMA = """
CREATE TABLE packages(name TEXT PRIMARY KEY, version TEXT, sha256 TEXT, read_at TEXT,
                      licence TEXT, summary TEXT, readme TEXT);
CREATE TABLE tables(id INTEGER PRIMARY KEY, document INTEGER, name TEXT, meta TEXT, rows BLOB, complete BLOB);
CREATE TABLE documents(id INTEGER PRIMARY KEY, kind TEXT, package TEXT, title TEXT, keys TEXT, meta TEXT, body BLOB,
                       names TEXT, columns TEXT, cells TEXT, summary TEXT, readme TEXT);
CREATE TABLE refs(document INTEGER, table_id INTEGER, column TEXT, cells BLOB);
CREATE TABLE background(word TEXT PRIMARY KEY, themes INTEGER);
CREATE TABLE places(word TEXT PRIMARY KEY, place BLOB);
CREATE TABLE faults(item TEXT, reason TEXT, detail TEXT, raw BLOB);
CREATE VIRTUAL TABLE search USING fts5(names, columns, cells, summary, readme, content='documents', content_rowid='id');
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _TableEntry:
    """A table as stored: description, packed sample, packed whole where it is kept, and columns others may refer to."""

    name: str
    meta: str
    rows: bytes
    complete: bytes | None
    references: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _DocumentEntry:
    """A document as stored, its stemmed text by field."""

    kind: str
    title: str
    fields: tuple[str, ...]
    meta: str
    keys: str = "{}"
    body: bytes | None = None
    tables: tuple[_TableEntry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _PackageEntry:
    """A package as stored; `about` is version, digest, time of reading, licence, summary and readme."""

    name: str
    about: tuple[str, str, str, str, str, str]
    documents: tuple[_DocumentEntry, ...]
    faults: tuple[Quarantined, ...]


class UnfinishedCorpusError(AgentWorldError):
    """The machine, not the package, kept a package from being read: a corpus without it would be another one."""

    def __init__(self, package: str, why: str) -> None:
        super().__init__(package, why)
        self.package, self.why = package, why

    def __str__(self) -> str:
        return f"{self.package} could not be read for the corpus: {self.why}; give it room and try again"


def write_corpus(path: Path, names: Sequence[str], background: Background, space: WordSpace) -> None:
    """Write the corpus of these packages to a new file; one that cannot be read is noted among the faults.

    Raises:
        UnfinishedCorpusError: for want of room, memory or file handles.
    """
    connection = sqlite3.connect(path)
    try:
        connection.executescript(_SCHEMA)
        connection.execute("INSERT INTO background VALUES ('', ?)", (background.themes,))
        connection.executemany("INSERT INTO background VALUES (?, ?)", sorted(background.frequencies.items()))
        connection.executemany("INSERT INTO places VALUES (?, ?)", sorted(space.places.items()))
        with Engine(None if len(names) > _FEW else 1) as engine:
            for done in engine.map(_prepare, names):
                if done.result:
                    _insert(connection, done.result)
                elif done.failure.passing:
                    raise UnfinishedCorpusError(done.item, done.failure.error)
                else:
                    cure = "; install it anew, or leave it out of the `data` extra" if done.failure.trace else ""
                    fault = (done.item, "package_unreadable", f"{done.failure.error}{cure}", b"")
                    connection.execute("INSERT INTO faults VALUES (?, ?, ?, ?)", fault)
        connection.execute("INSERT INTO search(search) VALUES ('rebuild')")
        connection.commit()
    finally:
        connection.close()


def _prepare(name: str) -> _PackageEntry:
    read_at = datetime.now(UTC).isoformat(timespec="seconds")
    content = read_package(name)
    pages = [(path, data, plain_text(data.decode("utf-8", "replace"))) for path, data in content.pages]
    about = {_page_title(path).lower(): text for path, _, text in pages}
    groups = list(_groups(_distinct_names(content.tables)))
    largest = max((len(tables) for tables, _ in groups), default=0)
    documents = []
    for tables, keys in groups:
        said = " ".join(about.get(table.name.lower(), "") for table in tables)
        said = f"{content.readme[:3000]} {said}" if len(tables) == largest else said
        documents.append(_tables_entry(content, tables, keys, said))
    for path, data, text in pages:
        source = Source(
            package=content.name, version=content.version, file=path, sha256=sha256(data), licence=content.licence
        )
        documents.append(
            _DocumentEntry(
                kind="page",
                title=_page_title(path),
                fields=("", "", "", "", _stemmed(text[:6000])),
                meta=canonical_json({"source": encode(source)}),
                body=zlib.compress(data),
            )
        )
    return _PackageEntry(
        name=content.name,
        about=(content.version, content.sha256, read_at, content.licence, content.summary, content.readme),
        documents=tuple(documents),
        faults=content.faults,
    )


def _tables_entry(content: PackageContent, tables: Sequence[RawTable], keys: Keys, about: str) -> _DocumentEntry:
    files = " ".join(dict.fromkeys(PurePosixPath(table.source.file).stem for table in tables))
    sampled = sample(tables, keys.links, MAX_ROWS)
    return _DocumentEntry(
        kind="tables",
        title=", ".join(table.name for table in tables[:6]),
        fields=(
            _stemmed(_opened(table.name for table in tables) + " " + files),
            _stemmed(_opened(column for table in tables for column in table.header)),
            _stemmed(" ".join(_frequent_cells(tables))[:6000]),
            _stemmed(f"{content.summary} {content.name}"),
            _stemmed(about[:6000]),
        ),
        meta=canonical_json({"tables": [table.name for table in tables]}),
        keys=canonical_json(encode(keys)),
        tables=tuple(_table_entry(table, small, keys) for table, small in zip(tables, sampled, strict=True)),
    )


def _table_entry(table: RawTable, small: RawTable, keys: Keys) -> _TableEntry:
    referred = table.name in keys.primary and len(small.rows) < len(table.rows) <= FULL_ROWS
    known = table if referred or len(small.rows) == len(table.rows) else small
    return _TableEntry(
        name=table.name,
        meta=canonical_json(encode(replace(table, rows=()))),
        rows=_packed(small.rows),
        complete=_packed(table.rows) if referred else None,
        references=tuple((column, _packed(cells)) for column, cells in _naming_columns(known)),
    )


def _insert(connection: sqlite3.Connection, package: _PackageEntry) -> None:
    connection.execute("INSERT INTO packages VALUES (?, ?, ?, ?, ?, ?, ?)", (package.name, *package.about))
    connection.executemany(
        "INSERT INTO faults VALUES (?, ?, ?, ?)",
        [(fault.item, fault.reason, fault.detail, fault.raw) for fault in package.faults],
    )
    for entry in package.documents:
        document = connection.execute(
            f"INSERT INTO documents(kind, package, title, keys, meta, body, {', '.join(FIELDS)}) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (entry.kind, package.name, entry.title, entry.keys, entry.meta, entry.body, *entry.fields),
        ).lastrowid
        for table in entry.tables:
            stored = connection.execute(
                "INSERT INTO tables(document, name, meta, rows, complete) VALUES (?, ?, ?, ?, ?)",
                (document, table.name, table.meta, table.rows, table.complete),
            ).lastrowid
            connection.executemany(
                "INSERT INTO refs VALUES (?, ?, ?, ?)",
                [(document, stored, column, cells) for column, cells in table.references],
            )


def _page_title(path: str) -> str:
    return PurePosixPath(path.rpartition("!")[2]).stem


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
    """Tables told apart by the nearest folder that differs when two have one name."""
    namesakes: dict[str, list[RawTable]] = {}
    for table in tables:
        namesakes.setdefault(table.name, []).append(table)
    seen: Counter[str] = Counter()
    named = []
    for table in tables:
        name = f"{_telling_folder(table, namesakes[table.name])} {table.name}".strip()
        seen[name] += 1
        named.append(replace(table, name=name if seen[name] == 1 else f"{name} {seen[name]}"))
    return named


def _telling_folder(table: RawTable, namesakes: Sequence[RawTable]) -> str:
    """The folder nearest to the file in which not all of these tables lie; "" when there is one table or no such."""
    paths = [PurePosixPath(one.source.file.rpartition("!")[2]).parts[-2::-1] for one in namesakes]
    own = PurePosixPath(table.source.file.rpartition("!")[2]).parts[-2::-1]
    for level, folder in enumerate(own):
        if any(len(path) <= level or path[level] != folder for path in paths):
            return folder
    return ""


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


def _packed(rows: Sequence[Any]) -> bytes:
    return zlib.compress(json.dumps(rows, ensure_ascii=False).encode(), 3)
