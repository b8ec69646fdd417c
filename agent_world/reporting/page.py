"""A self-contained HTML page: sections of prose, tables and inline SVG; no script, no outside file."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = """
:root { --ink: #1c2430; --soft: #5b6676; --line: #dfe3e9; --paper: #fff; --tint: #f5f7fa; --accent: #2563a8; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1080px; padding: 40px 28px 80px; background: var(--paper); color: var(--ink);
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 28px; margin: 0 0 4px; letter-spacing: -.01em; }
h2 { font-size: 20px; margin: 48px 0 8px; padding-top: 14px; border-top: 1px solid var(--line); }
p { margin: 8px 0; max-width: 74ch; } .note { color: var(--soft); }
nav a { display: inline-block; margin: 0 14px 6px 0; } a { color: var(--accent); }
.scroll { overflow-x: auto; margin: 14px 0; }
table { border-collapse: collapse; font-size: 13.5px; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding: 4px 0; }
th { text-align: left; background: var(--tint); font-weight: 600; }
th, td { padding: 5px 12px 5px 8px; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number { text-align: right; white-space: nowrap; }
figure { margin: 18px 0; } figure svg { max-width: 100%; height: auto; }
figcaption { color: var(--soft); font-size: 13.5px; }
code, pre { font: 13px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
pre { background: var(--tint); padding: 12px 14px; overflow-x: auto; }
"""
"""The look of every page that this package writes."""


class Page:
    """Collects sections and writes them as one page."""

    def __init__(self, title: str, subtitle: str) -> None:
        self.title, self.subtitle = title, subtitle
        self._sections: list[tuple[str, list[str]]] = []

    def section(self, title: str) -> None:
        """Start a section; what follows belongs to it."""
        self._sections.append((title, []))

    def prose(self, text: str, *, note: bool = False) -> None:
        """A paragraph of plain text."""
        self._add(f"<p{' class=note' if note else ''}>{escape(text)}</p>")

    def code(self, text: str) -> None:
        """A block of commands."""
        self._add(f"<pre>{escape(text)}</pre>")

    def table(self, rows: Sequence[Mapping[str, Any]], caption: str = "") -> None:
        """Rows as a table, columns in the order of the first row; nothing at all for no rows."""
        if not rows:
            self.prose("Nothing to show.", note=True)
            return
        columns = list(rows[0])
        head = "".join(f"<th>{escape(column)}</th>" for column in columns)
        body = "".join("<tr>" + "".join(_cell(row.get(column)) for column in columns) + "</tr>" for row in rows)
        title = f"<caption>{escape(caption)}</caption>" if caption else ""
        self._add(f"<div class=scroll><table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>")

    def figure(self, figure: Figure, caption: str) -> None:
        """A matplotlib figure as inline SVG."""
        self._add(f"<figure>{svg(figure)}<figcaption>{escape(caption)}</figcaption></figure>")

    def html(self) -> str:
        """The whole page."""
        links = "".join(f'<a href="#s{i}">{escape(title)}</a>' for i, (title, _) in enumerate(self._sections))
        body = "".join(
            f'<section id="s{i}"><h2>{escape(title)}</h2>{"".join(parts)}</section>'
            for i, (title, parts) in enumerate(self._sections)
        )
        return (
            f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{escape(self.title)}</title>"
            f'<meta name=viewport content="width=device-width"><style>{STYLE}</style></head><body>'
            f"<h1>{escape(self.title)}</h1><p class=note>{escape(self.subtitle)}</p><nav>{links}</nav>"
            f"{body}</body></html>"
        )

    def _add(self, part: str) -> None:
        self._sections[-1][1].append(part)


def svg(figure: Figure) -> str:
    """The figure as an SVG element, without the XML prologue and without a date."""
    import matplotlib.pyplot as plt

    buffer = io.StringIO()
    with plt.rc_context({"svg.hashsalt": "agent-world"}):
        figure.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def _cell(value: Any) -> str:
    if value is None:
        return "<td></td>"
    if isinstance(value, bool):
        return f"<td>{'yes' if value else 'no'}</td>"
    if isinstance(value, int):
        return f"<td class=number>{value:,}</td>"
    if isinstance(value, float):
        return f"<td class=number>{value:.3f}</td>"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return f"<td>{escape(', '.join(str(item) for item in value))}</td>"
    return f"<td>{escape(str(value))}</td>"
