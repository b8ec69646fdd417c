"""Workflow overlays: tables that start empty and the tools that write them under rules resting on real values."""

from __future__ import annotations

from agent_world.discovery.toolsmith.view import View
from agent_world.discovery.toolsmith.workflows import (
    assignment,
    booking,
    loan,
    order,
    review,
    subscription,
    ticket,
    watchlist,
)
from agent_world.discovery.toolsmith.workflows.base import Fit, Overlay, ThemeWords, Workflow, named_by
from agent_world.identity import rng

WORKFLOWS: tuple[Workflow, ...] = (booking, order, review, assignment, loan, ticket, subscription, watchlist)

_OVERLAYS = 2
_SAME_SUBJECT, _NAMED = 0.8, 0.9


def overlays_for(view: View, theme: ThemeWords, seed: int) -> list[Overlay]:
    """The best overlays of different kinds, two where the data carries them, rather about different entities."""
    fits = [(workflow, fit) for workflow in WORKFLOWS for fit in workflow.fits(view, theme)]
    chosen: list[tuple[Workflow, Fit]] = []
    while fits and len(chosen) < _OVERLAYS:
        subjects = {fit.subject.name for _, fit in chosen}

        def worth(pair: tuple[Workflow, Fit], taken: set[str] = subjects) -> float:
            subject = pair[1].subject
            return pair[1].score + _NAMED * named_by(theme, subject) - _SAME_SUBJECT * (subject.name in taken)

        best = max(fits, key=worth)
        chosen.append(best)
        fits = [pair for pair in fits if pair[0] is not best[0]]
    source = view.database.database_id
    return [workflow.write(view, fit, theme, rng(seed, source, workflow.NAME)) for workflow, fit in chosen]
