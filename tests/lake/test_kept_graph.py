"""The kept graph is what the tables say; it is an old answer's cache, never an old answer."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from agent_world.lake import Lake, kept_graph, open_lake
from agent_world.lake import lineage as lin
from agent_world.lake.graph import Graph
from agent_world.lake.replay import replay


def grow(lake: Lake, start: int, count: int) -> list[str]:
    source, known = Random(start), [row["version_id"] for row in lake.read("versions", columns=["version_id"])]
    with lake.begin("grow", f"{start}", derivation="d") as batch:
        for number in range(start, start + count):
            parents = [(parent, source.choice("ab")) for parent in source.sample(known, min(3, len(known)))]
            known.append(batch.create("theme", f"t{number}", {"title": f"{number}"}, parents=parents))
    return known


def answers(lake: Lake) -> list[lin.Answer]:
    versions = [row["version_id"] for row in lake.read("versions")]
    return [ask(lake, version) for version in versions for ask in (lin.upstream, lin.downstream)]


def files(lake: Lake) -> list[Path]:
    return sorted(Path(lake.uri).glob("projections/*/lineage/*"))


def without_the_tables(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A reader that may not build the graph."""
    monkeypatch.setattr(Graph, "of", lambda *tables: pytest.fail("built from the tables"))
    return open_lake(lake.uri)


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setattr(kept_graph, "WORTH_KEEPING", 10)
    lake = open_lake(tmp_path / "lake")
    grow(lake, 0, 30)
    lake.refresh()
    return lake


def test_a_reader_takes_what_is_kept_and_the_events_behind_it(lake: Lake, monkeypatch):
    assert [file.name for file in files(lake)] == ["1-84.arrow"]
    grow(lake, 30, 3)
    with lake.begin("again", derivation="d") as batch:  # the same content, from one parent more
        batch.create("theme", "t5", {"title": "5"}, parents=[(lake.resolve("theme", "t2"), "c")])
    expected = answers(lake)
    reader = without_the_tables(lake, monkeypatch)
    assert answers(reader) == expected
    monkeypatch.undo()
    graph = reader.graph
    assert graph.links(graph.names) == Graph.of(lake.table("versions"), lake.table("edges")).links(graph.names)
    grow(lake, 40, 2)
    assert answers(reader) == answers(lake)


def test_it_is_written_anew_when_it_has_grown_by_a_quarter_and_after_a_replay(lake: Lake):
    grow(lake, 30, 2)
    lake.refresh()
    assert [file.name for file in files(lake)] == ["1-84.arrow"]
    grow(lake, 40, 6)
    lake.refresh()
    assert [file.name for file in files(lake)] == ["3-108.arrow"]
    replay(lake)
    lake.refresh()
    assert [file.name for file in files(lake)][-1] == "3-108.arrow"
    assert len({file.parent for file in files(lake)}) == 2  # gc takes the generation that is out of use
    assert answers(open_lake(lake.uri)) == answers(lake)


@pytest.mark.parametrize("damage", ["flipped", "cut", "empty", "gone"])
def test_a_damaged_one_is_no_answer(lake: Lake, damage: str):
    [file] = files(lake)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    whole = file.read_bytes()
    file.unlink()
    if damage != "gone":
        file.write_bytes({"flipped": bytes(data), "cut": whole[:-9], "empty": b""}[damage])
    assert answers(open_lake(lake.uri)) == answers(lake)


def test_a_small_lake_keeps_none(tmp_path: Path):
    lake = open_lake(tmp_path / "small")
    grow(lake, 0, 30)
    lake.refresh()
    assert files(lake) == []


def test_the_past_is_not_answered_from_the_present(lake: Lake):
    version = lake.resolve("theme", "t0")
    then = lake.events_version()
    before = lin.downstream(lake, version)
    grow(lake, 30, 20)
    lake.refresh()
    reader = open_lake(lake.uri)
    assert lin.downstream(reader.at(then), version).hops == before.hops
    assert len(lin.downstream(reader, version).hops) > len(before.hops)
