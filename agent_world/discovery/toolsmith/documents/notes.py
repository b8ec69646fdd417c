"""Notes appended to documents whose entries nobody may change."""

from __future__ import annotations

from agent_world.discovery.toolsmith.answers.documents import NoteLedger
from agent_world.discovery.toolsmith.contract import Out, Param, Result, make_tool
from agent_world.discovery.toolsmith.drafts import Draft
from agent_world.discovery.toolsmith.view import View
from agent_world.discovery.toolsmith.workflows.flow import render
from agent_world.discovery.toolsmith.workflows.scenarios import Scenarios
from agent_world.environments.model import Document, Meaning

MARKS = {
    "md": ("> Note: ", ""),
    "txt": ("Note: ", ""),
    "tex": ("% note: ", ""),
    "sql": ("-- note: ", ""),
    "html": ('<p class="note">', "</p>"),
}

APPEND = '''
$modules
from toolkit import Refused

DOCUMENT = "$path"


def $tool(world, *, note: str) -> dict:
    """Append a note to $title."""
    text = world.read_document(DOCUMENT)
    line = $line
    if line in text.splitlines():
        raise Refused("already_noted", "The document has this note already; word it differently or leave it.")
    ${write}
    return {"document": DOCUMENT, "notes": text.count($mark) + 1}
'''

_AT_END = 'world.write_document(DOCUMENT, text.rstrip("\\n") + f"\\n{line}\\n")'
_IN_BODY = """
head, end, rest = text.rpartition("</body>")
world.write_document(DOCUMENT, f"{head}\\n{line}\\n{end}{rest}")
"""


def note_draft(view: View, document: Document, text: str, name: str, title: str) -> Draft:
    """The tool that appends notes to a document."""
    start, stop = MARKS[document.format]
    in_body = document.format == "html" and "</body>" in text
    plain = 'escape(" ".join(note.split()))' if document.format == "html" else '" ".join(note.split())'
    source = render(
        APPEND,
        tool=name,
        path=document.path,
        title=title,
        mark=repr(start),
        write=_IN_BODY if in_body else _AT_END,
        modules="from html import escape\n" if document.format == "html" else "",
        line=f"{start!r} + {plain}" + (f" + {stop!r}" if stop else ""),
    ).lstrip("\n")
    tool = make_tool(
        environment=view.database.database_id,
        name=name,
        pattern="document_append",
        writes=True,
        tables=(),
        what=f"Append a note to {title}.",
        params=[Param(name="note", kind="string", words="what the note says", meaning=Meaning(kind="text"))],
        result=Result(
            fields=(
                Out(name="document", kind="string", words="path of the document", meaning=Meaning(kind="value")),
                Out(
                    name="notes",
                    kind="integer",
                    words="how many notes it has now",
                    minimum=1,
                    meaning=Meaning(kind="count"),
                ),
            )
        ),
        source=source,
        documents=[document.path],
        refusals=["a note that is there already (already_noted)"],
        said=["remark", "comment", "write down"],
    )
    before = text.count(start)
    scenarios = Scenarios(lambda: _ledger(document.path, before, name))
    scenarios.add(name, "appends a note", "typical", (name, {"note": "Checked and found right."}))
    scenarios.add(name, "counts them", "effect", (name, {"note": "First look."}), (name, {"note": "Second look."}))
    scenarios.add(
        name, "keeps letters and signs", "edge", (name, {"note": "Zoë says 5 < 6 & 100 % of Ångström's is fine"})
    )
    scenarios.add(name, "refuses the same note", "refusal", *[(name, {"note": "Checked and found right."})] * 2)
    scenarios.add(
        name, "sees through other spaces", "refusal", (name, {"note": "Two words"}), (name, {"note": "Two  words "})
    )
    scenarios.invalid(name, "refuses an empty note", {"note": ""})
    return Draft(tool=tool, tests=tuple(scenarios.tests[name]), about=document.path)


def _ledger(path: str, notes: int, name: str) -> NoteLedger:
    kept = NoteLedger(path, notes)
    kept.operations = {name: lambda **a: kept.add(a["note"])}
    return kept
