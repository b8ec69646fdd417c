"""What the columns of `D` hold, for scripted agents: likely values, siblings, arguments that exist."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from agent_world.environments.database import quoted
from agent_world.environments.model import SQLITE_FILE, Environment, Json
from agent_world.rollouts.recent import Recent

_MOST_VALUES = 2_000
_HOLDS = 10  # outweighs every match of words


@dataclass(frozen=True, kw_only=True)
class Domain:
    """The distinct values of one column, most frequent first (ties by value), at most 2,000 of them."""

    table: str
    column: str
    words: frozenset[str]
    values: tuple[Json, ...]

    @cached_property
    def known(self) -> frozenset[Json]:
        """The values, for membership."""
        return frozenset(self.values)


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """All columns of one environment's records."""

    domains: Mapping[tuple[str, str], Domain] = field(default_factory=dict)

    @classmethod
    def of(cls, environment: Environment) -> Vocabulary:
        """The vocabulary of `environment`; that of the last few is kept."""
        return _RECENT.get(
            environment, lambda: cls(domains={(domain.table, domain.column): domain for domain in _read(environment)})
        )

    def domain_of(self, name: str, schema: Mapping[str, Any], value: Json) -> Domain | None:
        """The column that an answer field most likely speaks of.

        `name` and the schema's description are matched with the column's words; a column that holds `value` beats any
        that does not. None when nothing speaks for any column.
        """
        wanted = words_of(name) | words_of(str(schema.get("description", "")))
        scalar = isinstance(value, str | int | float)
        best, best_score = None, 0
        for domain in self.domains.values():
            score = len(wanted & domain.words) + (_HOLDS if scalar and value in domain.known else 0)
            if score > best_score and domain.values:
                best, best_score = domain, score
        return best


_RECENT: Recent[Vocabulary] = Recent()


def words_of(text: str) -> frozenset[str]:
    """The lower-case words of an identifier or a phrase."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    return frozenset(word.lower() for word in re.findall(r"[^\W_]+", spaced))


def _read(environment: Environment) -> Iterator[Domain]:
    db = sqlite3.connect(":memory:")
    try:
        db.deserialize(environment.files[SQLITE_FILE])
        for table in environment.database.tables:
            for column in table.columns:
                rows = db.execute(
                    f"SELECT {quoted(column.name)}, count(*) FROM {quoted(table.name)}"
                    f" WHERE {quoted(column.name)} IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ?",
                    (_MOST_VALUES,),
                ).fetchall()
                rows = [row for row in rows if isinstance(row[0], str | int | float)]
                yield Domain(
                    table=table.name,
                    column=column.name,
                    words=words_of(column.name) | words_of(column.words) | words_of(table.singular),
                    values=tuple(value for value, _ in rows),
                )
    finally:
        db.close()
