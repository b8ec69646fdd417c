"""M3 themes: product requirement documents in Markdown, from a folder or a single file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from agent_world.discovery.text import plain_text
from agent_world.discovery.themes.documents import Draft, ThemeDocument, UnusableDocumentError
from agent_world.discovery.themes.vocabulary import of_prose
from agent_world.errors import BadInputError

BUNDLED = Path(__file__).parent.parent / "prds"
_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*$", re.M)
_DATA = re.compile(r"\b(data|records?|content)\b", re.I)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_MIN_WORDS = 80


class PrdConnector:
    """Every Markdown file below `path`; without one, the documents that come with the project."""

    def __init__(self, path: Path = BUNDLED, licence: str = "Apache-2.0") -> None:
        self._path, self._licence = path, licence

    def documents(self) -> Iterator[ThemeDocument]:
        """One document a file, by path.

        Raises:
            BadInputError: the path does not exist.
        """
        if not self._path.exists():
            raise BadInputError(
                str(self._path), "there are no requirement documents here", "give a Markdown file or a folder of them"
            )
        paths = [self._path] if self._path.is_file() else sorted(self._path.rglob("*.md"))
        for path in paths:
            name = path.relative_to(self._path).as_posix() if path != self._path else path.name
            yield ThemeDocument(
                source="M3", origin=f"prd:{name.removesuffix('.md')}", data=path.read_bytes(), licence=self._licence
            )

    def parse(self, document: ThemeDocument) -> Draft:
        """Title, background and the words of the whole document; a PRD has no tool definitions."""
        try:
            text = document.data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UnusableDocumentError(document.origin, "not_utf8", str(error)) from error
        headings = _HEADING.findall(text)
        prose = plain_text(_LINK.sub(r"\1", _HEADING.sub(r"\2.", text)).replace("**", ""))
        if not headings or len(prose.split()) < _MIN_WORDS:
            raise UnusableDocumentError(
                document.origin, "not_a_prd", f"{len(headings)} headings, {len(prose.split())} words"
            )
        data = " ".join(body for title, body in _sections(text) if _DATA.search(title))
        nouns, verbs = of_prose(prose, emphasis=f"{headings[0][1]} {data}")
        return Draft(
            document=document, title=headings[0][1], description=prose[:8000], raw_tools=(), nouns=nouns, verbs=verbs
        )


def _sections(text: str) -> list[tuple[str, str]]:
    """Heading and body of every section."""
    pieces = _HEADING.split(text)
    return [(pieces[position + 1], pieces[position + 2]) for position in range(1, len(pieces) - 2, 3)]
