"""Links between packages: the tables elsewhere in the corpus that the values of a database refer to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from agent_world.discovery.corpus import Corpus, Reference
from agent_world.discovery.keys import Link, name_similarity
from agent_world.discovery.model import RawTable

_MIN_INCLUSION = 0.9
_MAX_REFERRED = 400  # rows brought in beside those that are referred to
_LONG_CODE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundReference:
    """A table of another source that a column refers to."""

    table: RawTable
    link: Link
    document_id: int
    package: str


def find_references(
    tables: Sequence[RawTable], corpus: Corpus, *, taken: Collection[tuple[str, str]] = (),
    known_files: Collection[tuple[str, str]] = (),
) -> list[FoundReference]:
    """Tables from sources new to `tables` that one of their columns refers to, best first.

    `taken` are (table, column) pairs that refer to something already; `known_files` are (package, file) pairs of sources
    that count as known beside those of `tables`.
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
                score = _score(column, counts, reference, corpus)
                if score is None:
                    continue
                parent = corpus.complete_table(reference.table_id)
                if (parent.source.package, parent.source.file) in known:
                    continue
                found = _found(table, column, counts, reference, parent, corpus)
                place = (reference.table_id, table.name)
                if place not in best or score > best[place][0]:
                    best[place] = (score, found)
    ordered = sorted(best.values(), key=lambda item: (item[0], item[1].table.name), reverse=True)
    return [found for _, found in ordered]


def _may_refer(counts: Mapping[str, int]) -> bool:
    """Text of several values, codes or names, that repeats or names something."""
    if len(counts) < 3 or max(map(len, counts)) > 60:
        return False
    digits = sum(value.replace(".", "").replace("-", "").isdigit() for value in counts)
    return digits < 0.2 * len(counts)


def _score(column: str, counts: Counter[str], reference: Reference, corpus: Corpus) -> tuple[float, float, int] | None:
    """(similarity of names, inclusion, values shared), or None when the values do not show a reference.

    Few short codes are found anywhere: without a telling name they need twelve values, or four-letter ones.
    """
    common = counts.keys() & reference.cells
    if len(common) < 3:
        return None
    total = sum(counts.values())
    inclusion = max(len(common) / len(counts), sum(counts[value] for value in common) / total)
    if inclusion < _MIN_INCLUSION:
        return None
    document = corpus.document(reference.document_id)
    similarity = max((name_similarity(column, name, reference.column) for name in document.table_names[:1]), default=0.0)
    shortest = sum(map(len, common)) / len(common)
    if similarity < 0.6 and len(common) < 12 and not (shortest >= _LONG_CODE and len(common) >= 6):
        return None
    return (round(similarity, 2), round(inclusion, 3), len(common))


def _found(table: RawTable, column: str, counts: Counter[str], reference: Reference, parent: RawTable,
           corpus: Corpus) -> FoundReference:
    position = parent.header.index(reference.column)
    referred = [row for row in parent.rows if row[position] in counts]
    others = [row for row in parent.rows if row[position] not in counts][: max(0, _MAX_REFERRED - len(referred))]
    rows = tuple(row for row in parent.rows if row in set(referred) | set(others))
    document = corpus.document(reference.document_id)
    common = counts.keys() & reference.cells
    return FoundReference(
        table=replace(parent, rows=rows), document_id=reference.document_id, package=document.package,
        link=Link(child=table.name, column=column, parent=parent.name, parent_column=reference.column,
                  inclusion=round(len(common) / len(counts), 4), similarity=0.0))
