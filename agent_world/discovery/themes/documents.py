"""What every connector gives: raw theme documents, and what reading one of them yields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agent_world.discovery.faults import fault
from agent_world.discovery.model import Quarantined, Theme, ThemeSource
from agent_world.discovery.themes.checks import check_tools
from agent_world.errors import AgentWorldError
from agent_world.identity import sha256

_NOUN_WEIGHT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ThemeDocument:
    """A source document before it is read: `origin` says which connector and which item."""

    source: ThemeSource
    origin: str
    data: bytes
    licence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThemeReading:
    """A theme, or why the document as a whole gives none, and the tools that were set aside on the way.

    Exactly one of `theme` and `rejection` is set.
    """

    theme: Theme | None = None
    rejection: Quarantined | None = None
    faults: tuple[Quarantined, ...] = ()


class UnusableDocumentError(AgentWorldError):
    """A theme document that gives no theme; `reason` is typed."""

    def __init__(self, origin: str, reason: str, detail: str) -> None:
        super().__init__(origin, reason, detail)
        self.origin, self.reason, self.detail = origin, reason, detail

    def __str__(self) -> str:
        return f"{self.origin}: {self.reason}, {self.detail}; the other documents are not affected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A theme document as parsed: its tools are not checked yet. Enough to search with."""

    document: ThemeDocument
    title: str
    description: str
    raw_tools: tuple[Mapping[str, Any], ...]
    nouns: tuple[str, ...]
    verbs: tuple[str, ...]

    @property
    def text(self) -> str:
        """All words of the theme: title, description, nouns, names and descriptions of tools and parameters."""
        return theme_text(self.title, self.description, self.nouns, self.verbs, self.raw_tools)


class Connector(Protocol):
    """A source of themes. `documents` comes in a fixed order."""

    def documents(self) -> Iterator[ThemeDocument]:
        """Every document of the source."""
        ...

    def parse(self, document: ThemeDocument) -> Draft:
        """What a document of this connector says.

        Raises:
            UnusableDocumentError: it is not what this connector reads.
        """
        ...


def read_theme(connector: Connector, document: ThemeDocument) -> ThemeReading:
    """The theme of one document, its tools checked one by one. Never raises on bad content."""
    try:
        draft = connector.parse(document)
    except UnusableDocumentError as error:
        return ThemeReading(rejection=_fault(document, error.reason, error.detail))
    return theme_of(draft)


def theme_of(draft: Draft) -> ThemeReading:
    """The gate of themes for one parsed document: it has a title and says what it is about, and a tool is usable.

    Tools are checked one by one; a document that lists none needs none.
    """
    document = draft.document
    checked = check_tools(draft.raw_tools, document.origin)
    against = {
        "no_title": ("it has no title", not draft.title.strip()),
        "no_description": ("it does not say what it is about", not draft.description.strip()),
        "no_tools": ("none of its tools is usable", bool(draft.raw_tools) and not checked.tools),
    }
    for reason, (why, holds) in against.items():
        if holds:
            return ThemeReading(rejection=_fault(document, reason, why), faults=checked.faults)
    theme = Theme(
        theme_id=document.origin,
        source=document.source,
        origin=document.origin,
        title=draft.title,
        description=draft.description,
        tools=checked.tools,
        nouns=draft.nouns,
        verbs=draft.verbs,
        licence=document.licence,
        sha256=sha256(document.data),
    )
    return ThemeReading(theme=theme, faults=checked.faults)


def publisher_of(origin: str) -> str:
    """Who publishes the document of this origin: what stands before its path."""
    return origin.split("/")[0]


def theme_text(
    title: str, description: str, nouns: Sequence[str], verbs: Sequence[str], tools: Sequence[Mapping[str, Any]]
) -> str:
    """All words of a theme in one text."""
    parts = [title, description, *[" ".join(nouns)] * _NOUN_WEIGHT, " ".join(verbs)]
    for tool in tools:
        schema = tool.get("input_schema") or tool.get("inputSchema") or {}
        properties = schema.get("properties") if isinstance(schema, Mapping) else None
        parts.append(f"{tool.get('name', '')} {tool.get('description') or ''}")
        for name, field in properties.items() if isinstance(properties, Mapping) else ():
            parts.append(f"{name} {field.get('description') or ''}" if isinstance(field, Mapping) else name)
    return " . ".join(parts)


def _fault(document: ThemeDocument, reason: str, why: str) -> Quarantined:
    return fault("themes", document.origin, reason, why, document.data)
