from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from agent_world.discovery.themes.documents import Draft
from agent_world.discovery.themes.pool import ThemeSources
from agent_world.discovery.themes.selection import (
    collect_themes,
    outlook_of,
    select_themes,
    without_duplicates,
    without_near_duplicates,
)


@pytest.fixture(scope="module")
def drafts(prds, service_drafts) -> list[Draft]:
    return [*prds.values(), *service_drafts[:120]]


def test_the_choice_depends_on_the_seed_and_on_nothing_else(drafts, corpus):
    outlook = outlook_of(drafts, corpus)
    first = [draft.document.origin for draft in select_themes(drafts, 40, 7, outlook)]
    assert first == [draft.document.origin for draft in select_themes(drafts, 40, 7, outlook)]
    assert first != [draft.document.origin for draft in select_themes(drafts, 40, 8, outlook)]
    assert len(first) == len(set(first)) == 40


def test_requirement_documents_always_enter_and_the_rest_is_mostly_without_data(drafts, corpus):
    outlook = outlook_of(drafts, corpus)
    chosen = select_themes(drafts, 60, 7, outlook)
    assert Counter(draft.document.source for draft in chosen) == {"M3": 6, "M2": 54}
    assert sum(draft.document.origin not in outlook for draft in chosen) >= 20


def test_the_outlook_is_read_back_on_a_second_call(drafts, corpus):
    assert outlook_of(drafts, corpus) == outlook_of(drafts, corpus)


def test_duplicates_are_set_aside_and_name_the_original(drafts):
    copy = replace(drafts[0], document=replace(drafts[0].document, origin="prd:copy"))
    kept, faults = without_duplicates([*drafts, copy])
    assert len(kept) == len(drafts)
    assert (faults[0].item, faults[0].reason) == ("prd:copy", "duplicate_theme")
    assert drafts[0].document.origin in faults[0].detail
    changed = replace(copy, document=replace(copy.document, data=copy.document.data + b"\n"))
    kept, faults = without_near_duplicates([drafts[0], changed, drafts[1]])
    assert [draft.document.origin for draft in kept] == [drafts[0].document.origin, drafts[1].document.origin]
    assert [fault.item for fault in faults] == ["prd:copy"]


def test_sources_that_are_missing_are_left_out(corpus, tmp_path):
    sources = ThemeSources(mcp=tmp_path, openapi=(), packages=False)
    found = collect_themes(7, 10, corpus=corpus, sources=sources)
    assert {theme.source for theme in found.themes} == {"M3"}
    assert len(found.themes) == 6
