"""Which themes enter a run: every server and requirement document, and a spread of the tool documentation."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from agent_world.discovery.build_once import build_once
from agent_world.discovery.corpus import Corpus
from agent_world.discovery.faults import fault
from agent_world.discovery.mining import find_data_for, is_convincing
from agent_world.discovery.model import Quarantined, Theme, ThemeSource
from agent_world.discovery.text import stems
from agent_world.discovery.themes.documents import Connector, Draft, publisher_of, theme_of
from agent_world.discovery.themes.pool import ThemeSources, drafts_of
from agent_world.identity import canonical_json, rng, sha256

_SAME_WORDS = 0.9
_PER_DATA = 2
_PER_PUBLISHER = 2
_PROMISING_SHARE = 0.5


class Outlook(NamedTuple):
    """What search says about a theme before it is mined: the score and the document of its best data."""

    score: float
    document_id: int
    package: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectedThemes:
    """The themes of a run, those that promise data first within each source, and what was set aside.

    `rejected` are documents that their gate refused, `faults` single tools of whatever document.
    """

    themes: tuple[Theme, ...]
    rejected: tuple[Quarantined, ...]
    faults: tuple[Quarantined, ...]

    @property
    def quarantined(self) -> tuple[Quarantined, ...]:
        """All that was set aside."""
        return (*self.faults, *self.rejected)


class Listed(NamedTuple):
    """A document that a source offers."""

    source: ThemeSource
    origin: str
    sha256: str


def collect_themes(seed: int, count: int, *, corpus: Corpus, sources: ThemeSources | None = None) -> CollectedThemes:
    """List all sources, select about `count` themes (see `select_themes`), and read those, each tool checked."""
    connectors = (sources or ThemeSources()).all()
    listed, duplicates = list_documents(connectors)
    chosen = select_themes(listed, count, seed, outlook_of(connectors, listed, corpus))
    drafts, unusable = _parsed(connectors, chosen)
    distinct, near = without_near_duplicates(drafts)
    readings = [theme_of(draft) for draft in distinct]
    refused = [reading.rejection for reading in readings if reading.rejection]
    return CollectedThemes(
        themes=tuple(reading.theme for reading in readings if reading.theme),
        rejected=(*duplicates, *unusable, *near, *refused),
        faults=tuple(fault for reading in readings for fault in reading.faults),
    )


def list_documents(connectors: Sequence[Connector]) -> tuple[list[Listed], list[Quarantined]]:
    """What the sources offer, in their order; the later of two equal documents is set aside."""
    seen: dict[str, str] = {}
    listed, duplicates = [], []
    for connector in connectors:
        for document in connector.documents():
            digest = sha256(document.data)
            if digest in seen:
                duplicates.append(_duplicate(document.origin, seen[digest], "the same document", document.data))
                continue
            seen[digest] = document.origin
            listed.append(Listed(document.source, document.origin, digest))
    return listed, duplicates


def select_themes(listed: Sequence[Listed], count: int, seed: int, outlook: Mapping[str, Outlook]) -> list[str]:
    """The origins of a deterministic choice: all M1 and M3 themes, then tool documentation, half of it promising.

    At most two themes share their best data and at most two come from one publisher, so that environments differ;
    the other half is drawn by hash from the rest and is expected to be rejected by evidence.
    """
    fixed = [item.origin for item in listed if item.source != "M2"]
    tools = [item.origin for item in listed if item.source == "M2"]
    wanted = max(0, count - len(fixed))
    promising = list(_spread(tools, outlook, round(wanted * _PROMISING_SHARE)))
    rest = [origin for origin in tools if origin not in outlook]
    rng("themes", seed).shuffle(rest)
    return [*fixed, *promising, *rest[: wanted - len(promising)]]


def _spread(origins: Iterable[str], outlook: Mapping[str, Outlook], limit: int) -> Iterator[str]:
    promising = sorted((origin for origin in origins if origin in outlook), key=lambda o: (-outlook[o].score, o))
    data: Counter[int] = Counter()
    publishers: Counter[str] = Counter()
    found = 0
    for origin in promising:
        document, publisher = outlook[origin].document_id, publisher_of(origin)
        if found < limit and data[document] < _PER_DATA and publishers[publisher] < _PER_PUBLISHER:
            data[document] += 1
            publishers[publisher] += 1
            found += 1
            yield origin


def outlook_of(connectors: Sequence[Connector], listed: Sequence[Listed], corpus: Corpus) -> dict[str, Outlook]:
    """The outlook of every tool documentation that has convincing data, kept beside the corpus once it is known."""
    tools = [item for item in listed if item.source == "M2"]
    cache = corpus.path.with_suffix(f".{sha256(canonical_json(tools))[:12]}.json")

    def write(unfinished: Path) -> None:
        found = _found_for(drafts_of(connectors, {item.origin for item in tools}), corpus)
        unfinished.write_text(json.dumps(found), encoding="utf-8")

    build_once(cache, write)
    return {origin: Outlook(*values) for origin, values in json.loads(cache.read_text(encoding="utf-8")).items()}


def _found_for(drafts: Iterable[Draft | Quarantined], corpus: Corpus) -> dict[str, Outlook]:
    found: dict[str, Outlook] = {}
    for draft in drafts:
        if isinstance(draft, Quarantined):
            continue
        evidence = next((item for item in find_data_for(draft.title, draft.text, corpus) if is_convincing(item)), None)
        if evidence:
            document = evidence.document
            found[draft.document.origin] = Outlook(round(evidence.score, 6), document.document_id, document.package)
    return found


def without_near_duplicates(drafts: Sequence[Draft]) -> tuple[list[Draft], list[Quarantined]]:
    """Drafts with a name of their own that differ in at least a tenth of their words.

    The later of two alike is set aside.
    """
    kept: dict[str, tuple[Draft, frozenset[str]]] = {}
    duplicates = []
    for draft in drafts:
        document, words = draft.document, frozenset(stems(draft.text))
        twin = next(
            (origin for origin, (_, theirs) in kept.items()
             if len(words & theirs) >= _SAME_WORDS * max(1, len(words | theirs))),
            None,
        )  # fmt: skip
        if document.origin in kept:
            duplicates.append(_duplicate(document.origin, document.origin, "the same name", document.data))
        elif twin:
            duplicates.append(_duplicate(document.origin, twin, "the same words", document.data))
        else:
            kept[document.origin] = draft, words
    return [draft for draft, _ in kept.values()], duplicates


def _parsed(connectors: Sequence[Connector], chosen: Sequence[str]) -> tuple[list[Draft], list[Quarantined]]:
    """The chosen documents, parsed, in the order of the choice."""
    found = list(drafts_of(connectors, set(chosen)))
    place = {origin: position for position, origin in enumerate(chosen)}
    drafts = sorted((d for d in found if isinstance(d, Draft)), key=lambda draft: place[draft.document.origin])
    return drafts, [item for item in found if isinstance(item, Quarantined)]


def _duplicate(origin: str, other: str, why: str, data: bytes) -> Quarantined:
    return fault("themes", origin, "duplicate_theme", f"{why} as {other}", data)
