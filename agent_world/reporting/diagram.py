"""A piece of lineage to draw: its versions in columns, in the order in which the pipeline makes them; or as Mermaid."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from agent_world.identity import VersionId, artifact_id_of
from agent_world.lake.graph import Link

if TYPE_CHECKING:
    from agent_world.lake import View
    from agent_world.lake.lineage import Answer, Impact, Path

ORDER = (
    "theme", "database", "tool", "tool_test", "environment", "taxonomy", "task", "task_set", "trajectory",
    "checkpoint", "diagnosis", "diagnosis_score",
)  # fmt: skip
"""Kinds in the order in which a round makes them; others stand behind."""

_FEWEST_ROWS = 12
_SWEEPS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagram:
    """What is drawn: `focus` was asked about, `kinds` names every version with its kind, `links` are among them."""

    title: str
    focus: tuple[str, ...]
    kinds: Mapping[str, str]
    links: tuple[Link, ...]
    truncated: bool
    as_of: int


class Column(NamedTuple):
    """Versions that stand under each other, of one kind and one pass through the pipeline; 0 is the first pass."""

    kind: str
    turn: int
    versions: list[str]


def of_answers(view: View, title: str, answers: Sequence[Answer]) -> Diagram:
    """What `upstream` or `downstream` found."""
    found = [version for answer in answers for version in (answer.version_id, *(h.version_id for h in answer.hops))]
    return _diagram(view, title, [a.version_id for a in answers], found, any(a.truncated for a in answers))


def of_impacts(view: View, title: str, impacts: Sequence[Impact]) -> Diagram:
    """What `impact` found: what used a version, what merely holds it, what came of it."""
    found: list[str] = []
    for each in impacts:
        direct = (link.child for link in (*each.used_by, *each.held_by))
        found += [each.version_id, *direct, *(hop.version_id for hop in each.affected)]
    return _diagram(view, title, [each.version_id for each in impacts], found, any(each.truncated for each in impacts))


def of_path(view: View, title: str, path: Path) -> Diagram:
    """The way between two versions; of none, its two ends."""
    ends = (end for link in path.links or () for end in (link.child, link.parent))
    return _diagram(view, title, [path.first, path.second], [path.first, *ends, path.second], path.truncated)


def columns(diagram: Diagram) -> list[Column]:
    """The versions in columns: every link leads from a column to one further right.

    A column holds one kind. Where a kind is made from a later one, as the tasks of a round from a diagnosis, a new
    turn of the pipeline begins. Within a column those stand close that are linked to the same.
    """
    turns = _turns(diagram)
    by_column: dict[tuple[int, int, str], list[str]] = defaultdict(list)
    for version, kind in sorted(diagram.kinds.items()):
        by_column[turns[version], _rank(kind), kind].append(version)
    found = [Column(kind, turn, versions) for (turn, _, kind), versions in sorted(by_column.items())]
    _untangle(found, diagram.links)
    return found


def rows_of(diagram: Diagram) -> int:
    """How many versions to put under each other, so that the whole fills a window: boxes are wide and low."""
    return max(_FEWEST_ROWS, math.ceil(2.4 * math.sqrt(len(diagram.kinds))))


def mermaid(diagram: Diagram) -> str:
    """The diagram as a Mermaid flow chart, what was made first on the left."""
    number = {version: place for place, version in enumerate(diagram.kinds)}
    lines = ["flowchart LR"]
    if diagram.truncated:
        lines.append("  %% there is more than is drawn")
    for version, kind in diagram.kinds.items():
        shape = '(["{}"])' if version in diagram.focus else '["{}"]'
        lines.append(f"  v{number[version]}{shape.format(f'{_quoted(kind)}<br/>{_quoted(version)}')}")
    lines += [f'  v{number[link.parent]} -->|"{_quoted(link.role)}"| v{number[link.child]}' for link in diagram.links]
    return "\n".join(lines)


def short(version: str, length: int = 26) -> str:
    """The artifact of a version in so many characters; its end tells it apart better than its start."""
    name = artifact_id_of(VersionId(version)) or version
    return name if len(name) <= length else f"…{name[1 - length :]}"


def _diagram(view: View, title: str, focus: Iterable[str], found: Iterable[str], truncated: bool) -> Diagram:
    graph = view.graph
    kinds = {version: graph.kind(version) for version in dict.fromkeys(found)}
    return Diagram(
        title=title, focus=tuple(dict.fromkeys(focus)), kinds=kinds, links=tuple(graph.links(kinds)),
        truncated=truncated, as_of=view.tables.version(),
    )  # fmt: skip


def _turns(diagram: Diagram) -> dict[str, int]:
    """The turn of the pipeline in which each version stands: one more than a parent's of the same or a later kind."""
    parents: dict[str, list[str]] = defaultdict(list)
    children: dict[str, list[str]] = defaultdict(list)
    for link in diagram.links:
        parents[link.child].append(link.parent)
        children[link.parent].append(link.child)
    open_ = {version: len(parents[version]) for version in diagram.kinds}
    ready = [version for version, count in open_.items() if not count]
    turns: dict[str, int] = {}
    rank = {version: _rank(kind) for version, kind in diagram.kinds.items()}
    while ready:
        version = ready.pop()
        turns[version] = max((turns[p] + (rank[p] >= rank[version]) for p in parents[version]), default=0)
        for child in children[version]:
            open_[child] -= 1
            if not open_[child]:
                ready.append(child)
    # What was made again from what had been made from it goes round in a circle, and has no place of its own.
    return {version: turns.get(version, 0) for version in diagram.kinds}


def _rank(kind: str) -> int:
    return ORDER.index(kind) if kind in ORDER else len(ORDER)


def _untangle(found: Sequence[Column], links: Iterable[Link]) -> None:
    """Order each column by where the neighbours of its versions stand, to and fro."""
    near: dict[str, list[str]] = defaultdict(list)
    for link in links:
        near[link.child].append(link.parent)
        near[link.parent].append(link.child)
    place = {v: row / len(column.versions) for column in found for row, v in enumerate(column.versions)}
    for sweep in range(_SWEEPS):
        for column in found if sweep % 2 == 0 else reversed(found):
            middle = {
                v: sum(place[n] for n in near[v]) / len(near[v]) if near[v] else place[v] for v in column.versions
            }
            column.versions.sort(key=lambda version: (middle[version], version))
            place |= {version: row / len(column.versions) for row, version in enumerate(column.versions)}


def _quoted(text: str) -> str:
    """`text` within the quotes of a Mermaid label: it has character codes of its own, between ``#`` and ``;``."""
    plain = " ".join(text.split())
    return "".join(c if c.isalnum() or c in " @/_-.,:…" else f"#{ord(c)};" for c in plain)
