"""What the gates of databases and rounds say no to, each planted in a database that is sound without it."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest

from agent_world.discovery import builds, complexify, mining
from agent_world.discovery.builds import Enriched, Seed, Snapshot
from agent_world.discovery.corpus import build_corpus
from agent_world.discovery.gates import check_database, check_round
from agent_world.discovery.keys import Keys, discover
from agent_world.discovery.mining import mine
from agent_world.discovery.model import Judgement, Mined, RawTable, Rejected
from agent_world.discovery.snapshot import assemble, load
from agent_world.discovery.structure import build, structure
from agent_world.environments.model import SQLITE_FILE, Document, Source
from agent_world.identity import VersionId, sha256
from tests.discovery import ferries


def table(name, text, package="ferries"):
    """A table as it is found, from CSV text."""
    header, *rows = [tuple(line.split(",")) for line in text.strip().splitlines()]
    source = Source(package=package, version="1", file=f"{name}.csv", sha256=sha256(text), licence="CC0-1.0")
    return RawTable(name=name, header=header, rows=tuple(rows), total=len(rows), source=source)


HARBOURS, SAILINGS = table("harbours", ferries.harbours()), table("sailings", ferries.sailings())
DATABASE, FILES = structure([HARBOURS, SAILINGS], database_id="ferries", theme=VersionId("t@0"))


def edited(*statements, database=DATABASE, files=FILES):
    """A database whose file was changed behind its back."""
    connection = sqlite3.connect(":memory:")
    connection.deserialize(files[SQLITE_FILE])
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    found = connection.serialize()
    connection.close()
    return database, {**files, SQLITE_FILE: found}


def retold(change):
    """A database whose description of its sailings is changed."""
    harbours, sailings = DATABASE.tables
    return replace(DATABASE, tables=(harbours, change(sailings))), FILES


def with_source(**fields):
    return retold(lambda table: replace(table, source=replace(table.source, **fields)))


def unlinked():
    keys = Keys(primary={"harbours": "harbour_code", "sailings": "sailing_code"}, links=())
    return structure([HARBOURS, SAILINGS], database_id="ferries", theme=VersionId("t@0"), keys=keys)


def with_integrity(share):
    return retold(lambda table: replace(table, foreign_keys=(replace(table.foreign_keys[0], integrity=share),)))


PLANTED = {
    "one table": ("too_few_tables", structure([HARBOURS], database_id="one", theme=VersionId("t@0"))),
    "no link": ("unrelated_tables", unlinked()),
    "rows that did not arrive": ("failed_insert", edited("DELETE FROM sailings WHERE sailing_code = 'S007'")),
    "a row that does not go in again": (
        "failed_insert",
        edited(
            "CREATE TABLE copy AS SELECT * FROM sailings", "DROP TABLE sailings",
            "ALTER TABLE copy RENAME TO sailings", "UPDATE sailings SET sailing_code = 'S001'",
        ),
    ),
    "a share nobody measured": ("integrity_not_measured", with_integrity(0.9)),
    "a value changed later": ("other_digest", edited("UPDATE harbours SET berths = 99 WHERE harbour_code = 'H01'")),
    "another digest": ("other_digest", (replace(DATABASE, digest="0" * 64), FILES)),
    "no source": ("no_provenance", retold(lambda table: replace(table, source=None))),
    "no licence": ("no_provenance", with_source(licence="")),
    "no hash": ("no_provenance", with_source(sha256="unknown")),
    "no database": ("does_not_load", (DATABASE, {SQLITE_FILE: b"no database" * 100})),
    "a table that is not there": ("does_not_load", edited("DROP TABLE harbours")),
}  # fmt: skip


def test_a_sound_database_is_accepted_with_what_was_measured():
    judgement = check_database(DATABASE, FILES)
    assert judgement.accepted
    assert (judgement.evidence["tables"], judgement.evidence["related"]) == (2, 2)
    assert judgement.evidence["second_digest"] == DATABASE.digest


@pytest.mark.parametrize(("reason", "candidate"), PLANTED.values(), ids=PLANTED)
def test_a_planted_fault_of_a_database_is_found(reason, candidate):
    judgement = check_database(*candidate)
    assert not judgement.accepted
    assert reason in judgement.reasons


def test_a_theme_may_ask_for_more_tables():
    assert check_database(DATABASE, FILES, least=3).reasons == ("too_few_tables",)


def test_a_link_that_data_breaks_is_no_fault_once_it_is_measured():
    broken = ferries.sailings().replace("H03", "X03")
    keys = discover([HARBOURS, SAILINGS])
    found = build([HARBOURS, table("sailings", broken)], keys.primary, keys.links)
    database, files = assemble(found, database_id="ferries", theme=VersionId("t@0"))
    assert 0 < database.tables[1].foreign_keys[0].integrity < 1
    assert check_database(database, files).accepted


def grown(*added, documents=(), round=1):
    """The database after a round that added these tables and documents."""
    built = [*load(DATABASE, FILES), *(item for raw in added for item in build([raw], {}, [], added_in=round))]
    document_files = {f"documents/{document.path}": b"text" for document in documents}
    return assemble(
        built, database_id="ferries", theme=DATABASE.theme, round=round, documents=documents,
        document_files=document_files,
    )  # fmt: skip


def document(source):
    return Document(path="about.md", format="md", title="About", source=source, added_in=1)


NEW = table("tides", "tide,height\n" + "\n".join(f"t{n},{n * 7 % 13}" for n in range(1, 14)), package="tides")
KNOWN = replace(NEW, source=HARBOURS.source)


@pytest.mark.parametrize(
    ("after", "reasons"),
    [
        (grown(NEW), ()),
        (grown(documents=[document(NEW.source)]), ()),
        (grown(KNOWN, documents=[document(NEW.source)]), ()),
        (grown(), ("nothing_new",)),
        (grown(KNOWN), ("known_source",)),
        (grown(documents=[document(SAILINGS.source)]), ("known_source",)),
        (grown(documents=[document(None)]), ("known_source",)),
    ],
    ids=["table", "document", "both", "nothing", "table known", "document known", "document of nowhere"],
)
def test_a_round_counts_only_if_something_comes_from_a_new_source(after, reasons):
    assert check_round(DATABASE, *after).reasons == reasons


def test_rows_that_are_equal_up_to_their_keys_count_nothing():
    numbered = [(f"P{n:02d}", *row[1:]) for n, row in enumerate(HARBOURS.rows, 50)]
    copy = replace(HARBOURS, name="ports", rows=tuple(numbered), source=NEW.source)
    [parent] = build([copy], {"ports": "harbour_code"}, [], added_in=1)
    built = [*load(DATABASE, FILES), parent]
    database, files = assemble(built, database_id="ferries", theme=DATABASE.theme, round=1)
    assert check_round(DATABASE, database, files).reasons == ("same_rows",)


def test_a_round_must_leave_a_sound_database():
    database, files = grown(NEW)
    assert check_round(DATABASE, *edited("DELETE FROM sailings", database=database, files=files)).reasons[0] == (
        "failed_insert"
    )
    assert check_round(DATABASE, database, {SQLITE_FILE: b"no"}).reasons == ("does_not_load",)


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path / "site")
    ferries.install(tmp_path / "site", {"harbours.csv": ferries.harbours(), "sailings.csv": ferries.sailings()})
    opened = build_corpus(tmp_path / "cache", [ferries.NAME], themes=ferries.BACKGROUND)
    monkeypatch.setattr(builds, "corpus", lambda: opened)
    return opened


def test_a_database_that_its_gate_refuses_is_not_what_mining_gives(corpus, monkeypatch):
    assert isinstance(mine(ferries.THEME, corpus), Mined)
    monkeypatch.setattr(mining, "check_database", lambda *_: Judgement(reasons=("no_provenance",)))
    found = mine(ferries.THEME, corpus)
    assert isinstance(found, Rejected)
    assert found.match.accepted and found.judgement.reasons == ("no_provenance",)


def test_rows_that_do_not_go_in_are_a_reason_and_no_crash(corpus, monkeypatch):
    theme = VersionId("t@0")
    found = mine(ferries.THEME, corpus, theme_version=theme)

    def refuse(*_, **__):
        raise sqlite3.IntegrityError("UNIQUE constraint failed: sailings.sailing_code")

    monkeypatch.setattr(mining, "assemble", refuse)
    assert mine(ferries.THEME, corpus).judgement.reasons == ("failed_insert",)
    monkeypatch.setattr(complexify, "complexify", refuse)
    snapshot = Snapshot(
        version=VersionId("d@0"), database=found.database, files=found.files,
        seed=Seed(version=theme, theme=ferries.THEME),
    )  # fmt: skip
    assert builds.next_round(snapshot, 1).reasons == ("failed_insert",)


def test_a_round_that_is_refused_ends_them_and_the_one_before_it_stays(corpus, monkeypatch):
    made = iter([grown(NEW), grown(NEW, round=2)])
    monkeypatch.setattr(complexify, "complexify", lambda *_: next(made))
    seed = Seed(version=DATABASE.theme, theme=ferries.THEME)
    snapshot = Snapshot(version=VersionId("d@0"), database=DATABASE, files=FILES, seed=seed)
    first, second = builds.enrich(snapshot, rounds=5)
    assert isinstance(first, Enriched)
    assert isinstance(second, Judgement) and second.reasons == ("nothing_new",)


def test_an_environment_whose_database_was_not_enriched_twice_is_refused():
    seed = Seed(version=DATABASE.theme, theme=ferries.THEME)
    snapshot = Snapshot(version=VersionId("d@0"), database=DATABASE, files=FILES, seed=seed)
    made = builds.make_tools(snapshot, seed=1, least_rounds=2).environment
    assert made.reasons == ("too_few_rounds",) and made.tools > 0
