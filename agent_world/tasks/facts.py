"""What an author may look up in `D`: rows, names that mean one thing only, and how easily a value is guessed."""

from __future__ import annotations

import random
import re
import sqlite3
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from agent_world.environments.model import SQLITE_FILE, Database, Json, Table

_LONGEST_NAME = 48
_PLAIN = re.compile(r"[^\"\n\r\t{}\[\]]+")


def fold(text: Json) -> str:
    """`text` without case and accents: two names that fold alike are one name to a reader."""
    decomposed = unicodedata.normalize("NFKD", str(text).casefold())
    return "".join(character for character in decomposed if not unicodedata.combining(character)).strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """How an instruction calls one row: its label, with the noun of its table where the label alone is ambiguous."""

    text: str
    typed: bool


class Facts:
    """Read-only look-ups over the records of one environment, answered from memory."""

    def __init__(self, database: Database, files: Mapping[str, bytes]) -> None:
        self.database = database
        self.db = sqlite3.connect(":memory:")
        self.db.row_factory = sqlite3.Row
        self.db.deserialize(files[SQLITE_FILE])
        self._shares: dict[tuple[str, str], dict[Json, float]] = {}
        self._rows: dict[str, list[dict[str, Json]]] = {}

    def rows(self, table: str) -> list[dict[str, Json]]:
        """All rows of `table` in key order."""
        if table not in self._rows:
            order = ", ".join(f'"{column}"' for column in self.database.table(table).primary_key) or "rowid"
            cursor = self.db.execute(f'SELECT * FROM "{table}" ORDER BY {order}')
            self._rows[table] = [dict(row) for row in cursor]
        return self._rows[table]

    def row(self, table: str, column: str, value: Json) -> dict[str, Json] | None:
        """The first row of `table` whose `column` is `value`."""
        row = self.db.execute(f'SELECT * FROM "{table}" WHERE "{column}" = ?', (value,)).fetchone()
        return None if row is None else dict(row)

    def draw(self, table: str, rng: random.Random) -> dict[str, Json] | None:
        """One row of `table`, every row equally likely; None when it is empty."""
        rows = self.rows(table)
        return rows[rng.randrange(len(rows))] if rows else None

    def name(self, table: str, row: dict[str, Json]) -> Name | None:
        """How to call `row` in plain words, None when its label would not single it out."""
        label = self.database.table(table).label
        text = row.get(label) if label else None
        if not isinstance(text, str) or not 0 < len(text) <= _LONGEST_NAME or not _PLAIN.fullmatch(text):
            return None
        if text != text.strip() or "  " in text:
            return None
        bearers = self._bearers[fold(text)]
        if bearers.get(table, 0) > 1:
            return None
        return Name(text=text, typed=len(bearers) > 1 or not re.search(r"[^\W\d_]{2}", text))

    def share(self, table: str, column: str, value: Json) -> float:
        """The share of `table`'s rows whose `column` is `value`: the chance of a guess drawn from the column."""
        key = (table, column)
        if key not in self._shares:
            cursor = self.db.execute(f'SELECT "{column}", count(*) FROM "{table}" GROUP BY 1').fetchall()
            rows = sum(count for _, count in cursor)
            self._shares[key] = {value: count / rows for value, count in cursor}
        return self._shares[key].get(value, 0.0)

    def is_mode(self, table: str, column: str, value: Json) -> bool:
        """Whether `value` is the most frequent one of its column, where anything is frequent at all."""
        share = self.share(table, column, value)
        return share == max(self._shares[(table, column)].values(), default=0.0) and len(self.rows(table)) * share > 1

    @cached_property
    def _bearers(self) -> dict[str, dict[str, int]]:
        """Folded label -> table -> number of rows that bear it."""
        found: dict[str, dict[str, int]] = {}
        for table in self.database.tables:
            for text in self._labels(table):
                tables = found.setdefault(fold(text), {})
                tables[table.name] = tables.get(table.name, 0) + 1
        return found

    def _labels(self, table: Table) -> list[str]:
        if table.label is None:
            return []
        cursor = self.db.execute(f'SELECT "{table.label}" FROM "{table.name}" WHERE "{table.label}" IS NOT NULL')
        return [str(text) for (text,) in cursor]
