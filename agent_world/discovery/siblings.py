"""Sibling files: many files of one shape in one folder are one table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from agent_world.discovery.model import RawTable
from agent_world.discovery.readers import decode_text, file_stem, kept_rows, spread
from agent_world.discovery.records import MIN_RECORDS, Records, records_of_json
from agent_world.identity import sha256

_MIN_SIBLINGS = 4
_ALIKE = 0.7


def union_of_siblings(tables: Sequence[RawTable]) -> tuple[RawTable, ...]:
    """Tables of one shape from sibling files become one table, told apart by a column with the file's name.

    One shape: mostly the same columns, and the same name unless each is called after its file.
    """
    families: list[list[RawTable]] = []
    for table in map(_by_folder, tables):
        family = next((known for known in families if _is_sibling(table, known)), None)
        if family is None:
            families.append([table])
        else:
            family.append(table)
    return tuple(table for family in families for table in _merged(family))


def _by_folder(table: RawTable) -> RawTable:
    """The table with the column that refers to its file's records called after the folder, as in every sibling."""
    stem, folder = file_stem(table.source.file), _folder(table).name
    header = tuple(folder if column == stem else column for column in table.header)
    return replace(table, header=header) if len(set(header)) == len(header) else table


def _folder(table: RawTable) -> PurePosixPath:
    return PurePosixPath(table.source.file).parent


def _is_sibling(table: RawTable, family: Sequence[RawTable]) -> bool:
    first = family[0]
    if _folder(table) != _folder(first) or any(member.source.file == table.source.file for member in family):
        return False
    called_after_file = [file_stem(one.source.file) == one.name for one in (table, first)]
    if not all(called_after_file) and (any(called_after_file) or table.name != first.name):
        return False
    shared, every = set(table.header) & set(first.header), set(table.header) | set(first.header)
    return len(shared) >= _ALIKE * len(every)


def _merged(family: Sequence[RawTable]) -> Sequence[RawTable]:
    if len(family) < _MIN_SIBLINGS:
        return family
    header = tuple(dict.fromkeys(name for member in family for name in member.header))
    rows = [
        (*(row.get(name) for name in header), file_stem(member.source.file))
        for member in family
        for row in (dict(zip(member.header, cells, strict=True)) for cells in member.rows)
    ]
    first, folder = family[0], _folder(family[0])
    digest = sha256("".join(member.source.sha256 for member in family))
    name = folder.name if file_stem(first.source.file) == first.name else first.name
    return [
        RawTable(
            name=name,
            header=(*header, "part"),
            rows=tuple(spread(rows, kept_rows(len(rows)))),
            total=len(rows),
            source=replace(first.source, file=str(folder), sha256=digest),
        )
    ]


def records_by_file(documents: Mapping[str, bytes], name: str) -> Records:
    """One record a file, for folders that hold one JSON map a thing."""
    rows = []
    for path in sorted(documents):
        try:
            value = json.loads(decode_text(documents[path]))
        except json.JSONDecodeError:
            continue
        if isinstance(value, dict):
            rows.append(value)
    return records_of_json(rows, name) if len(rows) >= MIN_RECORDS else {}
