from __future__ import annotations

from dataclasses import replace

import dagster as dg
import pytest

from agent_world import world
from agent_world.discovery.builds import Enlarged, Enriched, Toolbox
from agent_world.discovery.model import Judgement
from agent_world.discovery.toolsmith.proposal import ToolProposal
from agent_world.engine import Engine
from agent_world.environments.tool_gate import EnvironmentVerdict, ToolVerdict
from agent_world.identity import Digest, content_hash, version_id
from agent_world.world import save_database
from assets import enlargement
from assets.databases import snapshot_of
from assets.environments import accept, built
from assets.settings import Settings
from assets.tools import save_tools
from assets.verdicts import verdict
from tests.toy import toy_environment
from tests.toy_lake import THEME

KEY = "toy-library"
TOY = toy_environment()
SETTINGS = Settings()
SEED = {**THEME, "theme_id": "toy-theme"}
SEED_VERSION = version_id("toy-theme", content_hash("theme", SEED))
TOY_DATABASE = replace(TOY.database, theme=SEED_VERSION)
MINED = replace(TOY_DATABASE, tables=tuple(table for table in TOY.database.tables if not table.workflow))
RICHER = replace(MINED, round=SETTINGS.complexification_rounds + 1, digest=Digest("1" * 64))


def toolbox(database, *, accepted=True):
    """All tools of the toy world over `database`, which its gate lets through or not."""
    return Toolbox(
        proposal=ToolProposal(database=database, files=TOY.files, tools=TOY.tools, tests=()),
        verdicts=tuple(ToolVerdict(tool=tool, accepted=True, accuracy=1.0) for tool in TOY.tools),
        environment=EnvironmentVerdict(
            accepted=accepted,
            reasons=() if accepted else ("no_valid_test",),
            digest=database.digest,
            tools=len(TOY.tools),
            tests=1,
            rounds=0,
        ),
    )


def with_loans(database):
    """The database with the workflow table that its tools write."""
    return replace(database, tables=TOY.database.tables)


@pytest.fixture
def lake(tmp_path):
    """A lake with the toy world as it is after everything before the first round."""
    opened = world.open(tmp_path / "lake", create=True)
    with opened.begin("toy", derivation="d0") as batch:
        theme = batch.create("theme", "toy-theme", SEED)
        save_database(batch, MINED, TOY.files, [(theme, "theme")])
    source = snapshot_of(opened, KEY, through=2)
    with opened.begin("tools", KEY, derivation="d1") as batch:
        save_tools(source, toolbox(with_loans(source.database)), batch)
    (version,) = accept(dg.build_asset_context(), opened, SETTINGS, KEY, round=0)
    with opened.begin("taxonomy", derivation="d2") as batch:
        batch.observe(version, {"category": "culture"})
        batch.create("diagnosis", "diagnosis-r01", {"round": 1, "policy_version": "pi0@0"})
    return opened


def enlarge(lake, monkeypatch, enlarged):
    """Enlarge with `enlarged` as what the corpus and the toolsmith make of it."""
    monkeypatch.setattr(enlargement, "enrich_more", lambda snapshot, *, number, seed: enlarged)
    given = {"round": 1, "diagnosis": lake.resolve("diagnosis", "diagnosis-r01")}
    return enlargement.enlarge(dg.build_asset_context(), lake, Engine(1), SETTINGS, [KEY], **given)


ENRICHED = Enriched(RICHER, TOY.files, Judgement(evidence={"added": {"members": "new"}}))
FOUND = Enlarged(enriched=ENRICHED, toolbox=toolbox(with_loans(RICHER)))
REFUSED = Enlarged(enriched=ENRICHED, toolbox=toolbox(with_loans(RICHER), accepted=False))
NOTHING = Judgement(reasons=("nothing_new",))


def test_an_enriched_database_gives_a_new_version_and_the_old_one_still_resolves(lake, monkeypatch):
    before = lake.environment(KEY)
    assert enlarge(lake, monkeypatch, FOUND) == [KEY]
    after = lake.environment(KEY)
    assert after.version != before.version
    assert (after.database.round, before.database.round) == (RICHER.round, 0)
    assert lake.environment(before.version).database == before.database
    assert lake.read("tool_graph_edges", where={"environment": after.version})


def test_what_comes_before_the_round_sees_what_was_there_then(lake, monkeypatch):
    before, snapshot = lake.environment(KEY).version, snapshot_of(lake, KEY, through=2).version
    enlarge(lake, monkeypatch, FOUND)
    assert built(lake, through=0)[KEY]["version_id"] == before
    assert built(lake, through=1)[KEY]["version_id"] == lake.environment(KEY).version
    assert built(lake, through=1)[KEY]["category"] == "culture"
    assert snapshot_of(lake, KEY, through=2).version == snapshot
    assert accept(dg.build_asset_context(), lake, SETTINGS, KEY, round=0) == (before,)


def test_the_richer_database_names_the_diagnosis_that_asked_for_it(lake, monkeypatch):
    enlarge(lake, monkeypatch, FOUND)
    children = {row["child"] for row in lake.read("edges", where={"role": "diagnosis"})}
    richer = [row["version_id"] for row in lake.read("databases", where={"round": RICHER.round})]
    assert children & set(richer)


def test_what_a_later_gate_says_of_a_tool_changes_nothing_of_what_was_accepted_before(lake):
    before = lake.environment(KEY).version
    tool = lake.read("tools")[0]["version_id"]
    with lake.begin("enrichment/r01", KEY, derivation="later") as batch:
        batch.observe(tool, {"accepted": False})
        verdict(batch, "tool", "tool", tool, environment=KEY, accepted=False, reason="accuracy", round=1)
    assert accept(dg.build_asset_context(), lake, SETTINGS, KEY, round=0) == (before,)


def test_a_second_enlargement_makes_nothing_new(lake, monkeypatch):
    enlarge(lake, monkeypatch, FOUND)
    versions = lake.read("versions", columns=["version_id"])
    assert enlarge(lake, monkeypatch, FOUND) == [KEY]
    assert lake.read("versions", columns=["version_id"]) == versions


@pytest.mark.parametrize(
    ("enlarged", "gate"),
    [(NOTHING, "complexify"), (REFUSED, "environment")],
    ids=["nothing new", "refused by its gate"],
)
def test_without_a_sound_new_version_the_old_one_goes_on(lake, monkeypatch, enlarged, gate):
    before = lake.environment(KEY).version
    assert enlarge(lake, monkeypatch, enlarged) == []
    assert lake.environment(KEY).version == before
    rejected = lake.read("gate_verdicts", where={"accepted": False, "round": 1})
    assert [row["gate"] for row in rejected] == [gate]
