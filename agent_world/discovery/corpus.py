"""The local web that mining searches: documents made of installed data packages, behind SQLite FTS5.

A document is a group of linked tables of one package, or a page of its documentation. Everything is cached in one
SQLite file keyed by the package versions, so that a second run opens it at once.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_world.codec import decode, encode
from agent_world.discovery.background import Background, background_of
from agent_world.discovery.keys import Keys, components, discover
from agent_world.discovery.model import CorpusDocument, Hit, Quarantined, RawTable
from agent_world.discovery.packages import PackageContent, data_packages, installed_version, read_package
from agent_world.discovery.readers import spread
from agent_world.discovery.sampling import sample
from agent_world.discovery.text import plain_text, stems
from agent_world.discovery.words import expanded
from agent_world.environments.model import Source
from agent_world.errors import BadInputError
from agent_world.identity import canonical_json, sha256

if TYPE_CHECKING:
    from agent_world.discovery.relevance import Relevance

CORPUS_FORMAT = 11
"""Raised whenever reading or key discovery changes what a corpus holds."""

MAX_ROWS = 3_000
_FULL_ROWS = 50_000
_MIN_REFERENCE = 12
_SEPARATE_ABOVE = 60  # tables; a package with more is a collection, and only tables of one folder are linked
_TABULAR_FIELDS = ("names", "columns", "cells", "summary", "readme")
_WEIGHTS = (4, 3, 1, 3, 1)

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


class Reference(NamedTuple):
    """A column whose values name the rows of a table, so that other data may refer to it."""

    document_id: int
    table_id: int
    column: str
    cells: frozenset[str]


class Corpus:
    """An opened corpus. Safe to share between threads that only read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, check_same_thread=False)
        self._complete: dict[int, RawTable] = {}

    @cached_property
    def packages(self) -> dict[str, str]:
        """Versions of the packages it was built from."""
        return dict(self._connection.execute("SELECT name, version FROM packages ORDER BY name").fetchall())

    @cached_property
    def documents(self) -> tuple[CorpusDocument, ...]:
        """All documents, in a fixed order."""
        rows = self._connection.execute(
            f"SELECT id, kind, package, title, meta, {', '.join(_TABULAR_FIELDS)} FROM documents ORDER BY id")
        return tuple(
            CorpusDocument(
                document_id=row[0], kind=row[1], package=row[2], title=row[3],
                table_names=tuple(json.loads(row[4]).get("tables", ())),
                fields={name: frozenset(text.split()) for name, text in zip(_TABULAR_FIELDS, row[5:], strict=True)})
            for row in rows)

    @cached_property
    def faults(self) -> tuple[Quarantined, ...]:
        """What could not be read, with its raw bytes."""
        rows = self._connection.execute("SELECT item, reason, detail, raw FROM faults ORDER BY rowid")
        return tuple(Quarantined(stage="corpus", item=r[0], reason=r[1], detail=r[2], raw=r[3]) for r in rows)

    @cached_property
    def background(self) -> Background:
        """How common words are among the themes known when the corpus was built."""
        counts = dict(self._connection.execute("SELECT word, themes FROM background").fetchall())
        return Background(themes=counts.pop("", 0), frequencies=counts)

    @cached_property
    def relevance(self) -> Relevance:
        """The judge of these documents against themes."""
        from agent_world.discovery.relevance import Relevance

        return Relevance(self.documents, self.background)

    def search(self, words: Iterable[str], limit: int = 10, kind: str | None = None) -> list[Hit]:
        """The documents that share any of these stems (`text.stems`), best first (BM25)."""
        query = " OR ".join(f'"{word}"' for word in dict.fromkeys(words))
        if not query:
            return []
        weights = ", ".join(map(str, _WEIGHTS))
        condition = "AND d.kind = ?" if kind else ""
        rows = self._connection.execute(
            f"SELECT d.id, bm25(search, {weights}) AS score FROM search JOIN documents d ON d.id = search.rowid "
            f"WHERE search MATCH ? {condition} ORDER BY score, d.id LIMIT ?",
            (query, *([kind] if kind else []), limit)).fetchall()
        return [Hit(document=self.document(identity), score=-score) for identity, score in rows]

    def document(self, document_id: int) -> CorpusDocument:
        """The document with this id."""
        return self._by_id[document_id]

    @cached_property
    def _by_id(self) -> dict[int, CorpusDocument]:
        return {document.document_id: document for document in self.documents}

    def tables(self, document_id: int) -> list[RawTable]:
        """The tables of a document, larger ones as closed samples."""
        return [table for _, table in self._tables("document = ?", (document_id,), "rows")]

    def keys(self, document_id: int) -> Keys:
        """Keys and links of a document's tables, found on the full rows."""
        return decode(Keys, json.loads(self._one("SELECT keys FROM documents WHERE id = ?", document_id)))

    def page(self, document_id: int) -> tuple[Source, bytes]:
        """The source and the raw bytes of a page."""
        meta = json.loads(self._one("SELECT meta FROM documents WHERE id = ?", document_id))
        return decode(Source, meta["source"]), zlib.decompress(
            self._one("SELECT body FROM documents WHERE id = ?", document_id))

    @cached_property
    def references(self) -> tuple[Reference, ...]:
        """Columns with distinct text values, all values of the source where it is not too long."""
        rows = self._connection.execute("SELECT document, table_id, column, cells FROM refs ORDER BY rowid")
        return tuple(Reference(row[0], row[1], row[2], frozenset(json.loads(zlib.decompress(row[3])))) for row in rows)

    def complete_table(self, table_id: int) -> RawTable:
        """One table with all the rows that were read, where they are kept, else its sample."""
        if table_id not in self._complete:
            self._complete[table_id] = next(
                table for _, table in self._tables("id = ?", (table_id,), "coalesce(complete, rows)"))
        return self._complete[table_id]

    def readme(self, package: str) -> tuple[Source, str]:
        """What a package says about itself."""
        version, licence, summary, readme = self._connection.execute(
            "SELECT version, licence, summary, readme FROM packages WHERE name = ?", (package,)).fetchone()
        text = readme or summary
        source = Source(package=package, version=version, file="METADATA", sha256=sha256(text), licence=licence)
        return source, text

    def _tables(self, where: str, arguments: tuple, column: str) -> Iterator[tuple[int, RawTable]]:
        for identity, meta, rows in self._connection.execute(
                f"SELECT id, meta, {column} FROM tables WHERE {where} ORDER BY id", arguments):
            yield identity, RawTable(rows=tuple(map(tuple, json.loads(zlib.decompress(rows)))),
                                     **_table_fields(json.loads(meta)))

    def _one(self, query: str, argument: Any) -> Any:
        return self._connection.execute(query, (argument,)).fetchone()[0]


