"""Primary keys and foreign keys found in the values themselves (rules and figures: docs/mining.md).

A link needs equal types, inclusion of the child's values in the parent's, and a name, or codes that cannot meet by
chance. One parent a column; a table refers to itself only through a column that is named so.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from agent_world.discovery.columns import null_markers
from agent_world.discovery.model import RawTable
from agent_world.discovery.words import name_words, singular

_INTEGER = re.compile(r"-?\d+")
_REAL = re.compile(r"-?\d*\.?\d+([eE][+-]?\d+)?")
_KEY_NAME = re.compile(r"(id|code|key|pk|number|icao|ident|abbr|faa|num)$")
_SELF_NAME = re.compile(r"parent|report|prev|super|base")
_VAGUE = {"id", "pk", "key", "code", "name", "type", "value", "number"}
_NO_REFERENCE = re.compile(
    r"^(year|yr|month|day|date|hour|minute|time|ordinal|index|rank|position|row|count|column\d+|n|x|y)(id)?$"
)
_NO_KEY = re.compile("name|title|desc|coordinates|latl|comment|note")


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """`child.column` refers to `parent.parent_column`; `inclusion` is the share of its distinct values found there."""

    child: str
    column: str
    parent: str
    parent_column: str
    inclusion: float
    similarity: float
    origin: Literal["declared", "discovered", "guessed"] = "discovered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The primary key of each table that has a single-column one, and the links between tables."""

    primary: Mapping[str, str]
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """What the values of one column look like."""

    position: int
    rows: int
    present: int
    counts: Mapping[str, int]
    integers: bool
    numeric: bool
    longest: int

    @property
    def unique(self) -> bool:
        """No value twice."""
        return len(self.counts) == self.present

    @property
    def full(self) -> bool:
        """No row without a value."""
        return self.present == self.rows

    @property
    def dense(self) -> bool:
        """Integers that fill their range, as counters do: any small integer column is included in them by chance."""
        if not self.integers:
            return False
        numbers = [int(value) for value in self.counts]
        return max(numbers) - min(numbers) + 1 <= 1.3 * len(numbers)


Profiles = Mapping[tuple[str, str], Profile]


def profile(tables: Sequence[RawTable]) -> Profiles:
    """Profiles of all columns that hold a value, by (table, column)."""
    profiles: dict[tuple[str, str], Profile] = {}
    for table in tables:
        columns = list(zip(*table.rows, strict=True)) if table.rows else []
        markers = null_markers(columns)
        for position, (name, values) in enumerate(zip(table.header, columns, strict=False)):
            counts = Counter(value for value in values if value is not None and value not in markers)
            if not counts:
                continue
            integers = all(_INTEGER.fullmatch(value) for value in counts)
            profiles[table.name, name] = Profile(
                position,
                len(table.rows),
                sum(counts.values()),
                counts,
                integers,
                integers or all(_REAL.fullmatch(value) for value in counts),
                max(map(len, counts)),
            )
    return profiles


def discover(tables: Sequence[RawTable]) -> Keys:
    """Keys and links of tables with distinct names: what the source declares, and what the values show."""
    profiles = profile(tables)
    candidates = {table.name: _candidates(table, profiles) for table in tables}
    primary = {name: best for name, columns in candidates.items() if (best := _by_name(name, columns, profiles))}
    declared = _declared(tables, profiles)
    taken = {(link.child, link.column) for link in declared}
    found = [link for link in _links(profiles, candidates, primary) if (link.child, link.column) not in taken]
    referenced = Counter((link.parent, link.parent_column) for link in (*declared, *found))
    for name, columns in candidates.items():
        full = [column for column in columns if profiles[name, column].full]
        if full:
            primary[name] = max(
                full,
                key=lambda c: (
                    not _NO_KEY.search(_plain(c)) or referenced[name, c] > 1,
                    referenced[name, c],
                    c == primary.get(name),
                    -full.index(c),
                ),
            )
    return Keys(primary=primary, links=(*declared, *found))


