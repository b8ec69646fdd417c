"""What becomes of sources: read at some time, faulty here and there, changed between two minings."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime

import dagster as dg
import pytest

from agent_world import world
from agent_world.codec import encode
from agent_world.discovery import builds, corpus_writer
from agent_world.discovery.corpus import build_corpus
from agent_world.discovery.faults import fault
from agent_world.discovery.mining import environment_key
from agent_world.environments.model import SQLITE_FILE
from agent_world.identity import sha256
from agent_world.lake.lineage import downstream
from agent_world.lake.replay import replay
from assets import databases, environments, mining, tools
from assets.partitions import environments as partitions
from assets.resources import EngineResource, LakeResource, RunResource
from assets.settings import Settings
from assets.tasks import order_for, produce_all
from tests.discovery import ferries

KEY = environment_key(ferries.THEME)
WHOLE = {"harbours.csv": ferries.harbours(), "sailings.csv": ferries.sailings()}
CHANGED = WHOLE | {"harbours.csv": ferries.harbours(berths=9)}
RAGGED = WHOLE | {"harbours.csv": ferries.harbours(ragged=True)}
MISSING = "no-such-package"


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder on the path that holds the package."""
    folder = tmp_path / "site"
    monkeypatch.syspath_prepend(folder)
    ferries.install(folder, WHOLE)
    return folder


