"""Turns constraints into queries: which tool, which parameter each name or number goes to, what is filtered afterwards.

A plan is found by scoring every place that a constraint could go to; the noise that a seed adds to the scores is what
makes two solvers differ.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from agent_world.environments.model import Json
from agent_world.solver.index import Bag, Field, IndexedTool, Link, Parameter, Toolbox, merge
from agent_world.solver.lexicon import fold, stem
from agent_world.solver.mentions import looks_like_code
from agent_world.solver.reading import Compare, Constraint, Extreme, Mention, Operator

Detail = tuple[IndexedTool, Parameter, Field]
"""A tool that tells more about each row, the parameter it takes, and the field of the row that goes there."""

_DEPTH = 3
_DATES = frozenset(map(stem, ("date", "day", "year", "time", "born", "founded", "published", "released", "departure", "hour")))
_LABELS = frozenset(map(stem, ("name", "title", "label")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where in a row a value is found: a field of the row, or of the result of a detail tool."""

    field: Field
    detail: Detail | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """Rows that are kept: those whose value at `place` compares so with `value`."""

    place: Place
    operator: Operator | str
    value: Json
    upper: Json = None
    blame: tuple[str, str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The `count` rows with the largest (or smallest) value at `place`."""

    place: Place
    more: bool
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One way to get rows: call `tool` with `given` values and with what the `fed` queries find.

    `spread` are parameters that run over several values. `wanted` are names that a row should carry exactly.
    `blame` remembers which mention went to which parameter, for when it turns out wrong.
    """

    tool: IndexedTool
    given: Mapping[str, Json] = field(default_factory=dict)
    fed: Mapping[str, tuple[Query, Field]] = field(default_factory=dict)
    spread: Mapping[str, tuple[Json, ...]] = field(default_factory=dict)
    keeps: tuple[Keep, ...] = ()
    order: Order | None = None
    wanted: tuple[str, ...] = ()
    blame: tuple[tuple[str, str, str], ...] = ()

    def details(self) -> list[Detail]:
        """The detail tools that filters and order need."""
        places = [keep.place for keep in self.keeps] + ([self.order.place] if self.order else [])
        found: dict[tuple[str, str, str], Detail] = {}
        for place in places:
            if place.detail is not None:
                tool, parameter, given = place.detail
                found[tool.name, parameter.name, given.name] = place.detail
        return list(found.values())

    def calls(self) -> int:
        """How many different calls it needs at least."""
        return 1 + sum(query.calls() for query, _ in self.fed.values()) + len(self.details())


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A query with the worth of its assignments, the constraints that found no place and the parameters without value."""

    query: Query
    score: float
    left: tuple[Constraint, ...]
    missing: tuple[Parameter, ...] = ()


@dataclass(slots=True)
class Chance:
    """Noise for scores: one draw a key, so that a choice once made is made again."""

    random: random.Random
    temperature: float
    drawn: dict[object, float] = field(default_factory=dict)

    def __call__(self, *key: object) -> float:
        if key not in self.drawn:
            self.drawn[key] = -math.log(-math.log(self.random.random() or 1e-12)) * self.temperature
        return self.drawn[key]


Recall = Callable[[IndexedTool, Parameter], Json]
"""Gives what is known from before for a parameter, or None."""


def weight_of(constraint: Constraint) -> float:
    """How bad it is to leave a constraint out."""
    if isinstance(constraint, Mention):
        return {"name": 1.2 if constraint.quoted else 1.0, "number": 0.5, "date": 0.9, "value": 1.0}[constraint.kind]
    return 1.0


@dataclass(slots=True)
class Planner:
    """Builds queries over one toolbox; `banned` are (mention, tool, parameter) that were tried in vain."""

    box: Toolbox
    chance: Chance
    recall: Recall
    banned: set[tuple[str, str, str]] = field(default_factory=set)
    _best: dict[tuple[int, str, int], list[tuple[float, tuple]]] = field(default_factory=dict)

    def build(self, tool: IndexedTool, constraints: Sequence[Constraint], depth: int = 0,
              spread: Parameter | None = None) -> Plan:
        """The best way to call `tool` so that the constraints hold.

        `spread` names a parameter that shall run over all its values.
        """
        if not depth:
            self._best.clear()  # what a seed may have banned since
        needed = {} if depth else {one.name: 0.15 for one in tool.required if self.recall(tool, one) is None}
        slots = sorted(
            ((score + self.chance(tool.name, _key(constraint), _slot_key(slot)) + (
                needed.get(slot[1].name, 0.0) if isinstance(slot[1], Parameter) else 0.0), at, number, constraint, slot)
             for at, constraint in enumerate(constraints)
             for number, (score, slot) in enumerate(self._slots(constraint, tool, depth))),
            key=lambda entry: (-entry[0], entry[1], entry[2]),
        )
        given: dict[str, Json] = {}
        feeds: dict[str, tuple[Link, list[Constraint]]] = {}
        keeps: list[Keep] = []
        wanted: list[str] = []
        blame: list[tuple[str, str, str]] = []
        order: Order | None = None
        placed: set[int] = set()
        taken: set[tuple[str, tuple]] = set()
        score = 0.0
        for worth, at, _, constraint, slot in slots:
            if at in placed:
                continue
            kind, target = slot[0], slot[1]
            if kind == "give":
                if target.name in given or target.name in feeds or target is spread:
                    continue
                given[target.name] = self.value_for(target, constraint)
                if isinstance(constraint, Mention):
                    blame.append((constraint.text, tool.name, target.name))
                    if target.role == "search":
                        wanted.append(constraint.text)
                elif isinstance(constraint, Compare):
                    place = self._visible(constraint, tool)
                    if place is not None:
                        keeps.append(_keep(constraint, place, self._direction(constraint, place.field)))
            elif kind == "feed":
                link, inner_key = slot[2], (target.name, slot[3])
                if target.name in given or target is spread or (target.name in feeds and feeds[target.name][0] is not link):
                    continue
                if inner_key in taken:
                    continue
                if _sole(slot[3]):
                    taken.add(inner_key)
                feeds.setdefault(target.name, (link, []))[1].append(constraint)
                worth = 0.0  # counted by the query that feeds
            elif kind == "keep":
                if isinstance(constraint, Compare):
                    keeps.append(_keep(constraint, target, self._direction(constraint, target.field)))
                elif wanted and set(target.field.names) & _LABELS or any(
                    keep.place == target and keep.operator == "same" for keep in keeps):
                    continue
                else:
                    keeps.append(Keep(place=target, operator="same", value=constraint.value,
                                      blame=(constraint.text, tool.name, target.field.name)))
            else:
                if order is not None:
                    continue
                order = Order(place=target, more=self._direction(constraint, target.field), count=constraint.count)
            placed.add(at)
            score += worth
        fed: dict[str, tuple[Query, Field]] = {}
        left = [constraint for at, constraint in enumerate(constraints) if at not in placed]
        missing: list[Parameter] = []
        for name, (link, own) in feeds.items():
            inner = self.build(link.tool, own, depth + 1)
            missing += inner.missing
            fed[name] = (inner.query, link.field)
            score += inner.score - 0.12 + 0.1 * (link.strength - 1)
            left += inner.left
        spreads = {spread.name: spread.enum} if spread is not None else {}
        for parameter in tool.required:
            if parameter.name in given or parameter.name in fed or parameter.name in spreads:
                continue
            known = None if parameter.role == "number" else self.recall(tool, parameter)
            if known is not None:
                given[parameter.name] = known
                score += 0.3
                continue
            filled = self._unfed(tool, parameter, depth)
            if filled is None:
                missing.append(parameter)
            elif isinstance(filled[0], Query):
                fed[parameter.name] = filled
                score -= 0.6
            else:
                spreads[parameter.name] = filled
                score -= 0.5
        query = Query(tool=tool, given=given, fed=fed, spread=spreads, keeps=tuple(keeps), order=order, wanted=tuple(wanted),
                      blame=tuple(blame))
        return Plan(query=query, score=score, left=tuple(left), missing=tuple(missing))

    def feed(self, tool: IndexedTool, parameter: Parameter, constraints: Sequence[Constraint]) -> tuple[Query, Field] | None:
        """The query by which `constraints` say what to give to `parameter`; None when they do not fit any."""
        best: tuple[float, int, Query, Field] | None = None
        for number, link in enumerate(self.box.links.get((tool.name, parameter.name), ())):
            if link.tool.writes:
                continue
            plan = self.build(link.tool, constraints, 1)
            unplaced = [one for one in plan.left if not isinstance(one, Mention) or one.kind != "number"]
            score = plan.score + 0.1 * link.strength - len(unplaced)
            if not plan.missing and len(unplaced) < len(constraints) and (best is None or score > best[0]):
                best = score, number, plan.query, link.field
        return (best[2], best[3]) if best is not None and best[0] > 0.2 else None

    def value_for(self, parameter: Parameter, constraint: Constraint) -> Json:
        """The constraint as an argument of the parameter's type."""
        if isinstance(constraint, Compare):
            return self._bound(parameter, constraint)
        value = constraint.value
        if parameter.enum:
            return next((one for one in parameter.enum if _same_text(one, value)), value)
        if parameter.numeric and isinstance(value, str):
            return _number(value)
        if not parameter.numeric and isinstance(value, int | float):
            return constraint.text if not constraint.text.isalpha() else str(value)
        if parameter.types == {"integer"} and isinstance(value, float) and value.is_integer():
            return int(value)
        return value

    def _bound(self, parameter: Parameter, constraint: Compare) -> Json:
        """A limit for a parameter that takes one; never narrower than what was asked for."""
        value = constraint.upper if constraint.operator == "between" and parameter.role == "high" else constraint.value
        if parameter.types == {"integer"} and isinstance(value, int) and not parameter.strict:
            if constraint.operator == "gt" and parameter.role == "low":
                return value + 1
            if constraint.operator == "lt" and parameter.role == "high":
                return value - 1
        if parameter.types == {"integer"} and isinstance(value, float):
            return math.floor(value) if parameter.role == "low" else math.ceil(value)
        if not parameter.numeric and not isinstance(value, str):
            return str(value)
        return value

    def _unfed(self, tool: IndexedTool, parameter: Parameter, depth: int):
        """A required parameter that nothing was said about: every value, or all rows of a tool that lists them."""
        if parameter.role == "enum":
            return parameter.enum
        if depth >= _DEPTH - 1 or tool.writes:
            return None
        for link in self.box.links.get((tool.name, parameter.name), ()):
            if not link.tool.writes and link.tool.items and not link.tool.required and link.field.item:
                return Query(tool=link.tool), link.field
        return None

    def _slots(self, constraint: Constraint, tool: IndexedTool, depth: int):
        """Where `constraint` could go in a call of `tool`, with scores."""
        for parameter in tool.parameters:
            score = self.fit(constraint, parameter, tool)
            if score is not None:
                yield score, ("give", parameter)
            if tool.writes and parameter.role == "text" and not (_CODED | _ID) & set(parameter.words):
                continue
            if depth + 1 < _DEPTH and not isinstance(constraint, Compare) or depth == 0:
                for link in self.box.links.get((tool.name, parameter.name), ()):
                    if link.tool.writes or depth + 1 >= _DEPTH:
                        continue
                    near = self.box.touch(constraint.context, parameter.words)
                    if parameter.role != "id" and not (_CODED | _ID) & set(parameter.words):
                        near -= 2.0  # a plain value is mostly meant as it stands
                    for inner, key in self._reach(constraint, link.tool, depth + 1):
                        yield 0.8 * inner + 0.15 * near + 0.1 * link.strength - 0.08, ("feed", parameter, link, key)
        if not tool.writes:
            yield from self._rows(constraint, tool, depth)

    def _rows(self, constraint: Constraint, tool: IndexedTool, depth: int):
        """Where `constraint` could select among the rows that `tool` gives."""
        for one in tool.fields:
            score = self.fit_field(constraint, one, tool)
            if score is not None:
                kind = "order" if isinstance(constraint, Extreme) else "keep"
                yield score, (kind, Place(field=one))
        for detail in self.box.details.get(tool.name, ()):
            if detail[0].items or not tool.items and not isinstance(constraint, Extreme):
                continue
            for one in detail[0].fields:
                if one.item or any(one.name == other.name for other in tool.fields) and not isinstance(constraint, Extreme | Compare):
                    continue
                score = self.fit_field(constraint, one, detail[0], True)
                if score is not None:
                    kind = "order" if isinstance(constraint, Extreme) else "keep"
                    yield 0.85 * score - 0.05, (kind, Place(field=one, detail=detail))

    def _reach(self, constraint: Constraint, tool: IndexedTool, depth: int) -> list[tuple[float, tuple]]:
        """The best places for `constraint` in a call that feeds another one."""
        key = (id(constraint), tool.name, depth)
        if key not in self._best:
            self._best[key] = []  # ends a circle of links
            places = [(score, _slot_key(slot)) for score, slot in self._slots(constraint, tool, depth)]
            self._best[key] = sorted(places, key=lambda place: -place[0])[:3]
        return self._best[key]

    def reach(self, constraint: Constraint, tool: IndexedTool) -> float:
        """How well `constraint` fits anywhere in a call of `tool` that feeds another one."""
        return max((score for score, _ in self._reach(constraint, tool, 1)), default=0.0)

    def fit(self, constraint: Constraint, parameter: Parameter, tool: IndexedTool) -> float | None:
        """How well a constraint goes to a parameter, about 0 to 1.3; None when it cannot."""
        if parameter.role in ("page", "size", "order"):
            return None
        if isinstance(constraint, Compare):
            return self._fit_limit(constraint, parameter)
        if isinstance(constraint, Extreme) or (constraint.text, tool.name, parameter.name) in self.banned:
            return None
        near = self.box.touch(constraint.context, merge(parameter.words, {w: 0.5 * v for w, v in tool.nouns.items()}))
        value, role = constraint.value, parameter.role
        if parameter.enum:
            return 1.0 + 0.3 * near if any(_same_text(one, value) for one in parameter.enum) else None
        if constraint.kind == "value":
            own = self.box.touch(constraint.context, parameter.words)
            return {"text": 0.25 + 0.4 * own, "search": 0.1 + 0.2 * own}.get(role)
        if constraint.kind == "number":
            own = self.box.touch(constraint.context, parameter.words)
            if parameter.numeric and role == "number":
                return 0.3 + 0.7 * own if own > 0.2 or tool.writes else None
            beside = {word: weight for word, weight in constraint.context.items() if weight == 1.0}
            own = self.box.touch(beside, parameter.words)
            coded = role == "id" or role == "text" and _NUMBERED & set(parameter.words)
            return 0.3 + 0.6 * own if coded and own > 0.6 and not constraint.text.isalpha() else None
        if constraint.kind == "date":
            if parameter.numeric:
                return None
            return 0.8 + 0.2 * near if role == "date" or _DATES & set(parameter.words) else None
        if parameter.numeric:
            return 0.5 if role == "id" and _number(value) is not None else None
        code = looks_like_code(constraint.text)
        if role == "id":
            return 0.6 + 0.4 * near if code else None
        if role == "search":
            return (0.45 if code else 0.6) + 0.4 * near
        if role == "date":
            return None
        if _CODED & set(parameter.words):
            return 0.55 + 0.45 * near if code else None
        if role in ("text", "low", "high"):
            return 0.4 + 0.55 * near if role == "text" else None
        return None

    def fit_field(self, constraint: Constraint, one: Field, tool: IndexedTool, detail: bool = False) -> float | None:
        """How well a constraint selects by the values of a field; None when it cannot."""
        if isinstance(constraint, Compare | Extreme):
            dated = bool(_DATES & set(one.words)) and not one.numeric
            if not (one.numeric or (dated and (isinstance(constraint, Extreme) or isinstance(constraint.value, str)))):
                return None
            if one.name == "total":
                return None
            score = self._measured(constraint, one)
            return 0.2 + 0.8 * score if score > 0.3 else None
        if not tool.items and not detail:
            return None
        if one.numeric or (constraint.text, tool.name, one.name) in self.banned or not one.item and tool.items:
            return None
        if (_CODED | _ID) & set(one.words) and not looks_like_code(constraint.text):
            return None
        near = self.box.touch(constraint.context, one.words)
        if constraint.kind == "value":
            return 0.35 + 0.5 * near
        if one.enum and not any(_same_text(value, constraint.value) for value in one.enum):
            return None
        if constraint.kind == "name" and not _DATES & set(one.names):
            if _LABELS & set(one.names):
                near = max(near, self.box.touch(constraint.context, tool.nouns))
                return 0.35 + 0.4 * near
            return 0.05 + 0.65 * near
        return 0.15 + 0.6 * near if constraint.kind == "date" and _DATES & set(one.words) else None

    def _fit_limit(self, constraint: Compare, parameter: Parameter) -> float | None:
        wanted = {"gt": "low", "ge": "low", "lt": "high", "le": "high"}.get(constraint.operator)
        if parameter.role not in ("low", "high"):
            if constraint.operator == "eq" and parameter.role == "number":
                return 0.2 + 0.8 * self.box.touch(constraint.context, parameter.words)
            return None
        if wanted is not None and constraint.degrees and not _agrees(self.box, constraint, parameter.words):
            wanted = "high" if wanted == "low" else "low"
        if wanted is not None and wanted != parameter.role:
            return None
        score = self._measured(constraint, parameter)
        return 0.3 + 0.85 * score if score > 0.3 else None

    def _measured(self, constraint: Compare | Extreme, one: Field | Parameter) -> float:
        """How well a field is what a comparison or superlative is about."""
        told = self.box.touch(constraint.context, one.words)
        degree = max((self.box.closest(word, one.words) for entry in constraint.degrees for word in entry.of), default=0.0)
        dated = 0.75 if isinstance(constraint, Compare) and _yearly(constraint.value) and _DATES & set(one.words) else 0.0
        return max(told, 0.95 * degree, dated)

    def _direction(self, constraint: Compare | Extreme, one: Field) -> bool:
        """Whether more of the field is what is asked for."""
        up = _agrees(self.box, constraint, one.words)
        return up if isinstance(constraint, Compare) else constraint.more if not constraint.degrees else up

    def _visible(self, constraint: Compare, tool: IndexedTool) -> Place | None:
        """A field of the rows that shows what a limit is about."""
        fields = [(self._measured(constraint, one), one) for one in tool.fields if one.numeric and one.item]
        score, best = max(fields, key=lambda pair: pair[0], default=(0.0, None))
        return Place(field=best) if best is not None and score > 0.6 else None


_ID = frozenset({stem("id")})
_NUMBERED = frozenset(map(stem, ("number", "code", "id", "zip", "postcode", "postal", "year")))
_CODED = frozenset(map(stem, ("code", "abbreviation", "symbol")))


def _agrees(box: Toolbox, constraint: Compare | Extreme, words: Bag) -> bool:
    """The direction of the degree that fits the words best; True when it has none."""
    best = max(constraint.degrees, default=None, key=lambda degree: max(box.closest(word, words) for word in degree.of))
    return best is None or best.more


def _keep(constraint: Compare, place: Place, up: bool) -> Keep:
    flipped = {"gt": "lt", "ge": "le", "lt": "gt", "le": "ge"}
    operator = constraint.operator
    if constraint.degrees and not up and operator in ("gt", "ge"):
        operator = flipped[operator]
    return Keep(place=place, operator=operator, value=constraint.value, upper=constraint.upper)


def _yearly(value: Json) -> bool:
    return isinstance(value, str) or (isinstance(value, int) and 1000 <= value <= 2100)


def _same_text(one: Json, other: Json) -> bool:
    left, right = fold(str(one)).replace("_", " "), fold(str(other)).replace("_", " ")
    return left == right


def _number(text: str) -> int | float | None:
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return None


def _key(constraint: Constraint) -> str:
    return f"{constraint.at}:{constraint.text if isinstance(constraint, Mention) else constraint.context}"


def _sole(key: tuple) -> bool:
    """Whether a place takes one constraint only: a parameter does, a filter does not."""
    return _sole(key[4]) if key[0] == "feed" else key[0] in ("give", "order")


def _slot_key(slot: tuple) -> tuple:
    target = slot[1]
    if slot[0] == "give":
        return "give", target.name
    if slot[0] == "feed":
        return "feed", target.name, slot[2].tool.name, slot[2].field.name, slot[3]
    return slot[0], target.field.name, target.detail[0].name if target.detail else ""
