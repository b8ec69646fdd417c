from __future__ import annotations

from dataclasses import replace

import pytest

from agent_world import world
from agent_world.discovery.builds import Seed
from agent_world.discovery.model import Mined, Rejected
from assets.mining import _save
from tests.toy import toy_environment
from tests.toy_lake import THEME

TOY = toy_environment()
FOUND, BEST, NEXT = {"score": 0.51}, {"score": 0.2}, {"score": 0.1}


@pytest.mark.parametrize(
    ("verdict", "score", "evidence"),
    [
        ("matched", 0.51, {"decided_on": FOUND, "candidates": [NEXT, FOUND]}),
        ("rejected", 0.2, {"candidates": [BEST, NEXT]}),
        ("rejected", None, {"candidates": []}),
    ],
)
def test_the_score_that_decided_stands_beside_the_verdict(tmp_path, verdict, score, evidence):
    lake = world.open(tmp_path / "lake", create=True)
    with lake.begin("themes", derivation="d0") as batch:
        theme = batch.create("theme", "toy-theme", {**THEME, "theme_id": "toy-theme"})
    matched = Mined(database=replace(TOY.database, theme=theme), files=TOY.files, evidence=evidence)
    found = matched if verdict == "matched" else Rejected(reason="weak_evidence", evidence=evidence)
    with lake.begin("mined", "toy", derivation="d1") as batch:
        _save(Seed(version=theme, theme=None), found, batch)
    [row] = lake.read("themes")
    assert (row["verdict"], row["match_score"]) == (verdict, score)
