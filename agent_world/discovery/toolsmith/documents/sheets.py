"""Sheets: small tables kept as a document, looked up by one column and corrected where the format allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from random import Random

from agent_world.discovery.documents import FORMATS, parse
from agent_world.discovery.toolsmith.answers.documents import SheetLedger
from agent_world.discovery.toolsmith.contract import Kind, Out, Param, Result, make_tool
from agent_world.discovery.toolsmith.documents.formats import READERS, WRITERS
from agent_world.discovery.toolsmith.documents.notes import MARKS, note_draft
from agent_world.discovery.toolsmith.drafts import Draft
from agent_world.discovery.toolsmith.view import View
from agent_world.discovery.toolsmith.words import article, ascii_words, listed, snake
from agent_world.discovery.toolsmith.workflows.flow import render
from agent_world.discovery.toolsmith.workflows.scenarios import Scenarios
from agent_world.discovery.words import singular
from agent_world.environments.model import Document, Json, Meaning

Entries = Sequence[Mapping[str, Json]]

READ = '''
$modules
from toolkit import Refused

DOCUMENT = "$path"


$entries


def $tool(world, *, $key: $hint) -> dict:
    """One entry of $title."""
    for entry in _entries(world.read_document(DOCUMENT)):
        if entry["$key"] == $key:
            return entry
    raise Refused("not_found", f"The sheet has no $key_words {$key}; try another one.")
'''

CORRECT = '''
$modules
from toolkit import Refused

DOCUMENT = "$path"


$entries


$writer


def $tool(world, *, $key: $hint, field: str, value: str) -> dict:
    """Set one field of one entry of $title."""
    text = world.read_document(DOCUMENT)
    entries = _entries(text)
    entry = next((entry for entry in entries if entry["$key"] == $key), None)
    if entry is None:
        raise Refused("not_found", f"The sheet has no $key_words {$key}; try another one.")
    if entry[field] == value:
        raise Refused("unchanged", f"Its {field} is {value} already; there is nothing to correct.")
    old, entry[field] = entry[field], value
    world.write_document(DOCUMENT, _written(text, entries))
    return {"$key": $key, "field": field, "old": old, "new": value}
'''


def sheet_drafts(view: View, document: Document, data: bytes, rng: Random) -> list[Draft]:
    """A look-up, and a correction where the format is easily written, else notes; nothing where it is no sheet."""
    entries = _entries(document, data)
    if entries is None:
        return []
    noun = _noun(document)
    key = _key(entries)
    name, title = f"read_{noun}_sheet", f"the sheet of {document.title}"
    correct = f"correct_{noun}_sheet"
    fields = _text_fields(entries, key)
    scenarios = Scenarios(lambda: _ledger(entries, key, name, correct))
    names = _names(document, entries, key, title)
    drafts = [_reader(view, document, entries, key, name, title, names, scenarios, rng)]
    if document.format in WRITERS and fields:
        drafts.append(_corrector(view, document, entries, key, correct, title, names, fields, scenarios, name, rng))
    elif document.format in MARKS:
        drafts.append(note_draft(view, document, data.decode(), f"annotate_{noun}_sheet", title))
    return drafts


def _reader(
    view: View,
    document: Document,
    entries: Entries,
    key: str,
    name: str,
    title: str,
    names: dict[str, str],
    scenarios: Scenarios,
    rng: Random,
) -> Draft:
    outs = [_out(view, entries, column) for column in entries[0]]
    tool = make_tool(
        environment=view.database.database_id,
        name=name,
        pattern="document_read",
        tables=(),
        documents=[document.path],
        what=f"Look one entry up in {title}, by {_say(key)}.",
        params=[_key_param(view, entries, key)],
        result=Result(fields=tuple(outs)),
        refusals=[f"{article(_say(key))} that is not in it (not_found)"],
        source=render(READ, tool=name, **names).lstrip("\n"),
        said=["according to the sheet", "listed"],
    )
    rows = list(entries)
    for said, kind, row in [
        ("reads an entry", "typical", rng.choice(rows)),
        ("reads another entry", "typical", rng.choice(rows)),
        ("reads the first", "edge", rows[0]),
        ("reads the last", "edge", rows[-1]),
    ]:
        scenarios.add(name, said, kind, (name, {key: row[key]}))
    for row in [row for row in rows if None in row.values()][:1]:
        scenarios.add(name, "keeps empty cells as null", "edge", (name, {key: row[key]}))
    for row in [row for row in rows if not all(str(value).isascii() for value in row.values())][:1]:
        scenarios.add(name, "keeps letters beyond ASCII", "edge", (name, {key: row[key]}))
    unknown = max(row[key] for row in rows) + 1 if isinstance(rows[0][key], int) else f"{rows[0][key]} Z"
    scenarios.add(name, "refuses what is not in it", "refusal", (name, {key: unknown}))
    return Draft(tool=tool, tests=tuple(scenarios.tests[name]), about=document.path)


def _corrector(
    view: View,
    document: Document,
    entries: Entries,
    key: str,
    name: str,
    title: str,
    names: dict[str, str],
    fields: Sequence[str],
    scenarios: Scenarios,
    reader: str,
    rng: Random,
) -> Draft:
    entry, other = rng.sample(list(entries), 2)
    field = fields[0]
    words = f"which field to set ({listed((_say(known) for known in fields), 'or')})"
    plain = Meaning(kind="value")
    tool = make_tool(
        environment=view.database.database_id,
        name=name,
        pattern="document_update",
        writes=True,
        tables=(),
        what=f"Correct one field of one entry in {title}.",
        documents=[document.path],
        params=[
            _key_param(view, entries, key),
            Param(name="field", kind="string", words=words, enum=tuple(fields), meaning=Meaning(kind="filter")),
            Param(name="value", kind="string", words="what it has to say", meaning=Meaning(kind="text")),
        ],
        result=Result(
            fields=(
                _out(view, entries, key),
                Out(name="field", kind="string", words="field that was set", meaning=plain),
                Out(name="old", kind="string", words="what it said before", nullable=True, meaning=plain),
                Out(name="new", kind="string", words="what it says now", meaning=plain),
            )
        ),
        refusals=[f"{article(_say(key))} that is not in it (not_found)", "what it says already (unchanged)"],
        source=render(CORRECT, tool=name, **names).lstrip("\n"),
        said=["fix", "change", "set right"],
    )

    def correct(row: Mapping[str, Json], value: str, which: str = field) -> tuple[str, dict[str, Json]]:
        return name, {key: row[key], "field": which, "value": value}

    scenarios.add(name, "sets a field", "typical", correct(entry, "unknown"))
    scenarios.add(name, "shows in the sheet", "effect", correct(entry, "to be checked"), (reader, {key: entry[key]}))
    scenarios.add(
        name, "leaves other entries alone", "effect", correct(entry, "to be checked"), (reader, {key: other[key]})
    )
    scenarios.add(
        name,
        "keeps letters and signs",
        "edge",
        correct(other, "Zoë's “5 & 6”: 100 %, #1", fields[-1]),
        (reader, {key: other[key]}),
    )
    scenarios.add(name, "sets it twice", "edge", correct(entry, "one"), correct(entry, "two"))
    scenarios.add(name, "refuses what it says already", "refusal", *[correct(entry, "unknown")] * 2)
    scenarios.add(name, "refuses what is not in it", "refusal", correct({key: _missing(entries, key)}, "unknown"))
    scenarios.invalid(
        name, "refuses a field it does not have", {key: entry[key], "field": "colour_of_hair", "value": "red"}
    )
    return Draft(tool=tool, tests=tuple(scenarios.tests[name]), about=document.path)


def _entries(document: Document, data: bytes) -> Entries | None:
    """The entries of a sheet with a column that tells them apart; None when the document is none."""
    if document.format not in FORMATS:
        return None
    try:
        entries = parse(document.format, data)
    except Exception:  # a page of prose in a format that also holds sheets: whatever its reader stumbles over
        return None
    if len(entries) < 5 or len(entries[0]) < 2 or any(entry.keys() != entries[0].keys() for entry in entries):
        return None
    names_ok = all(isinstance(name, str) and name.isidentifier() for name in entries[0])
    return entries if names_ok and _key(entries) else None


def _key(entries: Entries) -> str | None:
    """The first column whose values tell the entries apart."""
    for column in entries[0]:
        values = [entry[column] for entry in entries]
        if None not in values and len(set(values)) == len(values):
            return column
    return None


def _names(document: Document, entries: Entries, key: str, title: str) -> dict[str, str]:
    modules, reader = READERS[document.format]
    more, writer = WRITERS.get(document.format, ((), ""))
    lines = "\n".join(
        [
            *(f"import {module}" for module in sorted({*modules, *more})),
            *(["from html.parser import HTMLParser"] if document.format == "html" else []),
        ]
    )
    return {
        "path": document.path,
        "key": key,
        "key_words": _say(key),
        "title": title,
        "entries": reader.strip("\n"),
        "hint": {"string": "str", "integer": "int", "number": "float"}[_kind(entries, key)[0]],
        "modules": f"{lines}\n" if lines else "",
        "writer": writer.strip("\n"),
    }


def _ledger(entries: Entries, key: str, read: str, correct: str) -> SheetLedger:
    kept = SheetLedger([dict(entry) for entry in entries], key)
    kept.operations = {
        read: lambda **a: kept.read(a[key]),
        correct: lambda **a: kept.correct(a[key], a["field"], a["value"]),
    }
    return kept


def _kind(entries: Entries, column: str) -> tuple[Kind, bool]:
    """The JSON type of a column and whether it has gaps; a mixed one is told as text and left to the gate."""
    values = [entry[column] for entry in entries if entry[column] is not None]
    nullable = len(values) < len(entries)
    for kind, types in (("integer", int), ("number", (int, float))):
        if values and all(isinstance(value, types) for value in values):
            return kind, nullable
    return "string", nullable


def _out(view: View, entries: Entries, column: str) -> Out:
    kind, nullable = _kind(entries, column)
    return Out(name=column, kind=kind, words=_say(column), meaning=_meaning(view, entries, column), nullable=nullable)


def _key_param(view: View, entries: Entries, key: str) -> Param:
    return Param(
        name=key, kind=_kind(entries, key)[0], words=f"{_say(key)} of the entry", meaning=_meaning(view, entries, key)
    )


def _meaning(view: View, entries: Entries, column: str) -> Meaning:
    """The key or label in the records that a column of the sheet repeats, where it does: numbers meet by chance."""
    values = {entry[column] for entry in entries if isinstance(entry[column], str)}
    for kind in ("key", "label"):
        for entity in view.entities:
            known = getattr(entity, kind)
            if known is not None and values and len(values & set(entity.values(known))) >= 0.8 * len(values):
                return entity.meaning(known, kind)
    return Meaning(kind="value")


def _text_fields(entries: Entries, key: str) -> list[str]:
    return [column for column in entries[0] if column != key and _kind(entries, column)[0] == "string"]


def _missing(entries: Entries, key: str) -> Json:
    sample = entries[0][key]
    return max(entry[key] for entry in entries) + 1 if isinstance(sample, int) else f"{sample} Z"


def _noun(document: Document) -> str:
    words = ascii_words(PurePosixPath(document.path).stem)
    return snake(" ".join([*words[:-1], singular(words[-1])]))


def _say(column: str) -> str:
    return column.replace("_", " ")
