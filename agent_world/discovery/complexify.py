"""Complexification `phi`: one round makes the next, richer version of a database (method.md 2).

A round looks for what the data itself points to: tables of other sources that its values refer to, and documents that
search finds for the theme. Whether it counts is for its gate to say (`gates.check_round`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from agent_world.discovery.corpus import Corpus
from agent_world.discovery.documents import FORMATS, Format, render
from agent_world.discovery.mining import find_data
from agent_world.discovery.model import RawTable, Theme
from agent_world.discovery.references import FoundReference, find_references
from agent_world.discovery.richness import brings_rows, distinct_rows, known_sources, richness
from agent_world.discovery.snapshot import Built, assemble, load, share_found
from agent_world.discovery.structure import build
from agent_world.discovery.text import stems
from agent_world.discovery.themes.documents import theme_text
from agent_world.discovery.toolsmith.view import LONG_TEXT
from agent_world.discovery.words import name_words
from agent_world.environments.model import (
    DOCUMENTS_FOLDER,
    SQLITE_FILE,
    Column,
    Database,
    Document,
    ForeignKey,
    Source,
    Table,
)
from agent_world.identity import rng, slug

_MAX_ADDED_ROWS = 3_000
_SHEET_ROWS = 40
_SHEET_COLUMNS = 5
_PAGE_BYTES = 40_000
_PAGES_READ = 6
_RELATED_READ = 20
_RELATED_SCORE = 0.03
_NOT_THINGS = {"code", "alpha", "numeric", "name", "value", "type"}
_PAGE_WORDS = 2
_PAGE_COVERAGE = 0.10
_PAGE_NEARNESS = 0.7
_TITLED_PAGE_WORDS = 3
_README_BYTES = 6_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Addition:
    """A document with its bytes."""

    document: Document
    data: bytes


def complexify(
    database: Database, files: Mapping[str, bytes], theme: Theme, corpus: Corpus, round: int
) -> tuple[Database, dict[str, bytes]] | None:
    """The database of this round, or None when nothing was found."""
    built = load(database, files)
    known = known_sources(database)
    own = [_raw(item) for item in built if item.table.added_in == 0]
    references = find_references(
        own,
        corpus,
        known_files=known,
        taken={(item.table.name, foreign.column) for item in built for foreign in item.table.foreign_keys},
    )
    grown = _with_reference(built, references, round)
    if grown:
        references = [
            found
            for found in references
            if _source_of(found.table) not in known and found.table.source != grown[-1].table.source
        ]
        known |= {_source_of(grown[-1].table)}
    addition = (
        _sheet(references, own, database, round)
        or _readme(grown or built, corpus, known, round)
        or _page(theme, corpus, known, round)
        or _related(theme, corpus, known, database, round)
    )
    if grown is None and addition is None:
        return None
    built = grown or built
    documents = (*database.documents, *([addition.document] if addition else []))
    document_files = {path: data for path, data in files.items() if path != SQLITE_FILE}
    if addition:
        document_files[f"{DOCUMENTS_FOLDER}/{addition.document.path}"] = addition.data
    return assemble(
        built,
        database_id=database.database_id,
        theme=database.theme,
        round=round,
        documents=documents,
        document_files=document_files,
        richness=richness(built, documents),
    )


def _source_of(table: RawTable | Table) -> tuple[str, str]:
    return (table.source.package, table.source.file) if table.source else ("", "")


def _raw(item: Built) -> RawTable:
    """A structured table as text again, for comparison with the corpus."""
    table = item.table
    columns = [
        [None if value is None else str(value) for value in item.columns[column.name]]
        for column in table.columns
        if column.type == "text" and column.role not in {"date", "clock", "list"}
    ]
    header = tuple(
        column.name
        for column in table.columns
        if column.type == "text" and column.role not in {"date", "clock", "list"}
    )
    source = table.source or Source(package="", version="", file="", sha256="", licence="")
    return RawTable(
        name=table.name, header=header, rows=tuple(zip(*columns, strict=True)), total=table.rows, source=source
    )


def _with_reference(built: Sequence[Built], references: Sequence[FoundReference], round: int) -> list[Built] | None:
    """The tables plus the best reference table that brings something, linked to the column that refers to it."""
    names = {item.table.name for item in built}
    for found in references:
        table = _named(found)
        if len(table.rows) > _MAX_ADDED_ROWS:
            continue
        parent = build([table], {table.name: found.link.parent_column}, [], added_in=round)[0]
        if parent.table.name in names or len(parent.table.columns) < 2 or distinct_rows(parent) < 2:
            continue
        if not brings_rows(parent, built) or not _tells(parent, parent.table.columns):
            continue
        return [*(_linked(item, found, parent) for item in built), parent]
    return None


def _tells(item: Built, columns: Iterable[Column]) -> bool:
    """Whether one of `columns` says more of a row than its key does: tools and tasks pass over long texts."""
    return any(
        column.name not in item.table.primary_key
        and (
            column.name == item.table.label
            or (column.role != "list" and all(len(str(value)) <= LONG_TEXT for value in item.columns[column.name]))
        )
        for column in columns
    )


def _named(found: FoundReference) -> RawTable:
    """The table under a name a person would use: one made of codes is called after the column that refers to it."""
    words = [
        word for word in name_words(found.link.column) if len(word) > 3 and word.isalpha() and word not in _NOT_THINGS
    ]
    if not any(map(str.isdigit, found.table.name)) or not words:
        return found.table
    return replace(found.table, name=words[-1])


def _linked(item: Built, found: FoundReference, parent: Built) -> Built:
    if item.table.name != found.link.child:
        return item
    key = next(
        column.name for column in parent.table.columns if column.original.split(" (")[0] == found.link.parent_column
    )
    foreign = ForeignKey(
        column=found.link.column,
        parent=parent.table.name,
        parent_column=key,
        integrity=share_found(item.columns[found.link.column], parent.columns[key]),
        origin="discovered",
    )
    columns = tuple(
        replace(column, role="reference")
        if column.name == found.link.column
        and column.name not in item.table.primary_key
        and column.name != item.table.label
        else column
        for column in item.table.columns
    )
    table = replace(item.table, columns=columns, foreign_keys=(*item.table.foreign_keys, foreign))
    return Built(table=table, columns=item.columns)


def _sheet(
    references: Sequence[FoundReference], own: Sequence[RawTable], database: Database, round: int
) -> _Addition | None:
    """A small table of another source as a document, those rows first that say something about values found here."""
    tables = {table.name: table for table in own}
    for found in references:
        child = tables[found.link.child]
        position = child.header.index(found.link.column)
        used = {row[position] for row in child.rows}
        named = _named(found)
        place = named.header.index(found.link.parent_column)
        first = replace(named, rows=tuple(sorted(named.rows, key=lambda row, at=place, used=used: row[at] not in used)))
        addition = _sheet_of(first, found.link.parent_column, database, round)
        if addition:
            return addition
    return None


def _related(
    theme: Theme, corpus: Corpus, known: set[tuple[str, str]], database: Database, round: int
) -> _Addition | None:
    """A sheet of the next best data that search finds for the theme, when it has anything to do with it."""
    for evidence in find_data(theme, corpus)[:_RELATED_READ]:
        for table in corpus.tables(evidence.document.document_id):
            if evidence.score >= _RELATED_SCORE and _source_of(table) not in known:
                key = corpus.keys(evidence.document.document_id).primary.get(table.name)
                addition = _sheet_of(table, key, database, round)
                if addition:
                    return addition
    return None


def _sheet_of(table: RawTable, key: str | None, database: Database, round: int) -> _Addition | None:
    built = build([table], {table.name: key} if key else {}, [], added_in=round)[0]
    first = next((column for column in built.table.columns if key and column.original.split(" (")[0] == key), None)
    columns = [
        *([first] if first else []),
        *(
            column
            for column in built.table.columns
            if column is not first and column.role not in {"list", "identifier"}
        ),
    ]
    columns = columns[:_SHEET_COLUMNS]
    format = _format(database, round)
    path = f"{slug(built.table.plural)}.{format}"
    if len(columns) < 2 or not _tells(built, columns) or path in {known.path for known in database.documents}:
        return None
    rows = list(zip(*(built.columns[column.name] for column in columns), strict=True))[:_SHEET_ROWS]
    extract = f" ({len(rows)} of {table.total})" if len(rows) < table.total else ""
    title = f"{built.table.plural}{extract}"
    document = Document(path=path, format=format, title=title, source=built.table.source, added_in=round)
    return _Addition(document=document, data=render(format, built.table.name, [c.name for c in columns], rows))


def _format(database: Database, round: int) -> Format:
    """A format this database does not have yet, chosen by its id."""
    used = {document.format for document in database.documents}
    choice = list(FORMATS)
    rng("document-format", database.database_id).shuffle(choice)
    fresh = [format for format in choice if format not in used] or choice
    return fresh[round % len(fresh)]


def _page(theme: Theme, corpus: Corpus, known: set[tuple[str, str]], round: int) -> _Addition | None:
    """A page of documentation about what the theme is about.

    Shared words are not enough, which may be any: its title is one of the theme's, or all its words lie near it.
    """
    words = stems(theme_text(theme.title, theme.description, theme.nouns, theme.verbs, theme.tools))
    terms, place = corpus.background.terms(theme.title, words), corpus.space.place(words)
    for hit in corpus.search(terms, _PAGES_READ, kind="page"):
        source, data = corpus.page(hit.document.document_id)
        shared = [word for word in terms if word in hit.document.fields["readme"]]
        covered = sum(terms[word] for word in shared) / sum(terms.values())
        titled = len(shared) >= _TITLED_PAGE_WORDS and any(word in terms for word in stems(hit.document.title))
        near = float(place @ corpus.space.place(hit.document.fields["readme"])) >= _PAGE_NEARNESS
        if (
            len(shared) < _PAGE_WORDS
            or not (titled or near)
            or covered < _PAGE_COVERAGE
            or (source.package, source.file) in known
            or len(data) > _PAGE_BYTES
        ):
            continue
        document = Document(
            path=f"{slug(hit.document.title) or 'page'}.html",
            format="html",
            source=source,
            title=f"About {' '.join(name_words(hit.document.title))}",  # a text may say it: no identifier is spelled
            added_in=round,
        )
        return _Addition(document=document, data=data)
    return None


def _readme(built: Sequence[Built], corpus: Corpus, known: set[tuple[str, str]], round: int) -> _Addition | None:
    """What a source package says about its data."""
    for package in dict.fromkeys(item.table.source.package for item in built if item.table.source):
        source, text = corpus.readme(package)
        if (package, source.file) in known or len(set(stems(text))) < 10:
            continue
        document = Document(
            path=f"about-{slug(package)}.md",
            format="md",
            title="About the source of the data",
            source=source,
            added_in=round,
        )
        return _Addition(document=document, data=text.encode()[:_README_BYTES].decode("utf-8", "ignore").encode())
    return None
