"""What the tools over documents must answer, from documents read by other means than the tools use."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

from agent_world.discovery.toolsmith.answers.ledger import Ledger, Refusal
from agent_world.environments.model import Json

_BLOCKS = "p|dt|dd|dl|li|ul|ol|br|pre|tr|td|th|table|div|h1|h2|h4|hr"
SHOWN = 200


class SheetLedger(Ledger):
    """Entries of a sheet by the value of its first column."""

    def __init__(self, entries: list[dict[str, Json]], key: str) -> None:
        super().__init__()
        self.entries: dict[Json, dict[str, Json]] = {}
        for entry in entries:
            self.entries.setdefault(entry[key], dict(entry))
        self.key = key

    def read(self, key: Json) -> dict[str, Json]:
        """One entry."""
        if key not in self.entries:
            raise Refusal("not_found")
        return dict(self.entries[key])

    def correct(self, key: Json, field: str, value: str) -> dict[str, Json]:
        """Set one field of an entry."""
        entry = self.entries.get(key)
        if entry is None:
            raise Refusal("not_found")
        if entry[field] == value:
            raise Refusal("unchanged")
        old, entry[field] = entry[field], value
        return {self.key: key, "field": field, "old": old, "new": value}


class NoteLedger(Ledger):
    """Notes at the end of a document that has `notes` of them already."""

    def __init__(self, path: str, notes: int) -> None:
        super().__init__()
        self.path, self.count, self.own = path, notes, set()

    def add(self, note: str) -> dict[str, Json]:
        """Append a note."""
        plain = " ".join(note.split())
        if plain in self.own:
            raise Refusal("already_noted")
        self.own.add(plain)
        self.count += 1
        return {"document": self.path, "notes": self.count}


def sections_of(text: str, form: str) -> dict[str, str]:
    """Titles of the sections of a page with their text in one line."""
    parts = re.split(r"<h3>(.*?)</h3>", text, flags=re.S) if form == "html" else re.split(r"(?m)^#+[ \t]+(.*)$", text)
    found: dict[str, str] = {}
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        name = _line(title, form)
        found[name] = " ".join([*found.get(name, "").split(), *_line(body, form).split()])
    return found


def section(sections: Mapping[str, str], title: str) -> dict[str, Json]:
    """One section as a tool shows it."""
    text = sections[title]
    return {"section": title, "words": len(text.split()), "text": text[:SHOWN]}


def _line(text: str, form: str) -> str:
    if form == "html":
        spaced = re.sub(rf"</?(?:{_BLOCKS})\b[^>]*>", " ", text, flags=re.I)
        text = html.unescape(re.sub(r"<[^>]*>", "", spaced))
    return " ".join(text.split())
