"""One wide table to several: a column that determines others names things of its own, and becomes a table.

Only dependencies that hold on every row are used, so that joining the tables gives the wide one back.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from agent_world.discovery.keys import Keys, Link
from agent_world.discovery.model import RawTable
from agent_world.discovery.words import name_words

_MIN_THINGS = 3
_MIN_REPEATS = 2.5
_MIN_REPEATS_NAMED = 1.5
_NUMBER = re.compile(r"-?\d*\.?\d+")
_DATE = re.compile(r"\d{1,4}[-/. ](\d{1,2}|[A-Z][a-z]{2})[-/. ]\d{1,4}|\d{4}-\d\d.*")
_SENTENCE = re.compile(r"(\S+\s+){3,}\S+\.$|\d.*\s.*\.$")
_SENTENCES = 0.2
_NAMING = re.compile(r"(id|code|key|name|number)$", re.I)


def split_wide(table: RawTable, keys: Keys, *, limit: int = 3) -> tuple[list[RawTable], Keys]:
    """The table and up to `limit` tables split off it, with the links between them."""
    columns = {name: [row[position] for row in table.rows] for position, name in enumerate(table.header)}
    referred = {link.column for link in keys.links if link.child == table.name}
    groups = _groups(columns, keys.primary.get(table.name), referred)[:limit]
    moved: set[str] = set()
    parents: list[RawTable] = []
    links: list[Link] = []
    primary = dict(keys.primary)
    for name, dependents in groups:
        dependents = [column for column in dependents if column not in moved]
        if name in moved or not dependents:
            continue
        positions = [table.header.index(column) for column in (name, *dependents)]
        rows = dict.fromkeys(tuple(row[position] for position in positions) for row in table.rows if row[positions[0]])
        title = _title(name, table.name, [parent.name for parent in parents])
        parents.append(
            replace(
                table,
                name=title,
                header=(name, *dependents),
                rows=tuple(rows),
                total=len(rows),
                declared_key=(),
                declared_links=(),
            )
        )
        primary[title] = name
        links.append(
            Link(child=table.name, column=name, parent=title, parent_column=name, inclusion=1.0, similarity=1.0)
        )
        moved.update(dependents)
    kept = [position for position, name in enumerate(table.header) if name not in moved]
    rest = replace(
        table,
        header=tuple(table.header[position] for position in kept),
        declared_links=(),
        rows=tuple(tuple(row[position] for position in kept) for row in table.rows),
    )
    return [rest, *parents], Keys(primary=primary, links=(*keys.links, *links))


def _groups(columns: dict[str, list[str | None]], key: str | None, referred: set[str]) -> list[tuple[str, list[str]]]:
    """Columns with what they determine, those that determine most first."""
    found = []
    for name, values in columns.items():
        counts = Counter(value for value in values if value is not None)
        repeats = _MIN_REPEATS_NAMED if _NAMING.search(name) else _MIN_REPEATS
        if (
            name == key
            or name in referred
            or len(counts) < _MIN_THINGS
            or max(map(len, counts)) > 80
            or sum(counts.values()) < repeats * len(counts)
            or not _names_things(name, counts)
        ):
            continue
        dependents = [
            other
            for other in columns
            if other not in {name, key} and other not in referred and _determines(values, columns[other])
        ]
        if dependents:
            found.append((name, dependents, len(counts)))
    found.sort(key=lambda item: (-len(item[1]), not _NAMING.search(item[0]), -item[2]))
    return [(name, dependents) for name, dependents, _ in found]


def _names_things(column: str, counts: Counter[str]) -> bool:
    """Words or codes, not dates or sentences; numbers only under a name that says they identify something."""
    if any(_DATE.fullmatch(value) for value in counts):
        return False
    if sum(bool(_SENTENCE.search(value)) for value in counts) >= _SENTENCES * len(counts):
        return False
    return bool(_NAMING.search(column)) or not all(_NUMBER.fullmatch(value) for value in counts)


def _determines(values: Sequence[str | None], others: Sequence[str | None]) -> bool:
    known: dict[str, str | None] = {}
    for value, other in zip(values, others, strict=True):
        if value is not None and known.setdefault(value, other) != other:
            return False
    return len({other for other in known.values() if other is not None}) >= 2


def _title(column: str, table: str, taken: Sequence[str]) -> str:
    words = [word for word in name_words(column) if word not in {"id", "code", "key", "name", "number"}]
    title = " ".join(words) or f"{table} {column}"
    return title if title not in {*taken, table} else f"{title} group"
