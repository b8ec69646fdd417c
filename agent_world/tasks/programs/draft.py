"""What a pattern of program task draws, and the code it is turned into: `pi_code` and `V_code` (method.md 5b)."""

from __future__ import annotations

import pprint
import random
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from agent_world.environments.model import Environment, Json, Tool
from agent_world.environments.session import open_session
from agent_world.identity import rng
from agent_world.sandbox import Sandbox
from agent_world.tasks.catalogue import Catalogue
from agent_world.tasks.programs.deeds import Deed, Way, draw_deed, ways
from agent_world.tasks.programs.parts import Access, accesses
from agent_world.tasks.programs.scanning import Scan, scans

T = TypeVar("T")

_TRIALS = 4


@dataclass(kw_only=True)
class Bench:
    """What the patterns draw from: one environment, and how much a guideline wants each of its tools.

    `misses` counts, by pattern, how often in a row it has led to nothing.
    """

    catalogue: Catalogue
    weigh: Callable[[str], float] = lambda tool: 1.0
    sandbox: Sandbox | None = None
    misses: dict[str, int] = field(default_factory=dict)

    @property
    def environment(self) -> Environment:
        """The environment of the tasks."""
        return self.catalogue.environment

    def access(self, rng: random.Random, table: str | None = None) -> Access | None:
        """A way to read full records that people can name, of `table` where that is set."""
        found = [item for item in self.records if table in (None, item.table)]
        return self._draw(found, [item.tools for item in found], rng)

    def way(self, rng: random.Random, table: str | None = None) -> Way | None:
        """A way to write about a row, of `table` where that is set."""
        found = [item for item in self.ways if table in (None, item.table)]
        return self._draw(found, [(item.tool,) for item in found], rng)

    def scan(self, rng: random.Random, fits: Callable[[Scan], object] = bool) -> Scan | None:
        """A list that a solution can page through and that `fits`."""
        found = [item for item in self.scans if fits(item)]
        return self._draw(found, [(item.lister.tool,) for item in found], rng)

    @cached_property
    def records(self) -> list[Access]:
        """Ways to read full records."""
        return accesses(self.catalogue, facts=True)

    @cached_property
    def names(self) -> list[Access]:
        """Ways to find keys by names, full record or not."""
        return accesses(self.catalogue, facts=False)

    @cached_property
    def scans(self) -> list[Scan]:
        """Lists whose rows SQL finds as well."""
        return scans(self.catalogue, self.names)

    @cached_property
    def ways(self) -> list[Way]:
        """Ways to write that a rule does not always refuse: each went through at least once."""
        return [way for way in ways(self.catalogue) if self._goes_through(way)]

    def _goes_through(self, way: Way) -> bool:
        """Whether one of a few tries succeeds: taking away from a record that was just opened, say, never does."""
        for attempt in range(_TRIALS):
            chance = rng("trial", way.tool.name, attempt)
            deed = draw_deed(self.catalogue, way, self.names, chance)
            if deed is None:
                continue
            with open_session(self.environment, attempt, self.sandbox) as session:
                if deed.attempt(session, self.catalogue.facts.draw(way.table, chance) or {}):
                    return True
        return False

    def _draw(self, found: Sequence[T], tools: Sequence[Sequence[Tool]], rng: random.Random) -> T | None:
        weights = [max(self.weigh(tool.name) for tool in used) for used in tools]
        return rng.choices(found, weights)[0] if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A program task before it is executed.

    `functions` and `body` make the solution; `logic` are statements of the verifier's own ``expected(db)``. They set
    `own`, a dict of the answer fields that `D` alone decides, and for a task with a `deed` `chosen`, the keys of the
    rows that the writes are about.
    """

    pattern: str
    text: str
    functions: Sequence[str]
    body: Sequence[str]
    logic: Sequence[str]
    fields: Mapping[str, Mapping[str, Json]]
    level: int
    branches: int = 0
    loops: int = 0
    aggregates: int = 0
    deed: Deed | None = None

    @property
    def solution(self) -> str:
        """The module that defines ``solve(call)``."""
        functions = "\n\n\n".join(dict.fromkeys(self.functions))
        solve = 'def solve(call):\n    """The answer, by calling tools."""\n' + textwrap.indent(
            "\n".join(self.body), "    "
        )
        return "\n\n\n".join(part for part in (functions, solve) if part) + "\n"


def verifier(draft: Draft, catalogue: Catalogue, change: Mapping[str, Any]) -> str:
    """The module that defines ``verify(answer, gold, initial, final)`` for a draft whose gold run made `change`.

    It checks the answer's shape, each field against its own recomputation from the initial records by SQL and against
    gold, the whole change of state, and that the rows which the change is about are those that it finds by itself.
    """
    return _VERIFIER.format(
        logic=textwrap.indent("\n".join(draft.logic), "    "),
        change=pprint.pformat(dict(change), width=100, sort_dicts=False),
        subjects=repr(_subjects(draft, catalogue, change)),
    )


def _subjects(draft: Draft, catalogue: Catalogue, change: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Table and column of new rows that hold the key of the row which the write is about."""
    if draft.deed is None:
        return []
    return [
        (name, key.column)
        for name in change
        for table in catalogue.database.tables
        if table.name == name and table.rows == 0
        for key in table.foreign_keys
        if key.parent == draft.deed.way.table
    ]


_VERIFIER = '''"""Checks an answer and the final state against what the initial records say."""

from toolkit import changes

CHANGE = {change}
SUBJECTS = {subjects}


def expected(db):
    """The answer as far as the records decide it, and the keys of the rows that the change must be about."""
    own, chosen = {{}}, []
{logic}
    return own, chosen


def same(given, wanted):
    """Whether two values are equal: numbers within rounding, lists as sets."""
    if isinstance(wanted, list):
        return isinstance(given, list) and sorted(map(repr, given)) == sorted(map(repr, wanted))
    if isinstance(wanted, bool) or isinstance(given, bool):
        return given is wanted
    if isinstance(wanted, (int, float)):
        return isinstance(given, (int, float)) and abs(given - wanted) <= 0.011
    return given == wanted


def verify(answer, gold, initial, final):
    """The names of what does not hold."""
    if not isinstance(answer, dict) or set(answer) != set(gold):
        return ["shape"]
    own, chosen = expected(initial.db)
    failed = [f"gold_{{name}}" for name, value in own.items() if not same(gold[name], value)]
    failed += [f"answer_{{name}}" for name, value in {{**gold, **own}}.items() if not same(answer[name], value)]
    change = changes(initial, final)
    if change != CHANGE:
        failed.append("state")
    for table, column in SUBJECTS:
        about = [row[column] for row in change.get(table, {{}}).get("added", [])]
        if sorted(about, key=repr) != sorted(chosen, key=repr):
            failed.append(f"state_{{column}}")
    return failed
'''