def build_corpus(cache_dir: Path | str, packages: Sequence[str] | None = None,
                 themes: Sequence[str] | None = None) -> Corpus:
    """Open the corpus of the installed data packages, building it first when a version changed.

    `themes` are the texts against which words are common or distinctive; without them they are those of the default
    theme sources. A package that is missing is left out and stands among the faults; the others go on.

    Raises:
        BadInputError: none of the packages is installed.
    """
    names = sorted(packages if packages is not None else data_packages())
    versions = {name: installed_version(name) for name in names}
    if not any(versions.values()):
        raise BadInputError("data packages", "none is installed", "run `make install`")
    background = sha256("\n".join(themes)) if themes is not None else _pool_key()
    path = Path(cache_dir) / f"corpus-{sha256(canonical_json([CORPUS_FORMAT, versions, background]))[:16]}.sqlite"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}.part")
        unfinished.unlink(missing_ok=True)
        _write(unfinished, names, background_of(themes if themes is not None else _pool_texts()))
        unfinished.replace(path)
    return Corpus(path)


def _pool_key() -> str:
    from agent_world.discovery.themes.pool import default_pool_key

    return default_pool_key()


def _pool_texts() -> list[str]:
    from agent_world.discovery.themes.pool import default_pool

    return [draft.text for draft in default_pool()]


def _write(path: Path, names: Sequence[str], background: Background) -> None:
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
    connection.execute("INSERT INTO packages VALUES (?, ?, ?, ?, ?)",
                       (content.name, content.version, content.licence, content.summary, content.readme))
    connection.executemany("INSERT INTO faults VALUES (?, ?, ?, ?)",
                           [(fault.item, fault.reason, fault.detail, fault.raw) for fault in content.faults])
    pages = {PurePosixPath(path.rpartition("!")[2]).stem.lower(): plain_text(data.decode("utf-8", "replace"))
             for path, data in content.pages}
    groups = list(_groups(_distinct_names(content.tables)))
    largest = max((len(tables) for tables, _ in groups), default=0)
    for tables, keys in groups:
        about = " ".join(pages.get(table.name.lower(), "") for table in tables)
        if len(tables) == largest or len(groups) == 1:
            about = f"{content.readme[:3000]} {about}"
        _write_tables(connection, content, tables, keys, about)
    for path, data in content.pages:
        source = Source(package=content.name, version=content.version, file=path, sha256=sha256(data),
                        licence=content.licence)
        text = plain_text(data.decode("utf-8", "replace"))
        _insert_document(connection, "page", content.name, PurePosixPath(path.rpartition("!")[2]).stem, "{}",
                         {"source": encode(source)}, zlib.compress(data), ("", "", "", "", _stemmed(text[:6000])))


