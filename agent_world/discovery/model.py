"""What discovery passes around: themes, raw tables as they were found, and items set aside with a reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agent_world.environments.model import Database, Source
from agent_world.identity import Digest, sha256, slug

ThemeSource = Literal["M1", "M2", "M3"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """A seed topic with its source document (method.md 1): an MCP server, a tool documentation or a PRD.

    `tools` are definitions as found: name, description, input_schema (and output_schema where one was given), `$ref`
    kept. `nouns` and `verbs` are the entity words and the non-CRUD action words of the document. `sha256` is of the
    source document.
    """

    theme_id: str
    source: ThemeSource
    origin: str
    title: str
    description: str
    tools: tuple[Mapping[str, Any], ...]
    nouns: tuple[str, ...]
    verbs: tuple[str, ...]
    licence: str
    sha256: Digest


def environment_key(theme: Theme) -> str:
    """The key of everything made from `theme`: a slug of its title for people, a hash of its id against collisions."""
    return f"{slug(theme.title) or 'theme'}-{sha256(theme.theme_id)[:6]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined:
    """An item that could not be used, with its raw bytes: `reason` is typed, `detail` says where and why."""

    stage: str
    item: str
    reason: str
    detail: str
    raw: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class RawTable:
    """A table as a source file holds it: every cell is text or null, nothing is typed yet.

    `total` is the number of rows in the source; `rows` may be an evenly spaced sample of them. `declared_key` and
    `declared_links` (column, parent table, parent column) come from the source's own schema, where it has one.
    """

    name: str
    header: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    total: int
    source: Source
    declared_key: tuple[str, ...] = ()
    declared_links: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusDocument:
    """One searchable document: its stems by field, for relevance.

    `kind` "tables" is a group of linked tables, "page" a page of documentation.
    """

    document_id: int
    kind: Literal["tables", "page"]
    package: str
    title: str
    fields: Mapping[str, frozenset[str]]
    table_names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A search result; a higher score is better."""

    document: CorpusDocument
    score: float


Reason = Literal[
    "no_data", "weak_evidence",
    "too_few_tables", "unrelated_tables", "does_not_load", "failed_insert", "integrity_not_measured", "other_digest",
    "no_provenance",
    "nothing_new", "known_source", "same_rows",
]  # fmt: skip
"""Why search, the gate of databases or that of complexification rounds says no (`mining.py`, `gates.py`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a gate says of a candidate: why it is refused, if it is, and what the gate saw."""

    reasons: tuple[Reason, ...] = ()
    evidence: Mapping[str, Any] = field(default_factory=dict)

    @property
    def accepted(self) -> bool:
        """Whether the gate has nothing against it."""
        return not self.reasons


@dataclass(frozen=True, slots=True, kw_only=True)
class Mined:
    """What mining made of a theme: a database with its files.

    `match` says why it got this data, `judgement` is the word of the gate of databases.
    """

    database: Database
    files: Mapping[str, bytes]
    match: Judgement
    judgement: Judgement


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """Why a theme gets no database: `match` found no convincing data, or the gate refused what was made of it.

    `judgement` is set exactly when there was convincing data.
    """

    match: Judgement
    judgement: Judgement | None = None
