"""Links between packages: the tables elsewhere in the corpus that the values of a database refer to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from agent_world.discovery.corpus import Corpus, Reference
from agent_world.discovery.keys import Link, name_similarity
from agent_world.discovery.model import RawTable

_MIN_INCLUSION = 0.9
_MIN_NAMED_INCLUSION = 0.7  # where the names agree: real data spells some countries its own way, and that is measured
_SPARE_ROWS = 400  # up to so many rows come along, also those that nothing refers to yet
_LONG_CODE = 4
_MANY_COLUMNS = 8
_NAMES_AGREE = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundReference:
    """A table of another source that a column refers to."""

    table: RawTable
    link: Link
    document_id: int
    package: str


def find_references(
    tables: Sequence[RawTable],
    corpus: Corpus,
    *,
    taken: Collection[tuple[str, str]] = (),
    known_files: Collection[tuple[str, str]] = (),
) -> list[FoundReference]:
    """Tables from sources new to `tables` that one of their columns refers to, best first.

    `taken` are (table, column) pairs that refer to something already; `known_files` are (package, file) pairs that
    count as known beside the sources of `tables`.
    """
    known = {(table.source.package, table.source.file) for table in tables} | set(known_files)
    best: dict[tuple[int, str], tuple[tuple, FoundReference]] = {}
    for table in tables:
        for position, column in enumerate(table.header):
            if (table.name, column) in taken:
                continue
            counts = Counter(row[position] for row in table.rows if row[position])
            if not _may_refer(counts):
                continue
            for reference in corpus.references:
                score = _score(column, table.source.package, counts, reference, corpus)
                if score is None:
                    continue
                parent = corpus.complete_table(reference.table_id)
                if (parent.source.package, parent.source.file) in known:
                    continue
                found = _found(table, column, counts, reference, parent, corpus)
                place = (reference.table_id, table.name)
                told = min(len(parent.header), _MANY_COLUMNS)  # of several lists of one thing the one that tells more
                rank = (*score[:3], told, score[3], parent.total)
                if place not in best or rank > best[place][0]:
                    best[place] = (rank, found)
    ordered = sorted(best.values(), key=lambda item: (item[0], item[1].table.name), reverse=True)
    return [found for _, found in ordered]


def _may_refer(counts: Mapping[str, int]) -> bool:
    """Text of several values, codes or names, that repeats or names something."""
    if len(counts) < 3 or max(map(len, counts)) > 60:
        return False
    digits = sum(value.replace(".", "").replace("-", "").isdigit() for value in counts)
    return digits < 0.2 * len(counts)


def _score(
    column: str, package: str, counts: Counter[str], reference: Reference, corpus: Corpus
) -> tuple[bool, bool, float, int] | None:
    """(nearly all found, names agree, inclusion, values shared), or None when the values do not show a reference.

    Few short codes are found anywhere: without a telling name they need twelve values, or four-letter ones, or a table
    of the same package that has them all.
    """
    common = counts.keys() & reference.cells
    if len(common) < 3:
        return None
    inclusion = sum(counts[value] for value in common) / sum(counts.values())
    document = corpus.document(reference.document_id)
    similarity = name_similarity(column, reference.table_name, reference.column)
    if inclusion < (_MIN_NAMED_INCLUSION if similarity >= _NAMES_AGREE else _MIN_INCLUSION):
        return None
    length = sum(map(len, common)) / len(common)
    few = len(common) < 12 and not (length >= _LONG_CODE and len(common) >= 6)
    if similarity < _NAMES_AGREE and few and not (document.package == package and inclusion == 1.0 and length >= 3):
        return None
    return (inclusion >= _MIN_INCLUSION, similarity >= _NAMES_AGREE, round(inclusion, 2), len(common))


def _found(
    table: RawTable, column: str, counts: Counter[str], reference: Reference, parent: RawTable, corpus: Corpus
) -> FoundReference:
    position = parent.header.index(reference.column)
    spare = _SPARE_ROWS - sum(row[position] in counts for row in parent.rows)
    rows = []
    for row in parent.rows:
        if row[position] in counts:
            rows.append(row)
        elif spare > 0:
            rows.append(row)
            spare -= 1
    document = corpus.document(reference.document_id)
    common = counts.keys() & reference.cells
    return FoundReference(
        table=replace(parent, rows=tuple(rows)),
        document_id=reference.document_id,
        package=document.package,
        link=Link(
            child=table.name,
            column=column,
            parent=parent.name,
            parent_column=reference.column,
            inclusion=round(len(common) / len(counts), 4),
            similarity=0.0,
        ),
    )