@pytest.fixture
def lake(tmp_path):
    return lake_at(tmp_path / "lake")


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run stages over a corpus of the packages as they are now, read at `when` if they are read anew."""

    def run(lake, *stages, packages=(ferries.NAME,), cache="cache", when=None, seed=7):
        if when:
            monkeypatch.setattr(corpus_writer, "datetime", Clock(when))
        opened = build_corpus(tmp_path / cache, packages, themes=ferries.BACKGROUND)
        monkeypatch.setattr(builds, "corpus", lambda: opened)
        for stage in (mining, databases):
            monkeypatch.setattr(stage, "corpus", lambda: opened)
        given = {
            "lake": LakeResource(uri=lake.uri), "run": RunResource.of(Settings(seed=seed, complexification_rounds=0)),
            "engine": EngineResource(workers=1),
        }  # fmt: skip
        with dg.DagsterInstance.ephemeral() as instance:
            instance.add_dynamic_partitions(partitions.name, [KEY])
            for stage in stages:
                key = None if stage is mining.mined else KEY
                dg.materialize([stage], partition_key=key, instance=instance, resources=given)

    return run


class Clock:
    """Says the time it was given."""

    def __init__(self, when):
        self.when = when

    def now(self, zone):
        return self.when.replace(tzinfo=zone)


def lake_at(path):
    """A lake with the theme of the package."""
    opened = world.open(path, create=True)
    with opened.begin("themes", derivation="d0") as batch:
        batch.create("theme", KEY, encode(ferries.THEME))
    return opened


def berths(files):
    """The berths of the first harbour in the file of a database."""
    connection = sqlite3.connect(":memory:")
    connection.deserialize(files[SQLITE_FILE])
    [(found,)] = connection.execute("SELECT berths FROM harbours WHERE harbour_code = 'H01'").fetchall()
    connection.close()
    return found


MORNING, EVENING = datetime(2026, 1, 2, 8, tzinfo=UTC), datetime(2026, 1, 2, 20, tzinfo=UTC)


def test_when_a_source_was_read_is_observed_and_no_part_of_the_version(run, lake, site, tmp_path):
    other = lake_at(tmp_path / "other")
    run(lake, mining.mined, cache="a", when=MORNING)
    run(other, mining.mined, cache="b", when=EVENING)
    [early], [late] = lake.read("databases"), other.read("databases")
    assert early["version_id"] == late["version_id"]
    assert (early["retrieved_at"], late["retrieved_at"]) == ("2026-01-02T08:00:00+00:00", "2026-01-02T20:00:00+00:00")
    assert all(table.same for table in replay(lake, verify=True))
    replay(lake)
    assert world.open(lake.uri).read("databases") == [early]


def test_a_database_that_is_mined_again_keeps_its_version_and_says_the_later_time(run, lake, site):
    run(lake, mining.mined, cache="a", when=MORNING)
    run(lake, mining.mined, cache="b", when=EVENING, seed=8)
    [row] = lake.read("databases")
    assert (row["state"], row["rev"], row["retrieved_at"]) == ("created", 1, "2026-01-02T20:00:00+00:00")
    run(lake, mining.mined, cache="a", when=MORNING, seed=9)
    assert lake.read("databases") == [row], "what the first corpus said of it was said before"


def test_faults_of_sources_reach_the_lake_once_and_the_user(run, lake, site, capsys):
    ferries.install(site, RAGGED)
    for seed in (7, 8):
        run(lake, mining.mined, packages=[ferries.NAME, MISSING], seed=seed)
    ragged, missing = sorted(lake.read("quarantine"), key=lambda row: row["item"])
    assert (ragged["stage"], ragged["item"], ragged["reason"]) == (
        "corpus", "ferry-lines:ferry_lines/harbours.csv", "ragged_row",
    )  # fmt: skip
    assert ragged["detail"].startswith("row 17 has 4 cells, the header has 3; correct the row")
    assert lake.blobs.read(ragged["raw_blob"]) == b"H99,Nowhere,2,too many"
    assert (missing["item"], missing["reason"]) == (MISSING, "package_unreadable")
    assert "it is not installed; run `make install`" in missing["detail"]
    told = capsys.readouterr().err.splitlines()
    for row in (ragged, missing):
        assert sum(f"mined          {row['item']}: {row['detail']}" in line for line in told) == 2, "once a run"
    assert len(lake.read("databases")) == 1, "what is whole goes on"


def test_many_faults_are_counted_and_not_all_told(lake, capsys):
    faults = [fault("corpus", f"ferries:{n}.csv", "empty", "the file has no rows", b"") for n in range(8)]
    mining.keep_faults(dg.build_asset_context(), lake, Settings(), faults)
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 6
    assert told[-1].startswith("  mined          3 more of 8 faults: agent-world sql ")
    assert len(lake.read("quarantine")) == 8


def test_nothing_is_mined_again_while_no_source_changes(run, lake, site):
    run(lake, mining.mined)
    versions = lake.read("versions", columns=["version_id"])
    run(lake, mining.mined)
    assert lake.read("versions", columns=["version_id"]) == versions


@pytest.mark.parametrize("version", ["1.0", "1.1"], ids=["a file was edited", "a new release"])
def test_a_changed_source_gives_a_new_version_that_says_so(run, lake, site, version):
    run(lake, mining.mined)
    ferries.install(site, CHANGED, version=version)
    run(lake, mining.mined)
    before, after = lake.read("databases")
    assert (before["state"], after["state"]) == ("superseded", "created")
    assert [berths(lake.files(row["version_id"])) for row in (before, after)] == [3, 9]
    sources = [{t["name"]: t["source"] for t in row["tables"]}["harbours"] for row in (before, after)]
    assert [source["sha256"] for source in sources] == [
        sha256(files["harbours.csv"]) for files in (WHOLE, CHANGED)
    ]  # fmt: skip
    assert sources[1]["version"] == version


def test_all_that_hung_on_the_old_version_still_resolves(run, lake, site):
    stages = (mining.mined, databases.databases, tools.tools, environments.accepted_environments)
    run(lake, *stages)
    before = lake.environment(KEY)
    order = order_for(lake, Settings(), KEY, count=1, purpose="general")
    with EngineResource(workers=1).engine as engine:
        produce_all(dg.build_asset_context(), lake, engine, Settings(), "tasks/general", [order])
    [task] = [row["version_id"] for row in lake.read("tasks") if row["accepted"]]
    played = [row["version_id"] for row in lake.read("trajectories")]

    ferries.install(site, CHANGED)
    run(lake, *stages)
    fresh = world.open(lake.uri)
    assert fresh.environment(KEY).version != before.version
    assert fresh.environment(KEY).database_version != before.database_version
    assert (berths(fresh.environment(KEY).files), berths(fresh.environment(before.version).files)) == (9, 3)
    assert fresh.environment(before.version) == before
    bound = fresh.task(task)
    assert bound.environment == before
    with bound.environment.session(bound.task.seed) as session:
        assert all(session.call(call.tool, call.arguments).status == "ok" for call in bound.task.plan)
    assert {fresh.trajectory(version).task for version in played} == {task}
    mined = fresh.read("databases", where={"state": "superseded"})[0]["version_id"]
    hung = {hop.version_id for hop in downstream(fresh, mined).hops}
    assert {before.database_version, before.version, *before.tool_versions, task, *played} <= hung
