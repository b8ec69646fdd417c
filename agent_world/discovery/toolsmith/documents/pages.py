"""Pages of prose: one section at a time, and notes at the end."""

from __future__ import annotations

from pathlib import PurePosixPath
from random import Random

from agent_world.discovery.toolsmith.answers import documents as answers
from agent_world.discovery.toolsmith.contract import Out, Param, Result, make_tool
from agent_world.discovery.toolsmith.documents.notes import MARKS, note_draft
from agent_world.discovery.toolsmith.drafts import Draft, TestSheet
from agent_world.discovery.toolsmith.view import View
from agent_world.discovery.toolsmith.words import snake
from agent_world.discovery.toolsmith.workflows.flow import render
from agent_world.environments.model import Document, Meaning

_MOST, _TITLE = 12, 40

HTML = '''
from html.parser import HTMLParser

DOCUMENT = "$path"
BLOCKS = set("p dt dd dl li ul ol br pre tr td th table div h1 h2 h4 hr".split())


class _Sections(HTMLParser):
    """Collects the text below each heading of the third level."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[str, str] = {}
        self._title = ""
        self._in_heading = False

    def handle_starttag(self, tag, attrs) -> None:
        if tag == "h3":
            self._title, self._in_heading = "", True
        elif tag in BLOCKS:
            self.handle_data(" ")

    def handle_endtag(self, tag) -> None:
        if tag == "h3":
            self._title, self._in_heading = " ".join(self._title.split()), False
            self.texts.setdefault(self._title, "")
        elif tag in BLOCKS:
            self.handle_data(" ")

    def handle_data(self, data) -> None:
        if self._in_heading:
            self._title += data
        elif self._title:
            self.texts[self._title] += data


def $tool(world, *, section: str) -> dict:
    """One section of $title."""
    parser = _Sections()
    parser.feed(world.read_document(DOCUMENT))
    parser.close()
    words = parser.texts[section].split()
    return {"section": section, "words": len(words), "text": " ".join(words)[:$shown]}
'''

MARKDOWN = '''
DOCUMENT = "$path"


def $tool(world, *, section: str) -> dict:
    """One section of $title."""
    words, inside = [], False
    for line in world.read_document(DOCUMENT).splitlines():
        marks, space, title = line.partition(" ")
        if space and marks and set(marks) == {"#"}:
            inside = " ".join(title.split()) == section
        elif inside:
            words += line.split()
    return {"section": section, "words": len(words), "text": " ".join(words)[:$shown]}
'''


def page_drafts(view: View, document: Document, data: bytes, rng: Random) -> list[Draft]:
    """A tool that reads a section, where the page has sections, and one that appends a note."""
    if document.format not in MARKS:
        return []
    text = data.decode()
    stem = snake(PurePosixPath(document.path).stem)
    title = f"the page {document.title}"
    drafts = [note_draft(view, document, text, f"annotate_{stem}_page", title)]
    if document.format in {"html", "md"}:
        reader = _reader(view, document, text, f"read_{stem}_page", title, rng)
        drafts = [*([reader] if reader else []), *drafts]
    return drafts


def _reader(view: View, document: Document, text: str, name: str, title: str, rng: Random) -> Draft | None:
    sections = answers.sections_of(text, document.format)
    titles = [known for known, body in sections.items() if 0 < len(known) <= _TITLE and body]
    if len(titles) < 2:
        return None
    titles = titles[:_MOST]
    source = render(
        HTML if document.format == "html" else MARKDOWN,
        tool=name,
        path=document.path,
        title=title,
        shown=str(answers.SHOWN),
    )
    tool = make_tool(
        environment=view.database.database_id,
        name=name,
        pattern="document_read",
        tables=(),
        what=f"Read one section of {title}.",
        documents=[document.path],
        source=source,
        said=["what does it say", "look into"],
        params=[
            Param(
                name="section",
                kind="string",
                words="title of the section",
                enum=tuple(titles),
                meaning=Meaning(kind="filter"),
            )
        ],
        result=Result(
            fields=(
                Out(name="section", kind="string", words="title of the section", meaning=Meaning(kind="filter")),
                Out(
                    name="words",
                    kind="integer",
                    words="how many words it has",
                    minimum=0,
                    meaning=Meaning(kind="count"),
                ),
                Out(
                    name="text", kind="string", words=f"its first {answers.SHOWN} letters", meaning=Meaning(kind="text")
                ),
            )
        ),
    )
    sheet = TestSheet(name)
    longest = max(titles, key=lambda known: len(sections[known]))
    cases = [
        ("reads the first section", "typical", titles[0]),
        ("cuts a long section", "edge", longest),
        ("reads the last section", "edge", titles[-1]),
    ]
    cases += [("reads another section", "typical", known) for known in rng.sample(titles, min(2, len(titles)))]
    for said, kind, known in cases:
        sheet.gives(said, kind, {"section": known}, answers.section(sections, known))
    sheet.refuses("refuses a section that is not there", {"section": "Appendix Z"})
    sheet.refuses("asks which section", {})
    return Draft(tool=tool, tests=tuple(sheet.tests), about=document.path)
