"""How often search is right on the default corpus; the labels were given by hand, some after looking at candidates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_world.discovery.builds import corpus
from agent_world.discovery.packages import data_packages
from agent_world.discovery.themes.pool import ThemeSources
from tests.discovery.matches import evaluate_matches

LABELS = json.loads((Path(__file__).parent / "labels.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def report():
    drafts = (
        connector.parse(document)
        for connector in ThemeSources().all()
        for document in connector.documents()
        if document.origin in LABELS
    )
    return evaluate_matches(drafts, LABELS, corpus())


def test_labels_name_packages_of_the_corpus():
    assert {package for packages in LABELS.values() for package in packages} <= set(data_packages())
    assert sum(not packages for packages in LABELS.values()) >= 60


def test_the_best_candidate_is_mostly_right(report):
    assert report.themes == len(LABELS)
    assert report.top_one_precision >= 0.8


def test_what_is_accepted_is_mostly_right(report):
    assert report.accepted >= 30
    assert report.accepted_precision >= 0.7
