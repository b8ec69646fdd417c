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


def union_of_siblings(tables: Sequence[RawTable]) -> tuple[RawTable, ...]:
    """Tables of sibling files that have one shape become one table, told apart by a column with the file's name.

    One shape: the same header, or the same name and mostly the same columns.
    """
    merged: list[RawTable] = []
    families: dict[tuple[str, ...], list[RawTable]] = {}
    for table in tables:
        folder = str(PurePosixPath(table.source.file).parent)
        own = file_stem(table.source.file) == table.name
        families.setdefault((folder, *table.header) if own else (folder, "", table.name), []).append(table)
    for (folder, *_), members in families.items():
        files = {member.source.file for member in members}
        if len(members) < _MIN_SIBLINGS or len(files) < len(members) or not _alike(members):
            merged.extend(members)
            continue
        header = tuple(dict.fromkeys(name for member in members for name in member.header))
        rows = [
            (*(row.get(name) for name in header), file_stem(member.source.file))
            for member in members
            for row in (dict(zip(member.header, cells, strict=True)) for cells in member.rows)
        ]
        source = replace(
            members[0].source, file=folder, sha256=sha256("".join(member.source.sha256 for member in members))
        )
        name = PurePosixPath(folder).name if file_stem(members[0].source.file) == members[0].name else members[0].name
        merged.append(
            RawTable(
                name=name,
                header=(*header, "part"),
                rows=tuple(spread(rows, kept_rows(len(rows)))),
                total=len(rows),
                source=source,
            )
        )
    return tuple(merged)


def _alike(members: Sequence[RawTable]) -> bool:
    every = set().union(*(member.header for member in members))
    return sum(len(member.header) for member in members) >= 0.7 * len(every) * len(members)


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
