"""What an author may look up in the documents of `D`: the entries of tabular ones, whatever their format."""

from __future__ import annotations

import csv
import io
import json
import random
import re
from collections.abc import Mapping

from agent_world.environments.model import DOCUMENTS_FOLDER, Json, Tool

_LONGEST = 40
_NUMBERS = {"integer": int, "number": float}
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_SQL_VALUES = re.compile(r"VALUES\s*\((.*)\);?\s*$")
_SQL_CELL = re.compile(r"'((?:[^']|'')*)'|([^,]+)")


class Sheets:
    """The documents of one environment as tables, read on demand."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files
        self._entries: dict[str, list[dict[str, str]]] = {}

    def entries(self, path: str) -> list[dict[str, str]]:
        """The entries of a document by field, all as text; none where it is not a table."""
        if path not in self._entries:
            text = self._files.get(f"{DOCUMENTS_FOLDER}/{path}", b"").decode("utf-8", errors="replace")
            reader = _READERS.get(path.rpartition(".")[2])
            self._entries[path] = reader(text) if reader else []
        return self._entries[path]

    def draw(self, tool: Tool, parameter: str, rng: random.Random) -> str | int | float | None:
        """A value of the entries that `tool` reads for `parameter`, of the type that it takes."""
        found = []
        for path in tool.documents:
            for entry in self.entries(path):
                cells = [entry[parameter]] if parameter in entry else []
                found += [cell for cell in cells if 0 < len(cell) <= _LONGEST and not set('"\\\n') & set(cell)]
        number = _NUMBERS.get(tool.input_schema["properties"].get(parameter, {}).get("type"))
        if number:
            found = [number(cell) for cell in found if _NUMBER.fullmatch(cell)]
        return rng.choice(found) if found else None


def _csv(text: str) -> list[dict[str, str]]:
    return [{str(k): v for k, v in row.items() if isinstance(v, str)} for row in csv.DictReader(io.StringIO(text))]


def _json(text: str) -> list[dict[str, str]]:
    return _dictionaries(json.loads(text))


def _yaml(text: str) -> list[dict[str, str]]:
    import yaml

    return _dictionaries(yaml.safe_load(text))


def _sql(text: str) -> list[dict[str, str]]:
    header = re.search(r"CREATE TABLE [^(]*\(([^)]*)\)", text)
    names = re.findall(r'"([^"]+)"', header[1]) if header else []
    found = []
    for line in text.splitlines():
        values = _SQL_VALUES.search(line)
        if values:
            cells = [quoted.replace("''", "'") or bare.strip() for quoted, bare in _SQL_CELL.findall(values[1])]
            found.append(dict(zip(names, cells, strict=False)))
    return found


def _tex(text: str) -> list[dict[str, str]]:
    rows = [line.rstrip("\\ ").split(" & ") for line in text.splitlines() if " & " in line]
    if not rows:
        return []
    names = [cell.strip().replace("\\_", "_") for cell in rows[0]]
    return [dict(zip(names, (cell.strip() for cell in row), strict=False)) for row in rows[1:]]


def _dictionaries(value: Json) -> list[dict[str, str]]:
    """The first list of objects in a JSON value."""
    if isinstance(value, list):
        return [{k: str(v) for k, v in item.items() if v is not None} for item in value if isinstance(item, dict)]
    if isinstance(value, dict):
        return next((found for item in value.values() if (found := _dictionaries(item))), [])
    return []


_READERS = {"csv": _csv, "json": _json, "yaml": _yaml, "sql": _sql, "tex": _tex}