def _candidates(table: RawTable, profiles: Profiles) -> list[str]:
    names = []
    for name in table.header:
        column = profiles.get((table.name, name))
        if (
            column
            and column.unique
            and column.present >= 0.5 * column.rows
            and column.longest <= 40
            and (column.integers or not column.numeric)
        ):
            names.append(name)
    return names


def _by_name(table: str, columns: Sequence[str], profiles: Profiles) -> str | None:
    full = [column for column in columns if profiles[table, column].full]
    if not full:
        return None

    def score(column: str) -> float:
        plain = _plain(column)
        seen = profiles[table, column]
        return (
            3 * bool(_KEY_NAME.search(plain))
            + 2 * (plain in _VAGUE - {"name"} or singular(_plain(table)) in plain)
            + 1
            - 0.1 * seen.position
            - (seen.longest > 24)
            - 2 * bool(_NO_KEY.search(plain))
        )

    return max(full, key=lambda column: (score(column), -profiles[table, column].position))


def _declared(tables: Sequence[RawTable], profiles: Profiles) -> list[Link]:
    by_name = {table.name: table for table in tables}
    links = []
    for table in tables:
        for column, parent, parent_column in table.declared_links:
            if parent in by_name and not parent_column and len(by_name[parent].declared_key) == 1:
                parent_column = by_name[parent].declared_key[0]
            child, target = profiles.get((table.name, column)), profiles.get((parent, parent_column))
            if child and target and target.unique:
                links.append(
                    Link(
                        child=table.name,
                        column=column,
                        parent=parent,
                        parent_column=parent_column,
                        inclusion=_inclusion(child, target),
                        similarity=1.0,
                        origin="declared",
                    )
                )
    return links


def _inclusion(child: Profile, parent: Profile) -> float:
    """The larger of the distinct and the row-weighted share of the child's values that the parent has."""
    common = child.counts.keys() & parent.counts.keys()
    return max(len(common) / len(child.counts), sum(child.counts[value] for value in common) / child.present)


def _links(profiles: Profiles, candidates: Mapping[str, Sequence[str]], primary: Mapping[str, str]) -> list[Link]:
    best: dict[tuple[str, str], tuple[float, Link]] = {}
    targets = [
        (table, column, profiles[table, column])
        for table, columns in candidates.items()
        for column in columns
        if len(profiles[table, column].counts) >= 3
    ]
    for (table, column), child in profiles.items():
        if len(child.counts) < 2 or (child.numeric and not child.integers) or child.longest > 60:
            continue
        for parent, parent_column, target in targets:
            if target.integers != child.integers or (parent, parent_column) == (table, column):
                continue
            found = _judge(table, column, child, parent, parent_column, target)
            if found:
                coverage = len(child.counts.keys() & target.counts.keys()) / len(target.counts)
                score = (
                    found.similarity
                    + 0.5 * (primary.get(parent) == parent_column)
                    + 0.3 * coverage
                    + 0.5 * found.inclusion
                )
                known = best.get((table, column))
                if known is None or score > known[0]:
                    best[table, column] = (score, found)
    links = {(link.child, link.column): link for _, link in best.values()}
    links = {
        place: link
        for place, link in links.items()
        if not _is_reverse(link, links, profiles) and not _is_copy(link, links, primary)
    }
    return [*links.values(), *_role_links(links, profiles)]


def _judge(table: str, column: str, child: Profile, parent: str, parent_column: str, target: Profile) -> Link | None:
    if _NO_REFERENCE.match(_plain(parent_column)) or _NO_REFERENCE.match(_plain(column)):
        return None  # a year is found in every list of years
    similarity = name_similarity(column, parent, parent_column)
    if _is_twin(child, target) and _plain(column) == _plain(parent_column):
        similarity = 1.0  # two tables about the same things, under the same scattered numbers
    sample = sum(value in target.counts for value in list(child.counts)[:40])
    if sample < 0.5 * min(40, len(child.counts)) and child.present == len(child.counts):
        return None
    inclusion = _inclusion(child, target)
    codes = not target.integers and child.longest <= 12 and len(child.counts) >= 10 and len(target.counts) >= 50
    held = (
        (similarity >= 0.8 and inclusion >= 0.8)
        or (similarity >= 0.6 and inclusion >= 0.95 and not target.dense)
        or (codes and inclusion >= 0.95)
    )
    if not held:
        return None
    if table == parent and not _SELF_NAME.search(_plain(column)):
        return None
    own_key = child.unique and child.full
    if own_key and target.full and similarity < 1 and _plain(column) in {"id", "pk", "key"}:
        return None  # two tables that both count from 1
    if own_key and table != parent and target.unique and target.rows < child.rows and similarity < 0.9:
        return None
    return Link(
        child=table,
        column=column,
        parent=parent,
        parent_column=parent_column,
        inclusion=round(inclusion, 4),
        similarity=similarity,
    )


