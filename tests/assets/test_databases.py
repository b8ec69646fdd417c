"""Which complexification rounds reach the lake."""

from __future__ import annotations

from dataclasses import replace

from agent_world import world
from agent_world.discovery.builds import Enriched, Seed, Snapshot
from agent_world.discovery.model import Judgement
from agent_world.identity import Digest
from agent_world.world import save_database
from assets.databases import _save
from tests.toy import toy_environment
from tests.toy_lake import THEME

TOY = toy_environment()
REFUSED = Judgement(reasons=("same_rows", "known_source"), evidence={"added": {"copies": "same_rows"}})


def test_a_round_that_is_refused_has_a_row_and_the_one_before_it_stays(tmp_path):
    lake = world.open(tmp_path / "lake", create=True)
    with lake.begin("mined", derivation="d0") as batch:
        theme = batch.create("theme", "toy-theme", {**THEME, "theme_id": "toy-theme"})
        database = replace(TOY.database, theme=theme)
        mined = save_database(batch, database, TOY.files, [(theme, "theme")])
    snapshot = Snapshot(version=mined, database=database, files=TOY.files, seed=Seed(version=theme, theme=None))
    richer = replace(database, round=1, digest=Digest("1" * 64))
    first = Enriched(richer, TOY.files, Judgement(evidence={"added": {"lists": "new"}}))
    with lake.begin("databases", derivation="d1") as batch:
        _save(snapshot, [first, REFUSED], batch)
    before, after = lake.read("databases")
    assert (before["round"], after["round"]) == (0, 1)
    rows = lake.read("gate_verdicts")
    assert [(row["gate"], row["subject"], row["accepted"], row["reason"]) for row in rows] == [
        ("complexify", after["version_id"], True, None),
        ("complexify", "toy-library/round-2", False, "same_rows, known_source"),
    ]
    assert rows[1]["evidence"] == {"added": {"copies": "same_rows"}}
