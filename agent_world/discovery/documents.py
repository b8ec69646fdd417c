"""Documents of `D`: small tables of real rows as json, csv, sql, html, tex or yaml, written and read back alike."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import sqlite3
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from typing import Literal

Format = Literal["json", "csv", "sql", "html", "tex", "yaml"]
FORMATS: tuple[Format, ...] = ("json", "csv", "sql", "html", "tex", "yaml")

Cell = str | int | float | None
Records = list[dict[str, Cell]]

_TEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}
_FROM_TEX = {text: sign for sign, text in _TEX.items()}
_TEX_TOKEN = re.compile("|".join(re.escape(text) for text in sorted(_FROM_TEX, key=len, reverse=True)))


def render(format: Format, name: str, header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> bytes:
    """The document of these rows. Same rows, same bytes."""
    return _WRITERS[format](name, tuple(header), [tuple(row) for row in rows]).encode()


def parse(format: Format, data: bytes) -> Records:
    """The records of a document that `render` wrote; csv, html and tex give every value as text, empty as None.

    Raises:
        ValueError: it is not such a document.
    """
    return _READERS[format](data.decode())


def _write_json(name: str, header: tuple[str, ...], rows: list[tuple]) -> str:
    records = [dict(zip(header, row, strict=True)) for row in rows]
    return json.dumps({name: records}, ensure_ascii=False, indent=1) + "\n"


def _write_csv(name: str, header: tuple[str, ...], rows: list[tuple]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(["" if value is None else value for value in row] for row in rows)
    return out.getvalue()


def _write_sql(name: str, header: tuple[str, ...], rows: list[tuple]) -> str:
    connection = sqlite3.connect(":memory:")
    try:
        columns = ", ".join(f'"{column}"' for column in header)
        connection.execute(f'CREATE TABLE "{name}" ({columns})')
        connection.executemany(f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(header))})', rows)
        return "\n".join(connection.iterdump()) + "\n"
    finally:
        connection.close()


def _write_html(name: str, header: tuple[str, ...], rows: list[tuple]) -> str:
    def line(tag: str, cells: Sequence[Cell]) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(_text(cell))}</{tag}>" for cell in cells) + "</tr>"

    body = "\n".join([line("th", header), *(line("td", row) for row in rows)])
    head = f"<!DOCTYPE html>\n<html><head><title>{html.escape(name)}</title></head>"
    return f"{head}<body>\n<table>\n{body}\n</table>\n</body></html>\n"


def _write_tex(name: str, header: tuple[str, ...], rows: list[tuple]) -> str:
    def line(cells: Sequence[Cell]) -> str:
        return " & ".join("".join(_TEX.get(sign, sign) for sign in _text(cell)) for cell in cells) + r" \\"

    body = "\n".join([line(header), r"\hline", *(line(row) for row in rows)])
    return f"% {name}\n\\begin{{tabular}}{{{'l' * len(header)}}}\n{body}\n\\end{{tabular}}\n"


def _write_yaml(name: str, header: tuple[str, ...], rows: list[tuple]) -> str:
    import yaml

    records = [dict(zip(header, row, strict=True)) for row in rows]
    return yaml.safe_dump({name: records}, allow_unicode=True, sort_keys=False, width=1000)


def _read_json(text: str) -> Records:
    return next(iter(json.loads(text).values()))


def _read_csv(text: str) -> Records:
    return [{name: value or None for name, value in row.items()} for row in csv.DictReader(io.StringIO(text))]


def _read_sql(text: str) -> Records:
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(text)
        name = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchone()[0]
        cursor = connection.execute(f'SELECT * FROM "{name}" ORDER BY rowid')
        header = [column[0] for column in cursor.description]
        return [dict(zip(header, row, strict=True)) for row in cursor]
    except sqlite3.Error as error:
        raise ValueError(str(error)) from error
    finally:
        connection.close()


class _TableParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"}:
            self._inside = True
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag not in {"td", "th"}

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.rows[-1][-1] += data


def _read_html(text: str) -> Records:
    parser = _TableParser()
    parser.feed(text)
    return _records(parser.rows)


def _read_tex(text: str) -> Records:
    lines = [line.removesuffix(r" \\") for line in text.splitlines() if line.endswith(r" \\")]
    return _records(
        [
            [_TEX_TOKEN.sub(lambda found: _FROM_TEX[found[0]], cell.strip()) for cell in re.split(r"(?<!\\)&", line)]
            for line in lines
        ]
    )


def _read_yaml(text: str) -> Records:
    import yaml

    return next(iter(yaml.safe_load(text).values()))


def _records(rows: list[list[str]]) -> Records:
    if not rows:
        raise ValueError("there is no table in this document")
    header, *body = rows
    return [{name: value or None for name, value in zip(header, row, strict=True)} for row in body]


def _text(cell: Cell) -> str:
    return "" if cell is None else str(cell)


_WRITERS: dict[Format, Callable[[str, tuple[str, ...], list[tuple]], str]] = {
    "json": _write_json,
    "csv": _write_csv,
    "sql": _write_sql,
    "html": _write_html,
    "tex": _write_tex,
    "yaml": _write_yaml,
}
_READERS: dict[Format, Callable[[str], Records]] = {
    "json": _read_json,
    "csv": _read_csv,
    "sql": _read_sql,
    "html": _read_html,
    "tex": _read_tex,
    "yaml": _read_yaml,
}
