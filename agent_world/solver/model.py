"""What the solver makes of an instruction: clauses, branches, and the constraints in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from agent_world.environments.model import Json
from agent_world.solver.fields import Bag
from agent_world.solver.lexicon import Degree
from agent_world.solver.mentions import Token

Operator = Literal["gt", "ge", "lt", "le", "eq", "between"]
Kind = Literal["ask", "do"]
Summary = Literal["count", "sum", "mean", "difference", "share"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """Something named: a name, a code, a date, a bare number, or a value that some parameter allows.

    Names in a row ("A, B and C") have the same `group`. A number is `numbered` when it tells which one is meant.
    """

    kind: Literal["name", "number", "date", "value"]
    text: str
    value: Json
    context: Bag
    at: int
    quoted: bool = False
    numbered: bool = False
    group: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare:
    """A comparison with a number or date; for `between` the second one is `upper`."""

    operator: Operator
    value: Json
    upper: Json = None
    context: Bag = field(default_factory=dict)
    degrees: tuple[Degree, ...] = ()
    at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Extreme:
    """A superlative: the `count` things that are most (or least) of something."""

    more: bool
    count: int
    context: Bag
    degrees: tuple[Degree, ...] = ()
    at: int = 0


Constraint = Mention | Compare | Extreme


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """A part of an instruction with one request.

    `content` are its words outside names; `head` are the words right after the question word; `comparative` is set
    when two things are compared with each other; `each` that it is about all of something; `refers` that it points
    back to something. `position` is its place in the instruction.
    """

    tokens: tuple[Token, ...]
    kind: Kind
    content: Bag
    head: Bag
    constraints: tuple[Constraint, ...]
    summaries: frozenset[Summary]
    comparative: Extreme | None
    each: bool
    refers: bool
    negated: bool
    position: int

    @property
    def mentions(self) -> tuple[Mention, ...]:
        """What is named in it."""
        return tuple(one for one in self.constraints if isinstance(one, Mention))

    @property
    def text(self) -> str:
        """Its words in one text."""
        return " ".join(token.text for token in self.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """If `condition` holds do `then`, otherwise `otherwise`. Without a condition it turns on a refusal before it."""

    condition: Clause | None
    negated: bool
    then: tuple[Clause, ...]
    otherwise: tuple[Clause, ...]


Part = Clause | Branch


def mark_of(constraint: Constraint) -> str:
    """A text that is equal for constraints that say the same."""
    if isinstance(constraint, Mention):
        return constraint.text
    if isinstance(constraint, Compare):
        return f"{constraint.operator} {constraint.value} {constraint.upper}"
    return f"{constraint.more} {constraint.count} {sorted(constraint.context)} {constraint.degrees}"


def weight_of(constraint: Constraint) -> float:
    """How bad it is to leave a constraint out."""
    if isinstance(constraint, Mention):
        return {"name": 1.2 if constraint.quoted else 1.0, "number": 0.5, "date": 0.9, "value": 1.0}[constraint.kind]
    return 1.0


def is_strong(constraint: Constraint) -> bool:
    """Whether a constraint says which thing is meant."""
    return isinstance(constraint, Mention) and constraint.kind in ("name", "value", "date")