def _is_twin(child: Profile, target: Profile) -> bool:
    return (
        child.integers
        and child.unique
        and target.unique
        and not child.dense
        and child.counts.keys() == target.counts.keys()
    )


def _is_reverse(link: Link, links: Mapping[tuple[str, str], Link], profiles: Profiles) -> bool:
    """Whether the opposite link exists too and is the better reading: the smaller value set refers to the larger."""
    back = links.get((link.parent, link.parent_column))
    if back is None or (back.parent, back.parent_column) != (link.child, link.column):
        return False
    own = len(profiles[link.child, link.column].counts)
    other = len(profiles[link.parent, link.parent_column].counts)
    return (own, link.child) > (other, link.parent)


def _is_copy(link: Link, links: Mapping[tuple[str, str], Link], primary: Mapping[str, str]) -> bool:
    """Whether the column repeats an attribute of a parent that the row already refers to by its key."""
    if link.parent_column == primary.get(link.parent) or link.child == link.parent:
        return False
    return any(
        other.child == link.child and other.parent == link.parent and other.parent_column == primary.get(link.parent)
        for other in links.values()
    )


def _role_links(links: Mapping[tuple[str, str], Link], profiles: Profiles) -> list[Link]:
    """A second role of a known parent: codes of few values, all of them keys that a sibling column refers to."""
    found = []
    for link in links.values():
        target = profiles[link.parent, link.parent_column]
        for (table, column), child in profiles.items():
            if (
                table == link.child
                and link.child != link.parent
                and (table, column) not in links
                and not child.numeric
                and not target.numeric
                and child.longest <= 12
                and 2 <= len(child.counts) < 10
                and len(target.counts) >= 50
                and child.counts.keys() <= target.counts.keys()
            ):
                found.append(
                    Link(
                        child=table,
                        column=column,
                        parent=link.parent,
                        parent_column=link.parent_column,
                        inclusion=1.0,
                        similarity=0.0,
                    )
                )
    return list({(link.child, link.column): link for link in found}.values())


def name_similarity(column: str, parent: str, parent_column: str) -> float:
    """How much the name of a column says that it refers to `parent.parent_column`: 0 to 1."""
    own, theirs, table = _plain(column), _plain(parent_column), _plain(parent)
    if own == theirs and own not in _VAGUE:
        return 1.0
    for name in {table, singular(table)} - {""}:
        if own in {name, name + theirs, name + "id", name + "code"} or (len(name) > 3 and name in own):
            return 0.9
    if (len(theirs) > 3 and own.endswith(theirs)) or (len(own) > 3 and theirs.endswith(own)):
        return 0.8
    shared = set(name_words(column)) & ({*name_words(parent_column), *map(singular, name_words(parent))})
    return 0.6 if shared - _VAGUE else 0.0


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def components(tables: Sequence[RawTable], links: Sequence[Link]) -> list[tuple[str, ...]]:
    """Names of tables grouped by links, in the order of the tables."""
    group = {table.name: table.name for table in tables}

    def root(name: str) -> str:
        while group[name] != name:
            name = group[name]
        return name

    for link in links:
        group[root(link.child)] = root(link.parent)
    members: dict[str, list[str]] = defaultdict(list)
    for table in tables:
        members[root(table.name)].append(table.name)
    return [tuple(names) for names in members.values()]
