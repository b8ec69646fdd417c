"""Which themes enter a run: every server and requirement document, and a spread of the tool documentation."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from agent_world.discovery.corpus import Corpus
from agent_world.discovery.mining import find_data_for, is_convincing
from agent_world.discovery.model import Quarantined, Theme
from agent_world.discovery.text import stems
from agent_world.discovery.themes.documents import Draft, theme_of
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
    """The themes of a run, those that promise data first within each source, and what was set aside."""

    themes: tuple[Theme, ...]
    quarantined: tuple[Quarantined, ...]


def collect_themes(seed: int, count: int, *, corpus: Corpus, sources: ThemeSources | None = None) -> CollectedThemes:
    """Read all sources and select about `count` themes (see `select_themes`), their tools checked one by one."""
    sources = sources or ThemeSources()
    drafts: list[Draft] = []
    quarantined: list[Quarantined] = []
    for item in drafts_of(sources.all()):
        (drafts if isinstance(item, Draft) else quarantined).append(item)
    unique, duplicates = without_duplicates(drafts)
    chosen = select_themes(unique, count, seed, outlook_of(unique, corpus))
    distinct, near = without_near_duplicates(chosen)
    themes = []
    for draft in distinct:
        reading = theme_of(draft)
        quarantined.extend(reading.faults)
        if reading.theme:
            themes.append(reading.theme)
    return CollectedThemes(themes=tuple(themes), quarantined=(*quarantined, *duplicates, *near))


def select_themes(drafts: Sequence[Draft], count: int, seed: int, outlook: dict[str, Outlook]) -> list[Draft]:
    """A deterministic choice: all M1 and M3 themes, then tool documentation, half of it where search promises data.

    At most two themes share their best data and at most two come from one publisher, so that environments differ;
    the other half is drawn by hash from the rest and is expected to be rejected by evidence.
    """
    fixed = [draft for draft in drafts if draft.document.source != "M2"]
    tools = [draft for draft in drafts if draft.document.source == "M2"]
    wanted = max(0, count - len(fixed))
    promising = list(_spread(tools, outlook, round(wanted * _PROMISING_SHARE)))
    taken = {draft.document.origin for draft in promising}
    rest = [draft for draft in tools if draft.document.origin not in taken and draft.document.origin not in outlook]
    rng("themes", seed).shuffle(rest)
    return [*fixed, *promising, *rest[: wanted - len(promising)]]


def _spread(drafts: Iterable[Draft], outlook: dict[str, Outlook], limit: int) -> Iterator[Draft]:
    promising = sorted(
        (draft for draft in drafts if draft.document.origin in outlook),
        key=lambda draft: (-outlook[draft.document.origin].score, draft.document.origin),
    )
    data: Counter[int] = Counter()
    publishers: Counter[str] = Counter()
    found = 0
    for draft in promising:
        document = outlook[draft.document.origin].document_id
        publisher = draft.document.origin.split("/")[0]
        if found < limit and data[document] < _PER_DATA and publishers[publisher] < _PER_PUBLISHER:
            data[document] += 1
            publishers[publisher] += 1
            found += 1
            yield draft


def outlook_of(drafts: Sequence[Draft], corpus: Corpus) -> dict[str, Outlook]:
    """The outlook of every draft of tool documentation that has convincing data, cached beside the corpus."""
    tools = [draft for draft in drafts if draft.document.source == "M2"]
    key = sha256(canonical_json([[draft.document.origin, sha256(draft.document.data)] for draft in tools]))
    cache = corpus.path.with_suffix(f".{key[:12]}.json")
    if cache.exists():
        return {origin: Outlook(*values) for origin, values in json.loads(cache.read_text(encoding="utf-8")).items()}
    found: dict[str, Outlook] = {}
    for draft in tools:
        evidence = next((item for item in find_data_for(draft.title, draft.text, corpus) if is_convincing(item)), None)
        if evidence:
            found[draft.document.origin] = Outlook(
                round(evidence.score, 6), evidence.document.document_id, evidence.document.package
            )
    unfinished = cache.with_suffix(".part")
    unfinished.write_text(json.dumps(found), encoding="utf-8")
    unfinished.replace(cache)
    return found


def without_duplicates(drafts: Sequence[Draft]) -> tuple[list[Draft], list[Quarantined]]:
    """Drafts with distinct documents; the later of two equal ones is set aside."""
    seen: dict[str, str] = {}
    kept, duplicates = [], []
    for draft in drafts:
        digest = sha256(draft.document.data)
        if digest in seen:
            duplicates.append(_duplicate(draft, seen[digest], "the same document"))
        else:
            seen[digest] = draft.document.origin
            kept.append(draft)
    return kept, duplicates


def without_near_duplicates(drafts: Sequence[Draft]) -> tuple[list[Draft], list[Quarantined]]:
    """Drafts that differ in at least a tenth of their words; the later of two alike is set aside."""
    kept: list[tuple[Draft, frozenset[str]]] = []
    duplicates = []
    for draft in drafts:
        words = frozenset(stems(draft.text))
        twin = next(
            (other for other, theirs in kept if len(words & theirs) >= _SAME_WORDS * max(1, len(words | theirs))), None
        )
        if twin:
            duplicates.append(_duplicate(draft, twin.document.origin, "the same words"))
        else:
            kept.append((draft, words))
    return [draft for draft, _ in kept], duplicates


def _duplicate(draft: Draft, other: str, why: str) -> Quarantined:
    return Quarantined(
        stage="themes",
        item=draft.document.origin,
        reason="duplicate_theme",
        detail=f"{why} as {other}",
        raw=draft.document.data[:65536],
    )
