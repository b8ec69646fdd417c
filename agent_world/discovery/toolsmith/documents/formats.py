"""Source that reads and writes the entries of a sheet, a format each: modules to import, and the functions."""

from __future__ import annotations

JSON_READ = '''
def _entries(text: str) -> list[dict]:
    """The list that is the document's only member."""
    return next(iter(json.loads(text).values()))
'''

JSON_WRITE = '''
def _written(text: str, entries: list[dict]) -> str:
    """The document with these entries."""
    name = next(iter(json.loads(text)))
    return json.dumps({name: entries}, ensure_ascii=False, indent=1) + "\\n"
'''

CSV_READ = '''
def _entries(text: str) -> list[dict]:
    """The rows by the names of the first line; empty cells are missing values."""
    return [{name: value or None for name, value in row.items()} for row in csv.DictReader(io.StringIO(text))]
'''

CSV_WRITE = '''
def _written(text: str, entries: list[dict]) -> str:
    """The rows below their header line."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(entries[0]), lineterminator="\\n")
    writer.writeheader()
    writer.writerows(entries)
    return out.getvalue()
'''

YAML_READ = '''
def _entries(text: str) -> list[dict]:
    """The entries of a block list of flat mappings below one key."""
    entries = []
    for line in text.splitlines()[1:]:
        if line.startswith("- "):
            entries.append({})
        name, _, value = line[2:].partition(":")
        entries[-1][name] = _scalar(value.strip())
    return entries


def _scalar(text: str):
    """A plain or quoted scalar."""
    if text in ("", "~", "null"):
        return None
    if text.startswith("'"):
        return text[1:-1].replace("\'\'", "'")
    if text.startswith('"'):
        return json.loads(text)
    if re.fullmatch(r"[-+]?[0-9]+", text):
        return int(text)
    if re.fullmatch(r"[-+]?[0-9]+[.][0-9]*([eE][-+][0-9]+)?", text):
        return float(text)
    return text
'''

YAML_WRITE = '''
def _written(text: str, entries: list[dict]) -> str:
    """The document with these entries; texts are always quoted, which every reader takes."""
    lines = [text.splitlines()[0]]
    for entry in entries:
        for place, (name, value) in enumerate(entry.items()):
            lines.append(f"{'  ' if place else '- '}{name}: {json.dumps(value, ensure_ascii=False)}")
    return "\\n".join(lines) + "\\n"
'''

SQL_READ = '''
def _entries(text: str) -> list[dict]:
    """The rows of the only table that the script makes."""
    db = sqlite3.connect(":memory:")
    db.row_factory = sqlite3.Row
    db.executescript(text)
    name = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchone()["name"]
    return [dict(row) for row in db.execute(f'SELECT * FROM "{name}"')]
'''

TEX_READ = '''
ESCAPED = re.compile(r"\\\\textbackslash{}|\\\\textasciitilde{}|\\\\textasciicircum{}|\\\\([&%$#_{}])")
SIGNS = {"\\\\textbackslash{}": "\\\\", "\\\\textasciitilde{}": "~", "\\\\textasciicircum{}": "^"}


def _entries(text: str) -> list[dict]:
    """The rows of the tabular by the names of its first line; empty cells are missing values."""
    header, *rows = [
        [_plain(cell.strip()) for cell in re.split(r"(?<!\\\\)&", line.removesuffix("\\\\\\\\"))]
        for line in text.splitlines()
        if line.endswith("\\\\\\\\")
    ]
    return [{name: value or None for name, value in zip(header, row)} for row in rows]


def _plain(cell: str) -> str:
    return ESCAPED.sub(lambda found: found[1] or SIGNS[found[0]], cell)
'''

HTML_READ = '''
class _Cells(HTMLParser):
    """Collects the cells of every row."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._open = False

    def handle_starttag(self, tag, attrs) -> None:
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self._open = True

    def handle_endtag(self, tag) -> None:
        if tag in ("td", "th"):
            self._open = False

    def handle_data(self, data) -> None:
        if self._open:
            self.rows[-1][-1] += data


def _entries(text: str) -> list[dict]:
    """The rows of the table by the names of its first line; empty cells are missing values."""
    parser = _Cells()
    parser.feed(text)
    parser.close()
    header, *rows = parser.rows
    return [{name: value or None for name, value in zip(header, row)} for row in rows]
'''

READERS: dict[str, tuple[tuple[str, ...], str]] = {
    "json": (("json",), JSON_READ),
    "csv": (("csv", "io"), CSV_READ),
    "yaml": (("json", "re"), YAML_READ),
    "sql": (("sqlite3",), SQL_READ),
    "tex": (("re",), TEX_READ),
    "html": ((), HTML_READ),
}
WRITERS: dict[str, tuple[tuple[str, ...], str]] = {
    "json": (("json",), JSON_WRITE),
    "csv": (("csv", "io"), CSV_WRITE),
    "yaml": (("json",), YAML_WRITE),
}
