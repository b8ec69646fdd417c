"""Mining `G`: search the corpus for a theme, read what comes back, judge it, and structure the best into `D`.

Which data a theme gets is decided here, by evidence, for every theme in the same way (method.md 2).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from agent_world.codec import encode
from agent_world.discovery.corpus import Corpus
from agent_world.discovery.gates import MIN_TABLES, check_database
from agent_world.discovery.keys import Keys, Link
from agent_world.discovery.model import Judgement, Mined, RawTable, Rejected, Theme, environment_key
from agent_world.discovery.normalise import split_wide
from agent_world.discovery.references import find_references
from agent_world.discovery.relevance import Evidence
from agent_world.discovery.richness import richness
from agent_world.discovery.sampling import sample
from agent_world.discovery.selection import most_linked
from agent_world.discovery.snapshot import assemble
from agent_world.discovery.structure import MAX_ROWS, build
from agent_world.discovery.text import stems
from agent_world.discovery.themes.documents import theme_text
from agent_world.discovery.words import expanded
from agent_world.environments.model import SQLITE_FILE
from agent_world.identity import VersionId, content_hash, version_id

MIN_SCORE = 0.25
MIN_ANCHORS = 3
FEW_ANCHORS_SCORE = 0.35
MIN_ANSWER = 0.12
MIN_STRONG = 4
HIGH_COVERAGE = 0.25
MAX_BYTES = 2_000_000
_SEARCHED = 40
_TRIED = 4
_WIDE_BELOW = 3


def mine(theme: Theme, corpus: Corpus, *, theme_version: VersionId | None = None) -> Mined | Rejected:
    """The database that search finds for a theme, the first that its gate accepts, or why there is none."""
    candidates = find_data(theme, corpus)
    facts = [candidate.facts() for candidate in candidates[:_TRIED]]
    if not candidates:
        return Rejected(match=Judgement(reasons=("no_data",), evidence={"candidates": []}))
    seen = {"candidates": facts, "rule": rule()}
    convincing = [candidate for candidate in candidates[:_TRIED] if is_convincing(candidate)]
    if not convincing:
        return Rejected(match=Judgement(reasons=("weak_evidence",), evidence=seen))
    version = theme_version or version_id(environment_key(theme), content_hash("theme", encode(theme)))
    refused: list[Judgement] = []
    for candidate in convincing:
        match = Judgement(evidence={"decided_on": candidate.facts(), **seen})
        found = _build(theme, version, candidate, corpus, match)
        if isinstance(found, Mined):
            return found
        refused.append(found)
    tried = [{"reasons": list(judgement.reasons), **judgement.evidence} for judgement in refused]
    return Rejected(
        match=Judgement(evidence={"decided_on": convincing[0].facts(), **seen}),
        judgement=Judgement(reasons=refused[0].reasons, evidence={"tried": tried}),
    )


def _build(
    theme: Theme, version: VersionId, candidate: Evidence, corpus: Corpus, match: Judgement
) -> Mined | Judgement:
    """The database that the data of one candidate gives, or why its gate refuses it."""
    tables, keys = choose_tables(theme, candidate, corpus)
    try:
        database, files = _database(theme, version, tables, keys)
    except sqlite3.IntegrityError as error:
        return Judgement(reasons=("failed_insert",), evidence={"why": str(error)})
    judgement = check_database(database, files)
    if not judgement.accepted:
        return judgement
    return Mined(database=database, files=files, match=match, judgement=judgement)


def find_data(theme: Theme, corpus: Corpus) -> list[Evidence]:
    """Candidate documents for a theme, judged, best first: full-text search proposes, anchors decide."""
    text = theme_text(theme.title, theme.description, theme.nouns, theme.verbs, theme.tools)
    return find_data_for(theme.title, text, corpus)


def find_data_for(title: str, text: str, corpus: Corpus) -> list[Evidence]:
    """`find_data` for a title and a text."""
    words = stems(text)
    terms = corpus.background.terms(title, words)
    hits = corpus.search(terms, _SEARCHED, kind="tables")
    return corpus.relevance.judge(terms, words, [hit.document for hit in hits])


def is_convincing(evidence: Evidence) -> bool:
    """Whether the evidence is enough to give this data to the theme."""
    enough = evidence.score >= (MIN_SCORE if len(evidence.anchors) >= MIN_ANCHORS else FEW_ANCHORS_SCORE)
    placed = evidence.named >= 1 or evidence.strong >= MIN_STRONG or evidence.coverage >= HIGH_COVERAGE
    return enough and placed and evidence.strong >= 1 and evidence.answer >= MIN_ANSWER


def rule() -> dict[str, Any]:
    """The thresholds that decide, for the record."""
    return {
        "min_score": MIN_SCORE,
        "min_anchors": MIN_ANCHORS,
        "few_anchors_score": FEW_ANCHORS_SCORE,
        "min_answer": MIN_ANSWER,
        "min_strong": MIN_STRONG,
        "high_coverage": HIGH_COVERAGE,
        "min_tables": MIN_TABLES,
    }


def choose_tables(theme: Theme, candidate: Evidence, corpus: Corpus) -> tuple[list[RawTable], Keys]:
    """The tables of a document that belong into `D`: the linked ones the theme speaks of most.

    A document with hardly any links is taken apart where its columns depend on each other, and joined with what its
    values refer to elsewhere.
    """
    document = candidate.document
    tables, keys = corpus.tables(document.document_id), corpus.keys(document.document_id)
    chosen = most_linked(tables, keys, relevance=_table_relevance(theme, tables))
    names = {table.name for table in chosen}
    chosen = [_without_dangling(table, keys, names) for table in chosen]
    keys = Keys(
        primary={name: key for name, key in keys.primary.items() if name in names},
        links=tuple(link for link in keys.links if link.child in names and link.parent in names),
    )
    if len(chosen) < _WIDE_BELOW:
        for table in chosen:
            parts, keys = split_wide(table, keys)
            chosen = [*[other for other in chosen if other.name != table.name], *parts]
    if len(chosen) < MIN_TABLES:
        for found in find_references(chosen, corpus)[:1]:
            chosen, keys = join(chosen, keys, found.table, found.link)
    return chosen, keys


def _without_dangling(table: RawTable, keys: Keys, names: Collection[str]) -> RawTable:
    """The table without numbers that refer to rows of tables which are not here."""
    gone = {link.column for link in keys.links if link.child == table.name and link.parent not in names}
    gone -= {keys.primary.get(table.name)}
    kept = [
        position
        for position, column in enumerate(table.header)
        if column not in gone or not all((row[position] or "0").isdigit() for row in table.rows)
    ]
    return replace(
        table,
        header=tuple(table.header[position] for position in kept),
        rows=tuple(tuple(row[position] for position in kept) for row in table.rows),
    )


def join(tables: Sequence[RawTable], keys: Keys, parent: RawTable, link: Link) -> tuple[list[RawTable], Keys]:
    """The tables with one more that a column of theirs refers to."""
    name = parent.name if parent.name not in {table.name for table in tables} else f"{parent.name} reference"
    return [*tables, replace(parent, name=name, declared_key=(), declared_links=())], Keys(
        primary={**keys.primary, name: link.parent_column}, links=(*keys.links, replace(link, parent=name))
    )


def _table_relevance(theme: Theme, tables: Sequence[RawTable]) -> dict[str, float]:
    """How much of what each table is called, or holds, the theme talks about."""
    spoken = set(stems(" ".join((theme.title, theme.description, *theme.nouns))))
    found = {}
    for table in tables:
        name = set(stems(" ".join((table.name, *expanded(table.name)))))
        columns = set(stems(" ".join(" ".join(expanded(column)) for column in table.header)))
        found[table.name] = 2.0 * len(name & spoken) / (len(name) or 1) + 1.0 * len(columns & spoken) / (
            len(columns) or 1
        )
    return found


def _database(theme: Theme, version: VersionId, tables: Sequence[RawTable], keys: Keys):
    """`D` within its size: fewer rows of each table until the file fits."""
    rows = MAX_ROWS
    while True:
        built = build(sample(tables, keys.links, rows), keys.primary, keys.links)
        database, files = assemble(
            built, database_id=environment_key(theme), theme=version, richness=richness(built, ())
        )
        if len(files[SQLITE_FILE]) <= MAX_BYTES or rows <= 200:
            return database, files
        rows = rows * 2 // 3
