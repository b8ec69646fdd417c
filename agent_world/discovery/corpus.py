"""The local web that mining searches: documents made of installed data packages, behind SQLite FTS5.

A document is a group of linked tables of one package, or a page of its documentation. Everything is cached in one
SQLite file keyed by the state of the packages, so that a second run opens it at once.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_world.codec import decode
from agent_world.discovery.background import Background, background_of
from agent_world.discovery.build_once import build_once
from agent_world.discovery.corpus_writer import FIELDS, write_corpus
from agent_world.discovery.keys import Keys
from agent_world.discovery.model import CorpusDocument, Hit, Quarantined, RawTable
from agent_world.discovery.packages import data_packages, installed_state
from agent_world.discovery.text import stems
from agent_world.discovery.word_space import WordSpace, space_of
from agent_world.environments.model import Source
from agent_world.errors import BadInputError
from agent_world.identity import Digest, canonical_json, sha256

if TYPE_CHECKING:
    from agent_world.discovery.relevance import Relevance

CORPUS_FORMAT = 17
"""Raised whenever reading or key discovery changes what a corpus holds."""

_WEIGHTS = (4, 3, 1, 3, 1)


class Reference(NamedTuple):
    """A column whose values name the rows of a table, so that other data may refer to it."""

    document_id: int
    table_id: int
    table_name: str
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
    def digest(self) -> Digest:
        """What the packages hold that it was built from, whenever and wherever they were read."""
        rows = self._connection.execute("SELECT name, sha256 FROM packages ORDER BY name").fetchall()
        return sha256(canonical_json([list(row) for row in rows]))

    def retrieved_at(self, packages: Iterable[str]) -> str | None:
        """When the first of these packages was read, in UTC; None when none of them is here."""
        times = dict(self._connection.execute("SELECT name, read_at FROM packages").fetchall())
        return min((times[package] for package in packages if package in times), default=None)

    @cached_property
    def documents(self) -> tuple[CorpusDocument, ...]:
        """All documents, in a fixed order."""
        rows = self._connection.execute(
            f"SELECT id, kind, package, title, meta, {', '.join(FIELDS)} FROM documents ORDER BY id"
        )
        return tuple(
            CorpusDocument(
                document_id=row[0],
                kind=row[1],
                package=row[2],
                title=row[3],
                table_names=tuple(json.loads(row[4]).get("tables", ())),
                fields={name: frozenset(text.split()) for name, text in zip(FIELDS, row[5:], strict=True)},
            )
            for row in rows
        )

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
    def space(self) -> WordSpace:
        """What words have to do with each other, as the themes known when the corpus was built have it."""
        places = dict(self._connection.execute("SELECT word, place FROM places").fetchall())
        return WordSpace(directions=len(next(iter(places.values()), bytes(4))) // 4, places=places)

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
            (query, *([kind] if kind else []), limit),
        ).fetchall()
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
            self._one("SELECT body FROM documents WHERE id = ?", document_id)
        )

    @cached_property
    def references(self) -> tuple[Reference, ...]:
        """Columns with distinct text values, all values of the source where it is not too long."""
        rows = self._connection.execute(
            "SELECT r.document, r.table_id, t.name, r.column, r.cells FROM refs r JOIN tables t ON t.id = r.table_id "
            "ORDER BY r.rowid"
        )
        return tuple(Reference(*row[:4], frozenset(json.loads(zlib.decompress(row[4])))) for row in rows)

    def complete_table(self, table_id: int) -> RawTable:
        """One table with all the rows that were read, where they are kept, else its sample."""
        if table_id not in self._complete:
            self._complete[table_id] = next(
                table for _, table in self._tables("id = ?", (table_id,), "coalesce(complete, rows)")
            )
        return self._complete[table_id]

    def readme(self, package: str) -> tuple[Source, str]:
        """What a package says about itself."""
        version, licence, summary, readme = self._connection.execute(
            "SELECT version, licence, summary, readme FROM packages WHERE name = ?", (package,)
        ).fetchone()
        text = readme or summary
        source = Source(package=package, version=version, file="METADATA", sha256=sha256(text), licence=licence)
        return source, text

    def _tables(self, where: str, arguments: tuple, column: str) -> Iterator[tuple[int, RawTable]]:
        for identity, meta, rows in self._connection.execute(
            f"SELECT id, meta, {column} FROM tables WHERE {where} ORDER BY id", arguments
        ):
            yield (
                identity,
                RawTable(rows=tuple(map(tuple, json.loads(zlib.decompress(rows)))), **_table_fields(json.loads(meta))),
            )

    def _one(self, query: str, argument: Any) -> Any:
        return self._connection.execute(query, (argument,)).fetchone()[0]


def build_corpus(
    cache_dir: Path | str, packages: Sequence[str] | None = None, themes: Sequence[str] | None = None
) -> Corpus:
    """Open the corpus of the installed data packages, building it first when a version or a file changed.

    Several processes may call this at once: one builds, the others wait for it.

    `themes` are the texts against which words are common or distinctive; without them they are those of the default
    theme sources. A package that is missing is left out and stands among the faults; the others go on.

    Raises:
        BadInputError: none of the packages is installed.
    """
    names = sorted(packages if packages is not None else data_packages())
    states = {name: installed_state(name) for name in names}
    if not any(states.values()):
        raise BadInputError("data packages", "none is installed", "run `make install`")
    background = sha256("\n".join(themes)) if themes is not None else _pool_key()
    path = Path(cache_dir) / f"corpus-{sha256(canonical_json([CORPUS_FORMAT, states, background]))[:16]}.sqlite"

    def write(unfinished: Path) -> None:
        texts, publishers = (themes, None) if themes is not None else _pool()
        stemmed = [stems(text) for text in texts]
        write_corpus(unfinished, names, background_of(stemmed), space_of(stemmed, publishers))

    build_once(path, write)
    return Corpus(path)


def _pool_key() -> str:
    from agent_world.discovery.themes.pool import default_pool_key

    return default_pool_key()


def _pool() -> tuple[list[str], list[str]]:
    """The texts of all themes within reach, and who published each."""
    from agent_world.discovery.themes.documents import publisher_of
    from agent_world.discovery.themes.pool import default_pool

    drafts = default_pool()
    return [draft.text for draft in drafts], [publisher_of(draft.document.origin) for draft in drafts]


def _table_fields(meta: Mapping[str, Any]) -> dict[str, Any]:
    table = decode(RawTable, {**meta, "rows": ()})
    return {
        "name": table.name,
        "header": table.header,
        "total": table.total,
        "source": table.source,
        "declared_key": table.declared_key,
        "declared_links": table.declared_links,
    }
