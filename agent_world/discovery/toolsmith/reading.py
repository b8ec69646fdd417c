"""All reading tools that a database could carry, from which the author then chooses."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from agent_world.discovery.toolsmith.drafts import Draft
from agent_world.discovery.toolsmith.fields import group_fields, measure_fields, time_fields
from agent_world.discovery.toolsmith.reads import children, groups, guesses, lists, lookup
from agent_world.discovery.toolsmith.view import Entity, View

_MEASURES, _GROUPS = 2, 2
_TOSS_UP = 0.9  # labels that are shared less often go by search, which shows all who share one


def reading_drafts(view: View, rng: Random) -> list[Draft]:
    """Drafts in a fixed order: by entity, then by pattern."""
    return [draft for entity in view.entities for draft in _of_entity(view, entity, rng) if draft is not None]


def _of_entity(view: View, entity: Entity, rng: Random) -> Iterator[Draft | None]:
    measures, groups_of = measure_fields(entity), group_fields(entity)
    yield lookup.search(view, entity, rng)
    yield lists.identified(view, entity, rng)
    yield lookup.get(view, entity, rng)
    yield lists.filtered(view, entity, rng)
    for measure in measures[:_MEASURES]:
        yield lists.ranked(view, entity, measure, rng)
    for when in time_fields(entity)[:_MEASURES]:
        yield lists.between(view, entity, when, rng)
    for group in groups_of[:_GROUPS]:
        yield groups.summarised(view, entity, group, measures[0] if measures else None, rng)
    if measures:
        yield groups.figures(view, entity, measures[0], rng)
    if entity.label and len(set(entity.values(entity.label))) < _TOSS_UP * len(entity.rows):
        yield guesses.by_code(view, entity, entity.label, rng)
    for column in entity.with_roles("code", "text", "list"):
        if column.role == "code":
            yield guesses.by_code(view, entity, column, rng)
        elif column.role == "list":
            yield guesses.containing(view, entity, column, rng)
        else:
            yield guesses.ranked_text(view, entity, column, rng)
    linking = children.is_linking(entity)
    for link in entity.links:
        yield children.children(view, entity, link, rng)
        if linking:
            for far in entity.links:
                if far.parent.name != link.parent.name:
                    yield children.partners(view, entity, link, far, rng)
