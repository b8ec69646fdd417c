"""The gates of databases and of complexification rounds (design.md 7): they judge what stands in the file."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from agent_world.discovery.model import Judgement, Reason
from agent_world.discovery.richness import brings_rows, known_sources
from agent_world.discovery.snapshot import Built, load, share_found, sqlite_bytes
from agent_world.environments.model import SQLITE_FILE, Database, Source, Table
from agent_world.environments.state import logical_digest
from agent_world.identity import Digest

Novelty = Literal["new", "known_source", "same_rows"]

MIN_TABLES = 2
_SHA256 = re.compile(r"[0-9a-f]{64}")


def check_database(database: Database, files: Mapping[str, bytes], *, least: int = MIN_TABLES) -> Judgement:
    """Whether a database may become an environment. It is read from its file and written once more.

    - ``does_not_load``: the file is no database, or not this one.
    - ``too_few_tables``, ``unrelated_tables``: fewer than `least`, or fewer than `least` that a link joins to another.
    - ``failed_insert``: rows did not arrive, now or the second time.
    - ``integrity_not_measured``: the share recorded of a link is not what its values give.
    - ``other_digest``: the second file has another digest than was recorded.
    - ``no_provenance``: a table does not say from which source, of which licence and hash, it came.
    """
    try:
        built = load(database, files)
    except sqlite3.Error as error:
        return Judgement(reasons=("does_not_load",), evidence={"why": str(error)})
    return _soundness(database, files, built, least)


def check_round(before: Database, after: Database, files: Mapping[str, bytes]) -> Judgement:
    """Whether a round counts: what it made is sound as a database, and something in it is new.

    - ``nothing_new``: it added nothing.
    - ``known_source``: what it added comes from sources that were there.
    - ``same_rows``: the rows of a table it added say what rows of other tables say, keys aside. A link to such a table
      counts nothing either; a link to any other is from the source of that table.
    """
    try:
        built = load(after, files)
    except sqlite3.Error as error:
        return Judgement(reasons=("does_not_load",), evidence={"why": str(error)})
    sound, added = _soundness(after, files, built, MIN_TABLES), _additions(before, after, built)
    worthless: set[Reason] = {what for what in added.values() if what != "new"} or {"nothing_new"}
    against = () if "new" in added.values() else sorted(worthless)
    return Judgement(reasons=(*sound.reasons, *against), evidence={**sound.evidence, "added": added})


def _soundness(database: Database, files: Mapping[str, bytes], built: Sequence[Built], least: int) -> Judgement:
    related = _related(database.tables)
    lost = {item.table.name: item.table.rows - _rows(item) for item in built if _rows(item) != item.table.rows}
    unmeasured = list(_unmeasured(built))
    untraced = [table.name for table in database.tables if not _is_traced(table)]
    second = _second_digest(files, built)
    against: dict[Reason, bool] = {
        "too_few_tables": len(database.tables) < least,
        "unrelated_tables": len(database.tables) >= least > len(related),
        "failed_insert": bool(lost) or second is None,
        "integrity_not_measured": bool(unmeasured),
        "other_digest": second not in (None, database.digest),
        "no_provenance": bool(untraced),
    }
    evidence = {
        "tables": len(database.tables),
        "related": len(related),
        "lost_rows": lost,
        "unmeasured": unmeasured,
        "untraced": untraced,
        "second_digest": second,
    }
    return Judgement(reasons=tuple(reason for reason, holds in against.items() if holds), evidence=evidence)


def _related(tables: Sequence[Table]) -> set[str]:
    """Tables that a link joins to another."""
    links = [(table.name, link.parent) for table in tables for link in table.foreign_keys if link.parent != table.name]
    return {name for link in links for name in link}


def _rows(item: Built) -> int:
    return len(next(iter(item.columns.values()), ()))


def _unmeasured(built: Sequence[Built]) -> Iterator[str]:
    values = {item.table.name: item.columns for item in built}
    for item in built:
        for link in item.table.foreign_keys:
            theirs = values.get(link.parent, {}).get(link.parent_column, ())
            if share_found(item.columns[link.column], theirs) != link.integrity:
                yield f"{item.table.name}.{link.column}"


def _is_traced(table: Table) -> bool:
    """Whether a table names its source with licence and hash; what workflows write has none."""
    source = table.source
    if source is None:
        return table.workflow is not None
    return bool(source.package and source.licence and _SHA256.fullmatch(source.sha256))


def _second_digest(files: Mapping[str, bytes], built: Sequence[Built]) -> Digest | None:
    """The digest of the database written once more; None when its rows do not go in."""
    try:
        return logical_digest({**files, SQLITE_FILE: sqlite_bytes(built)})
    except sqlite3.Error:
        return None


def _additions(before: Database, after: Database, built: Sequence[Built]) -> dict[str, Novelty]:
    """What a round added, by name, and whether it is new or why it counts nothing."""
    known, tables = known_sources(before), {table.name for table in before.tables}
    old = [item for item in built if item.table.name in tables]
    added: dict[str, Novelty] = {
        item.table.name: _novelty(item.table.source, known) if brings_rows(item, old) else "same_rows"
        for item in built
        if item.table.name not in tables
    }
    paths = {document.path for document in before.documents}
    for document in after.documents:
        if document.path not in paths:
            added[document.path] = _novelty(document.source, known)
    return added


def _novelty(source: Source | None, known: set[tuple[str, str]]) -> Novelty:
    return "new" if source and (source.package, source.file) not in known else "known_source"
