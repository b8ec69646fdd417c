"""A diagram of lineage as one self-contained HTML page: zoom, search, and what each version is; no outside file."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from html import escape
from importlib.resources import files as package_files
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_world.identity import VersionId
from agent_world.lake.rows import spec_of_kind
from agent_world.reporting.diagram import ORDER, Column, Diagram, columns, rows_of, short
from agent_world.reporting.page import STYLE

if TYPE_CHECKING:
    from agent_world.lake import View

_WIDTH, _HEIGHT = 206, 22
_ROW, _NEXT, _GAP = 28, 222, 330  # pixels from one box to the one below, beside it in its column, in the next column
_TOP = 46
_LONGEST = 240  # characters of one fact

_COLORS = (
    "#8a5aa8", "#2563a8", "#3f8f6b", "#7fb597", "#1c7c8c", "#b98bd0", "#c8662b", "#c9a227", "#5b6676", "#b23a48",
    "#d07a9a", "#e0a9bd",
)  # fmt: skip
_COLOR_OF_OTHERS = "#8b95a3"


class _Place(NamedTuple):
    x: int
    y: int


def lineage_page(view: View, diagram: Diagram) -> str:
    """The page. Boxes stand in the columns of `columns`; long columns are broken into several."""
    placed = columns(diagram)
    places = _places(placed, rows_of(diagram))
    number = {version: index for index, version in enumerate(places)}
    told = _facts(view, diagram)
    data = {
        "versions": [
            {"id": version, "kind": diagram.kinds[version], "focus": version in diagram.focus, "facts": told[version]}
            for version in places
        ],
        "links": [[number[link.child], number[link.parent], link.role] for link in diagram.links],
    }
    more = "; there is more than is drawn: raise --limit or --depth" if diagram.truncated else ""
    shown = f"{len(places):,} versions, {len(diagram.links):,} links, events version {diagram.as_of}{more}"
    parts = {
        "title": escape(diagram.title),
        "subtitle": escape(shown),
        "style": STYLE,
        "legend": _legend(diagram),
        "drawing": "".join(
            [*_edges(diagram, places, number), *_boxes(diagram, places, number), *_heads(placed, places)]
        ),
        "data": _embedded(data),
    }
    template = (package_files("agent_world.reporting") / "lineage_page.html").read_text("utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template)


def _places(placed: Iterable[Column], rows: int) -> dict[str, _Place]:
    """Where each box stands, in pixels."""
    places: dict[str, _Place] = {}
    x = 0
    for column in placed:
        for index, version in enumerate(column.versions):
            places[version] = _Place(x + index // rows * _NEXT, _TOP + index % rows * _ROW)
        x += (len(column.versions) - 1) // rows * _NEXT + _GAP
    return places


def _heads(placed: Iterable[Column], places: Mapping[str, _Place]) -> Iterable[str]:
    for column in placed:
        turn = f", turn {column.turn + 1}" if column.turn else ""
        text = escape(f"{column.kind or 'unknown'}: {len(column.versions):,}{turn}")
        yield f'<text class=head x="{places[column.versions[0]].x}" y="{_TOP - 18}">{text}</text>'


def _boxes(diagram: Diagram, places: Mapping[str, _Place], number: Mapping[str, int]) -> Iterable[str]:
    for version, place in places.items():
        focus = " focus" if version in diagram.focus else ""
        yield (
            f'<g class="box{focus}" data-i="{number[version]}" tabindex=0 role=button'
            f' transform="translate({place.x} {place.y})"><title>{escape(version)}</title>'
            f'<rect width="{_WIDTH}" height="{_HEIGHT}" rx=4 fill="{_color(diagram.kinds[version])}"/>'
            f"<text x=8 y=15>{escape(short(version))}</text></g>"
        )


def _edges(diagram: Diagram, places: Mapping[str, _Place], number: Mapping[str, int]) -> Iterable[str]:
    for index, link in enumerate(diagram.links):
        (x1, y1), (x2, y2) = places[link.parent], places[link.child]
        x1, y1, y2 = x1 + _WIDTH, y1 + _HEIGHT // 2, y2 + _HEIGHT // 2
        bend = max(40, (x2 - x1) // 2)
        yield (
            f'<path class=edge data-i="{index}" d="M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}">'
            f"<title>{escape(link.role)}</title></path>"
        )


def _legend(diagram: Diagram) -> str:
    counts = Counter(diagram.kinds.values())
    named = sorted(counts, key=lambda kind: (ORDER.index(kind) if kind in ORDER else len(ORDER), kind))
    return "".join(
        f'<span><i style="background:{_color(kind)}"></i>{escape(kind or "unknown")} {counts[kind]:,}</span>'
        for kind in named
    )


def _color(kind: str) -> str:
    return _COLORS[ORDER.index(kind)] if kind in ORDER else _COLOR_OF_OTHERS


def _facts(view: View, diagram: Diagram) -> dict[str, dict[str, str]]:
    """What the lake says of each version, in short: the plain columns of its row, those of its kind first."""
    by_kind: dict[str, list[str]] = defaultdict(list)
    for version, kind in diagram.kinds.items():
        by_kind[kind].append(version)
    told: dict[str, dict[str, str]] = {version: {} for version in diagram.kinds}
    for kind, versions in by_kind.items():
        if kind:
            spec = spec_of_kind(kind)
            own = [column.name for column in spec.columns if not column.json]
            names = [*own, *(name for name in spec.arrow.names if name not in {c.name for c in spec.columns})]
            for row in view.rows(spec.name, where={"version_id": versions}, columns=["version_id", *names]):
                told[VersionId(row["version_id"])] = {
                    name: _shortened(value)
                    for name, value in row.items()
                    if value is not None and name not in ("version_id", "artifact_id")
                }
    return told


def _shortened(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _embedded(data: Any) -> str:
    """JSON that may stand in a script element: nothing in it can end the element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
