"""How rich a database is: the vector by which complexification rounds are compared, and what tells two apart."""

from __future__ import annotations

from collections.abc import Sequence

from agent_world.discovery.snapshot import Built
from agent_world.environments.model import Database, Document


def richness(built: Sequence[Built], documents: Sequence[Document]) -> dict[str, float]:
    """Tables, rows, columns, links, sources, documents and their formats, and the filled share of the cells.

    Rows that are equal up to keys and references count once.
    """
    filled = cells = 0
    for item in built:
        for values in item.columns.values():
            cells += len(values)
            filled += sum(value is not None for value in values)
    sources = {(item.table.source.package, item.table.source.file) for item in built if item.table.source}
    sources |= {(document.source.package, document.source.file) for document in documents if document.source}
    return {
        "tables": float(len(built)),
        "rows": float(sum(distinct_rows(item) for item in built)),
        "columns": float(sum(len(item.table.columns) for item in built)),
        "links": float(sum(len(item.table.foreign_keys) for item in built)),
        "sources": float(len(sources)),
        "documents": float(len(documents)),
        "formats": float(len({document.format for document in documents})),
        "filled": round(filled / cells, 4) if cells else 0.0,
    }


def distinct_rows(item: Built) -> int:
    """Rows that differ in more than their key."""
    ignored = set(item.table.primary_key)
    told = [item.columns[column.name] for column in item.table.columns if column.name not in ignored]
    return len(set(zip(*told, strict=True))) if told else item.table.rows


def known_sources(database: Database) -> set[tuple[str, str]]:
    """(package, file) of everything a database was made from."""
    sources = [item.source for item in (*database.tables, *database.documents)]
    return {(source.package, source.file) for source in sources if source}


def brings_rows(item: Built, others: Sequence[Built]) -> bool:
    """Whether its rows say something that no row of `others` says already, keys aside."""
    return not _told(item) <= set().union(*map(_told, others))


def _told(item: Built) -> set[frozenset[str]]:
    """What the rows say, keys and gaps aside, whatever the columns are called."""
    columns = [item.columns[column.name] for column in item.table.columns if column.name not in item.table.primary_key]
    return {frozenset(str(value) for value in row if value is not None) for row in zip(*columns, strict=True)}