def _write_tables(connection: sqlite3.Connection, content: PackageContent, tables: Sequence[RawTable], keys: Keys,
                  about: str) -> None:
    title = ", ".join(table.name for table in tables[:6])
    files = " ".join(dict.fromkeys(PurePosixPath(table.source.file).stem for table in tables))
    fields = (
        _stemmed(_opened(table.name for table in tables) + " " + files),
        _stemmed(_opened(column for table in tables for column in table.header)),
        _stemmed(" ".join(_frequent_cells(tables))[:6000]),
        _stemmed(f"{content.summary} {content.name}"),
        _stemmed(about[:6000]),
    )
    document = _insert_document(connection, "tables", content.name, title, canonical_json(encode(keys)),
                                {"tables": [table.name for table in tables]}, None, fields)
    sampled = sample(tables, keys.links, MAX_ROWS)
    for table, small in zip(tables, sampled, strict=True):
        referred = table.name in keys.primary and len(small.rows) < len(table.rows) <= _FULL_ROWS
        meta = encode(replace(table, rows=()))
        cursor = connection.execute(
            "INSERT INTO tables(document, name, meta, rows, complete) VALUES (?, ?, ?, ?, ?)",
            (document, table.name, canonical_json(meta), _packed(small.rows), _packed(table.rows) if referred else None))
        known = table if referred or len(small.rows) == len(table.rows) else small
        connection.executemany("INSERT INTO refs VALUES (?, ?, ?, ?)", [
            (document, cursor.lastrowid, column, zlib.compress(json.dumps(cells, ensure_ascii=False).encode(), 3))
            for column, cells in _naming_columns(known)])


def _naming_columns(table: RawTable) -> Iterator[tuple[str, list[str]]]:
    """Columns of distinct words or codes: what rows of other tables may refer to."""
    for position, column in enumerate(table.header):
        cells = [row[position] for row in table.rows if row[position]]
        distinct = set(cells)
        if (len(cells) == len(distinct) >= _MIN_REFERENCE and len(cells) >= 0.5 * len(table.rows)
                and not column.startswith("column ") and max(map(len, cells)) <= 60
                and sum(cell.replace(".", "").replace("-", "").isdigit() for cell in cells) < 0.2 * len(cells)):
            yield column, sorted(distinct)


def _insert_document(connection: sqlite3.Connection, kind: str, package: str, title: str, keys: str,
                     meta: Mapping[str, Any], body: bytes | None, fields: Sequence[str]) -> int:
    cursor = connection.execute(
        f"INSERT INTO documents(kind, package, title, keys, meta, body, {', '.join(_TABULAR_FIELDS)}) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (kind, package, title, keys, canonical_json(meta), body, *fields))
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
            yield group, Keys(primary={name: keys.primary[name] for name in names if name in keys.primary},
                              links=tuple(link for link in keys.links if link.child in names))


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
            cells = Counter(row[position][:60] for row in table.rows[:3000]
                            if row[position] and not re.fullmatch(r"[-\d.,:/TZ ]+", row[position]))
            repeated = sorted((cell for cell in cells if cells[cell] > 1), key=lambda cell: (-cells[cell], cell))
            yield from repeated[:12] or spread(sorted(cells), 24)


def _opened(names: Iterable[str]) -> str:
    """Identifiers as words, abbreviations also written out."""
    return " . ".join(f"{name} . {' '.join(expanded(name))}" for name in names)


def _stemmed(text: str) -> str:
    return " ".join(stems(text))


def _packed(rows: Sequence[Sequence[str | None]]) -> bytes:
    return zlib.compress(json.dumps(rows, ensure_ascii=False).encode(), 3)


def _table_fields(meta: Mapping[str, Any]) -> dict[str, Any]:
    table = decode(RawTable, {**meta, "rows": ()})
    return {"name": table.name, "header": table.header, "total": table.total, "source": table.source,
            "declared_key": table.declared_key, "declared_links": table.declared_links}
