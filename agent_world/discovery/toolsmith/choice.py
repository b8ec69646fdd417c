"""Which of the drafts become the tools of an environment: what workflows need first, then the most telling variety."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from agent_world.discovery.toolsmith.drafts import Draft
from agent_world.discovery.toolsmith.view import Entity, View
from agent_world.discovery.toolsmith.words import ascii_words
from agent_world.discovery.toolsmith.workflows.base import Overlay, ThemeWords, named_by

MOST_TOOLS = 24
_LEAST_READS = 6
_GUESSES = 3
_LONGEST_NAME = 48  # longer ones are hard to read, and more than 64 is refused by model providers
_WORTH = {
    "search": 1.2,
    "get": 1.0,
    "filter": 1.0,
    "children": 1.0,
    "rank": 0.95,
    "aggregate": 0.85,
    "summarise": 0.8,
    "between": 0.7,
}
_SAME_PATTERN, _SAME_ENTITY = 0.62, 0.8


def choose(
    view: View, theme: ThemeWords, overlays: Sequence[Overlay], reading: Sequence[Draft], documents: Sequence[Draft]
) -> list[Draft]:
    """The drafts to propose: reading tools, those of workflows, those of documents.

    At least a third of them write, where there are workflows. Up to three guesses come on top: the gate has its say.
    """
    written = [draft for overlay in overlays for draft in overlay.drafts] + _of_documents(documents)
    writers = sum(draft.tool.writes for draft in written)
    inspecting = len(written) - writers
    room = max(_LEAST_READS, min(MOST_TOOLS - len(written), 2 * writers - inspecting))
    reading = [draft for draft in reading if len(draft.tool.name) <= _LONGEST_NAME]
    sure = [draft for draft in reading if not draft.unsure]
    chosen = _needed(view, overlays, sure)[:room]
    said = {word for noun in (*theme.nouns, theme.title) for word in ascii_words(noun)}
    weights = {entity.name: entity_weight(view, entity, theme) for entity in view.entities}
    rest = [draft for draft in sure if draft not in chosen]
    while rest and len(chosen) < room:
        patterns = Counter(draft.tool.pattern for draft in chosen)
        entities = Counter(draft.about for draft in chosen)

        def gain(draft: Draft, patterns: Counter[str] = patterns, entities: Counter[str] = entities) -> float:
            return (
                draft.worth
                * (1 + 0.2 * len(said & set(draft.tool.name.split("_"))))
                * _WORTH.get(draft.tool.pattern, 0.7)
                * weights.get(draft.about, 1.0)
                * _SAME_PATTERN ** patterns[draft.tool.pattern]
                * _SAME_ENTITY ** entities[draft.about]
            )

        best = max(rest, key=gain)
        chosen.append(best)
        rest.remove(best)
    guesses = [draft for draft in reading if draft.unsure]
    chosen += sorted(guesses, key=lambda draft: -draft.worth * weights.get(draft.about, 1.0))[:_GUESSES]
    order = {id(draft): place for place, draft in enumerate(reading)}
    return [*sorted(chosen, key=lambda draft: order[id(draft)]), *written]


def entity_weight(view: View, entity: Entity, theme: ThemeWords) -> float:
    """How central an entity is: its links, its columns, its rows, and whether the theme names it."""
    links = len(entity.links) + len(view.children(entity))
    return (
        0.5
        + 0.15 * min(links, 4)
        + 0.04 * min(len(entity.table.columns), 10)
        + 0.2 * bool(entity.label)
        + 0.1 * (len(entity.rows) >= 50)
        + 0.4 * named_by(theme, entity)
    )


def _of_documents(documents: Sequence[Draft]) -> list[Draft]:
    """A reading tool for each document (a writing one where it has none), and one writing tool in all."""
    chosen: list[Draft] = []
    for path in dict.fromkeys(draft.about for draft in documents):
        own = [draft for draft in documents if draft.about == path]
        chosen.append(next((draft for draft in own if not draft.tool.writes), own[0]))
    if not any(draft.tool.writes for draft in chosen):
        writing = [draft for draft in documents if draft.tool.writes]
        chosen += sorted(writing, key=lambda draft: draft.tool.pattern != "document_update")[:1]
    return chosen


def _needed(view: View, overlays: Sequence[Overlay], reading: Sequence[Draft]) -> list[Draft]:
    """Drafts without which an addition of a later round would lie idle, then those that workflows cannot do without."""
    entities = dict.fromkeys(entity for overlay in overlays for entity in overlay.entities)
    finders = [draft for entity in entities for draft in _finders(entity, reading)]
    added = [table.name for table in view.database.tables if table.workflow is None and table.added_in > 0]
    using: list[Draft] = []
    for table in added:
        if not any(table in draft.tool.tables for draft in (*using, *finders)):
            best = sorted(
                reading, key=lambda draft: -_WORTH.get(draft.tool.pattern, 0.7) * (table in draft.tool.tables)
            )
            using += [draft for draft in best[:1] if table in draft.tool.tables]
    return [*using, *finders]


def _finders(entity: str, reading: Sequence[Draft]) -> list[Draft]:
    """How the keys of an entity are found: by name where it has one, else by a list; and how one is read."""
    own = [draft for draft in reading if draft.about == entity]
    by_pattern = {draft.tool.pattern: draft for draft in reversed(own)}
    finder = next((by_pattern[p] for p in ("search", "filter", "children", "rank", "between") if p in by_pattern), None)
    return [draft for draft in (finder, by_pattern.get("get")) if draft is not None]
