from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from agent_world.discovery.themes.botocore import BotocoreConnector
from agent_world.discovery.themes.documents import Draft, ThemeDocument
from agent_world.discovery.themes.pool import ThemeSources
from agent_world.discovery.themes.prd_markdown import PrdConnector
from agent_world.discovery.themes.selection import (
    collect_themes,
    list_documents,
    outlook_of,
    select_themes,
    without_near_duplicates,
)


class Fixed(PrdConnector):
    """A connector over documents at hand."""

    def __init__(self, *documents: ThemeDocument) -> None:
        super().__init__()
        self._documents = documents

    def documents(self):
        return iter(self._documents)


@pytest.fixture(scope="module")
def connectors():
    return [PrdConnector(), BotocoreConnector()]


@pytest.fixture(scope="module")
def listed(connectors):
    return list_documents(connectors)[0]


@pytest.fixture(scope="module")
def outlook(connectors, listed, corpus):
    return outlook_of(connectors, listed, corpus)


def test_the_choice_depends_on_the_seed_and_on_nothing_else(listed, outlook):
    first = select_themes(listed, 40, 7, outlook)
    assert first == select_themes(listed, 40, 7, outlook)
    assert first != select_themes(listed, 40, 8, outlook)
    assert len(first) == len(set(first)) == 40


def test_requirement_documents_always_enter_and_the_rest_is_mostly_without_data(listed, outlook):
    chosen = select_themes(listed, 60, 7, outlook)
    source = {item.origin: item.source for item in listed}
    assert Counter(source[origin] for origin in chosen) == {"M3": 6, "M2": 54}
    assert sum(origin not in outlook for origin in chosen) >= 20


def test_the_outlook_is_read_back_on_a_second_call(connectors, listed, corpus, outlook):
    assert outlook_of([], listed, corpus) == outlook, "what is kept needs no document"


def test_equal_documents_are_set_aside_and_name_the_original(prds):
    first = prds["airport-delay-desk"].document
    copy = replace(first, origin="prd:copy")
    kept, faults = list_documents([Fixed(first, copy)])
    assert [item.origin for item in kept] == [first.origin]
    assert (faults[0].item, faults[0].reason) == ("prd:copy", "duplicate_theme")
    assert first.origin in faults[0].detail and faults[0].raw


def test_documents_of_the_same_words_are_set_aside(prds):
    first, other = prds["airport-delay-desk"], prds["clinic-coding-desk"]
    document = replace(first.document, origin="prd:copy", data=first.document.data + b"\n")
    copy: Draft = replace(first, document=document)
    kept, faults = without_near_duplicates([first, copy, other])
    assert kept == [first, other]
    assert [fault.item for fault in faults] == ["prd:copy"]


def test_of_two_documents_with_one_name_the_later_is_set_aside(prds):
    first, other = prds["airport-delay-desk"], prds["clinic-coding-desk"]
    namesake = replace(other, document=replace(other.document, origin=first.document.origin))
    kept, faults = without_near_duplicates([first, namesake])
    assert kept == [first]
    assert [(fault.item, fault.reason) for fault in faults] == [(first.document.origin, "duplicate_theme")]


def test_sources_that_are_missing_are_left_out(corpus, tmp_path):
    sources = ThemeSources(mcp=tmp_path, openapi=(), packages=False)
    found = collect_themes(7, 10, corpus=corpus, sources=sources)
    assert {theme.source for theme in found.themes} == {"M3"}
    assert len(found.themes) == 6


def test_a_broken_document_among_the_chosen_is_quarantined_and_the_others_stay(corpus, tmp_path, prds):
    (tmp_path / "good.md").write_bytes(prds["record-shop-counter"].document.data)
    (tmp_path / "bad.md").write_text("nothing")
    sources = ThemeSources(mcp=None, openapi=(), packages=False, prds=(tmp_path,))
    found = collect_themes(7, 10, corpus=corpus, sources=sources)
    assert [theme.theme_id for theme in found.themes] == ["prd:good"]
    assert [(item.item, item.reason) for item in found.quarantined] == [("prd:bad", "not_a_prd")]
