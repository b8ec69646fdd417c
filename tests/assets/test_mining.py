from __future__ import annotations

from dataclasses import replace

import pytest

from agent_world import world
from agent_world.discovery.builds import Seed
from agent_world.discovery.model import Judgement, Mined, Rejected
from assets.mining import _save, choose
from tests.toy import toy_environment
from tests.toy_lake import THEME

TOY = toy_environment()
FOUND, BEST, NEXT = {"score": 0.51}, {"score": 0.2}, {"score": 0.1}
MATCH = Judgement(evidence={"decided_on": FOUND, "candidates": [NEXT, FOUND]})
WEAK = Judgement(reasons=("weak_evidence",), evidence={"candidates": [BEST, NEXT]})
NONE = Judgement(reasons=("no_data",), evidence={"candidates": []})
UNTRACED = Judgement(reasons=("too_few_tables", "no_provenance"), evidence={"tried": []})
MINED = Mined(
    database=TOY.database, files=TOY.files, match=MATCH, judgement=Judgement(evidence={"tables": 4}),
)  # fmt: skip


def saved(tmp_path, found):
    """A lake that holds what mining said of a theme."""
    lake = world.open(tmp_path / "lake", create=True)
    with lake.begin("themes", derivation="d0") as batch:
        theme = batch.create("theme", "toy-theme", {**THEME, "theme_id": "toy-theme"})
    if isinstance(found, Mined):
        found = replace(found, database=replace(found.database, theme=theme))
    with lake.begin("mined", "toy", derivation="d1") as batch:
        _save(Seed(version=theme, theme=None), found, batch)
    return lake


@pytest.mark.parametrize(
    ("verdict", "score", "found"),
    [("matched", 0.51, MINED), ("rejected", 0.2, Rejected(match=WEAK)), ("rejected", None, Rejected(match=NONE))],
)
def test_the_score_that_decided_stands_beside_the_verdict(tmp_path, verdict, score, found):
    [row] = saved(tmp_path, found).read("themes")
    assert (row["verdict"], row["match_score"]) == (verdict, score)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (MINED, [("match", None), ("database", None)]),
        (Rejected(match=WEAK), [("match", "weak_evidence")]),
        (Rejected(match=MATCH, judgement=UNTRACED), [("match", None), ("database", "too_few_tables, no_provenance")]),
    ],
    ids=["a database", "no data", "a database that its gate refuses"],
)
def test_each_gate_that_a_theme_comes_to_has_its_word(tmp_path, found, said):
    lake = saved(tmp_path, found)
    rows = lake.read("gate_verdicts")
    assert [(row["gate"], row["reason"]) for row in rows] == said
    assert all(row["accepted"] == (row["reason"] is None) for row in rows)
    assert len(lake.read("databases")) == isinstance(found, Mined)


def test_a_theme_whose_database_is_refused_is_not_chosen_and_its_neighbour_is(tmp_path):
    lake = saved(tmp_path, Rejected(match=MATCH, judgement=UNTRACED))
    with lake.begin("themes", "more", derivation="d2") as batch:
        other = batch.create("theme", "other-theme", {**THEME, "theme_id": "other-theme"})
    with lake.begin("mined", "other", derivation="d3") as batch:
        database = replace(MINED.database, theme=other, database_id="other")
        _save(Seed(version=other, theme=None), replace(MINED, database=database), batch)
    assert choose(lake, 5) == ["other-theme"]
