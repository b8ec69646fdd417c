"""Carries queries out, one call at a time: pages, filters, details of each row, order, and exact names."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field

from agent_world.environments.model import Json
from agent_world.identity import canonical_json
from agent_world.rollouts.model import Observation, Step
from agent_world.solver.fields import Parameter
from agent_world.solver.index import IndexedTool, Toolbox
from agent_world.solver.lexicon import fold
from agent_world.solver.plan import Fact
from agent_world.solver.query import Blame, Detail, Keep, Place, Query

Row = dict[str, Json]
"""A record, the arguments it was asked for with under GIVEN, and details under the name of their tool."""

GIVEN = "(given)"


class SetbackError(Exception):
    """A query led nowhere: `blame` are the assignments to do without, `code` what the environment said."""

    def __init__(self, blame: tuple[Blame, ...], code: str, message: str) -> None:
        super().__init__(blame, code, message)
        self.blame, self.code, self.message = blame, code, message


class SpentError(Exception):
    """No calls are left."""


@dataclass(slots=True)
class Runner:
    """Makes calls within a budget and remembers what came back.

    Answers of reading tools are kept until something is written; `changes` counts the calls that write, `made`
    holds what those that were granted were given and gave.
    """

    box: Toolbox
    budget: int
    facts: list[Fact] = field(default_factory=list)
    kept: dict[str, Observation] = field(default_factory=dict)
    changes: int = 0
    made: list[tuple[IndexedTool, Row]] = field(default_factory=list)

    def call(self, tool: IndexedTool, arguments: Mapping[str, Json]) -> Generator[Step, Observation, Observation]:
        """One call; a reading call that was made before costs nothing."""
        key = f"{tool.name} {canonical_json(dict(arguments))}"
        if key in self.kept and not tool.writes:
            return self.kept[key]
        if self.budget <= 0:
            raise SpentError
        self.budget -= 1
        observation = yield Step(kind="tool", tool=tool.name, arguments=dict(arguments))
        if tool.writes:
            self.kept.clear()
            self.changes += 1
            if observation.status == "ok" and isinstance(observation.value, Mapping):
                self.made.append((tool, {**arguments, **observation.value}))
        else:
            self.kept[key] = observation
        return observation

    def rows(
        self, query: Query, *, only: int | None = None, whole: bool = False
    ) -> Generator[Step, Observation, list[Row]]:
        """The rows of a query. `only` stops early; `whole` gives one row a call, with what stands beside the items.

        Raises:
            SetbackError: a needed row was not found, or the environment refused.
        """
        rows: list[Row] = []
        limit = (
            None
            if query.keeps or query.wanted
            else query.order.count
            if query.sorted
            else None
            if query.order
            else only
        )
        refusal: SetbackError | None = None
        for arguments in (yield from self.arguments(query)):
            try:
                rows += yield from self._fetch(query, arguments, limit, whole)
            except SetbackError as setback:
                refusal = setback
        if not rows and refusal is not None:
            raise refusal
        blamed = [keep.blame for keep in query.keeps if keep.blame is not None]
        if not rows and blamed:
            raise SetbackError((blamed[0],), "nothing_found", f"{query.tool.name} has no rows")
        rows = _exact(rows, query.wanted)
        for keep in query.keeps:
            if keep.place.detail is not None:
                rows = yield from self.detailed(rows, keep.place.detail)
            kept = [row for row in rows if holds(keep, value_at(row, keep.place))]
            if rows and not kept and keep.blame is not None:
                raise SetbackError((keep.blame,), "nothing_found", f"no {keep.place.field.name} is {keep.value}")
            rows = kept
        if query.order is not None:
            place = query.order.place
            if place.detail is not None:
                rows = yield from self.detailed(rows, place.detail)
            ranked = [row for row in rows if _sortable(value_at(row, place))]
            ranked.sort(key=lambda row: value_at(row, place), reverse=query.order.more)
            rows = ranked[: query.order.count]
        return rows

    def detailed(self, rows: list[Row], detail: Detail) -> Generator[Step, Observation, list[Row]]:
        """The rows with what `detail` tells about each."""
        tool, parameter, given = detail
        if len(rows) > self.budget:
            raise SetbackError((), "too_many", f"{len(rows)} rows to look at one by one")
        result = []
        for row in rows:
            if row.get(given.name) is None:
                continue
            observation = yield from self.call(tool, {parameter.name: row[given.name]})
            if observation.status == "ok" and isinstance(observation.value, Mapping):
                result.append({**row, detail_key(detail): dict(observation.value)})
        return result

    def note(self, tool: IndexedTool, row: Mapping[str, Json], origin: frozenset[str] = frozenset()) -> None:
        """Remembers the values of a row that was singled out by the names in `origin`."""
        for name, value in row.items():
            values = value.items() if isinstance(value, Mapping) else [(name, value)]
            source = (name.split("(")[0] or tool.name) if isinstance(value, Mapping) else tool.name
            keys = self._keys(source)
            self.facts += [
                Fact(tool=source, name=key, value=one, origin=origin, key=key in keys)
                for key, one in values
                if _scalar(one)
            ]

    def _keys(self, name: str) -> set[str]:
        tool = next((one for one in self.box.tools if one.name == name), None)
        if tool is None:
            return set()
        return {one.name for one in tool.fields if one.key} | {one.name for one in tool.parameters if one.role == "id"}

    def recall(self, tool: IndexedTool, parameter: Parameter, mark: str | None = None) -> Fact | None:
        """The last value seen that `parameter` can take, of those found by `mark` when it is given."""
        links = {
            (link.tool.name, link.field.name): link.strength
            for link in self.box.links.get((tool.name, parameter.name), ())
        }
        for fact in reversed(self.facts):
            if mark is not None and mark not in fact.origin:
                continue
            if (fact.tool, fact.name) in links or (
                fact.name == parameter.name and (fact.key or not links) and parameter.role == "id"
            ):
                return fact
        return None

    def arguments(self, query: Query) -> Generator[Step, Observation, list[dict[str, Json]]]:
        """The arguments of all calls of a query; looks up what feeds it.

        Raises:
            SetbackError: nothing was found to feed it.
        """
        choices: list[list[tuple[str, Json]]] = [[(name, value)] for name, value in query.given.items()]
        for name, values in query.spread.items():
            choices.append([(name, value) for value in values])
        for name, (inner, given) in query.fed.items():
            rows = yield from self.rows(inner)
            values = list(dict.fromkeys(row[given.name] for row in rows if _scalar(row.get(given.name))))
            if not values:
                raise SetbackError(inner.blame, "nothing_found", f"{inner.tool.name} found nothing")
            if len(rows) == 1:
                self.note(inner.tool, rows[0], inner.marks)
            choices.append([(name, value) for value in values])
        return [dict(pairs) for pairs in itertools.product(*choices)]

    def _affords(self, tool: IndexedTool, arguments: Mapping[str, Json], pages: int) -> bool:
        """Whether all pages may be read: those that were seen cost nothing."""
        if pages <= max(6, self.budget // 2):
            return True
        return f"{tool.name} {canonical_json({**arguments, 'page': pages})}" in self.kept

    def _fetch(self, query: Query, arguments: dict[str, Json], limit: int | None, whole: bool):
        observation = yield from self.call(query.tool, arguments)
        if observation.status != "ok":
            raise setback_of(observation, query)
        value = observation.value if isinstance(observation.value, Mapping) else {"value": observation.value}
        items = query.tool.items
        if items is None or items not in value:
            return [{GIVEN: arguments, **value}]
        beside = {key: one for key, one in value.items() if key not in (items, "page", "pages")}
        if whole:
            return [{GIVEN: arguments, **beside}]
        found = list(value[items])
        pages = value.get("pages", 1)
        if limit is None and isinstance(pages, int) and not self._affords(query.tool, arguments, pages):
            raise SetbackError((), "too_many", f"{pages} pages")
        for page in range(2, pages + 1 if isinstance(pages, int) and query.tool.pages else 0):
            if limit is not None and len(found) >= limit:
                break
            more = yield from self.call(query.tool, {**arguments, "page": page})
            if more.status != "ok":
                break
            found += more.value[items]
        return [
            {GIVEN: arguments, **beside, **(item if isinstance(item, Mapping) else {"value": item})} for item in found
        ]


def setback_of(observation: Observation, query: Query) -> SetbackError:
    """What a refused, invalid or failed call means for the plan behind it."""
    error = observation.value.get("error", {}) if isinstance(observation.value, Mapping) else {}
    return SetbackError(query.blame, str(error.get("code", observation.status)), str(error.get("message", "")))


def detail_key(detail: Detail) -> str:
    """Under which name a row carries what a detail tool told."""
    return f"{detail[0].name}({detail[2].name})"


def value_at(row: Row, place: Place) -> Json:
    """The value of a row at a place; None when it has none."""
    if place.detail is None:
        return row[place.field.name] if place.field.name in row else row[GIVEN].get(place.field.name)
    inner = row.get(detail_key(place.detail))
    return inner.get(place.field.name) if isinstance(inner, Mapping) else None


def holds(keep: Keep, value: Json) -> bool:
    """Whether a value passes a filter."""
    return compared(value, keep.operator, keep.value, keep.upper)


def compared(value: Json, operator: str, wanted: Json, upper: Json = None) -> bool:
    """``value operator wanted`` for numbers, dates and names; False for a missing value."""
    if value is None:
        return False
    if operator == "same":
        values = value if isinstance(value, list) else [value]
        return any(fold(str(one)) == fold(str(wanted)) for one in values)
    if isinstance(value, str) and isinstance(wanted, int | float) and value[:4].isdigit():
        value = int(value[:4]) if "-" in value[:5] else _parsed(value)
    elif isinstance(value, str) and isinstance(wanted, str):
        value, wanted = value[: len(wanted)], wanted.replace("????", value[:4])
    if isinstance(value, int | float) and isinstance(wanted, str):
        wanted = _parsed(wanted[:4])
    if isinstance(value, str) != isinstance(wanted, str) or isinstance(value, list | dict):
        return False
    if operator == "between":
        return wanted <= value <= upper
    return {
        "gt": value > wanted,
        "ge": value >= wanted,
        "lt": value < wanted,
        "le": value <= wanted,
        "eq": value == wanted,
    }[operator]


def _parsed(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _exact(rows: list[Row], wanted: Iterable[str]) -> list[Row]:
    """The rows that carry a wanted name exactly, or else at the start, or else all."""
    for name in wanted:
        target = fold(name)
        texts = [[fold(value) for value in row.values() if isinstance(value, str)] for row in rows]
        exact = [row for row, text in zip(rows, texts, strict=True) if target in text]
        rows = exact or rows
    return rows


def _nested(value: Json) -> bool:
    return isinstance(value, list | dict)


def _scalar(value: Json) -> bool:
    return value is not None and not _nested(value)


def _sortable(value: Json) -> bool:
    return isinstance(value, int | float | str) and not isinstance(value, bool)
