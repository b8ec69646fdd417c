"""What the lake costs against doing the same plainly: ratios inside one run, in CPU time where not said otherwise.

``python -m benchmarks.lake [--events 1000000] [--nodes 1000000] [--commits 1000] [--only lineage] [--json FILE]``

A floor is what the same work takes without a lake, measured in the same run: compare with that, since machines differ.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import rustworkx
import zstandard

from agent_world.identity import content_hash, derivation_hash, sha256, version_id
from agent_world.lake import Lake, lineage, open_lake
from agent_world.lake.blobs import BlobWriter
from agent_world.lake.log import SCHEMA, Draft
from agent_world.lake.maintenance import compact
from agent_world.lake.replay import replay

BATCH = 50_000


class Watch:
    """CPU and wall seconds of a block."""

    cpu = wall = 0.0


@contextmanager
def watch() -> Iterator[Watch]:
    """Measure a block."""
    found = Watch()
    cpu, wall = time.process_time(), time.perf_counter()
    yield found
    found.cpu, found.wall = time.process_time() - cpu, time.perf_counter() - wall


class Measure(NamedTuple):
    """One figure, what it should be, and what the same costs plainly."""

    name: str
    value: float
    unit: str
    goal: str
    floor: float | None


MEASURES: list[Measure] = []
"""All of this run."""


def show(name: str, value: float, unit: str, goal: str, floor: float | None = None) -> None:
    """Print one measure beside its goal and its floor, and keep it."""
    MEASURES.append(Measure(name, value, unit, goal, floor))
    least = "" if floor is None else f"  floor {floor:.3f}"
    print(f"{name:<66} {value:10.3f} {unit:<8} goal {goal}{least}", flush=True)


def made_events(count: int, version: int) -> pa.Table:
    """`count` events of 700 bytes, as a batch of theme versions makes them."""
    source = random.Random(version)
    batch = sha256(f"batch {version}")
    rows: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}
    now = datetime.now(UTC)
    for place in range(count - 1):
        payload = {"title": f"theme {place} of {version}", "description": source.randbytes(100).hex(), "source": "M2"}
        text = f'{{"description":"{payload["description"]}","source":"M2","title":"{payload["title"]}"}}'
        artifact = f"theme-{source.randrange(10**6):06}"
        content = content_hash("theme", payload)
        derivation = derivation_hash("1", {"n": place}, [])
        version_id_ = version_id(artifact, content)
        values = ("created", "theme", artifact, version_id_, content, derivation, [], None, text, None)
        rows["event_id"].append(f"{batch[:32]}:{place}")
        for name, value in zip(SCHEMA.names[3:13], values, strict=True):
            rows[name].append(value)
    for name, value in zip(SCHEMA.names[2:13], ("end", "committed", *[None] * 9), strict=True):
        rows[name].append(value)
    rows["payload"][-1] = f'{{"events":{count}}}'
    rows |= {"commit_version": [version] * count, "position": list(range(count)), "batch": [batch] * count}
    rows |= {"stage": ["s"] * count, "partition": [f"{version}"] * count, "derivation": ["d"] * count}
    rows |= {"run_id": ["r"] * count, "code_version": ["c"] * count, "schema_version": [1] * count, "ts": [now] * count}
    return pa.table({field.name: pa.array(rows[field.name], field.type) for field in SCHEMA}, schema=SCHEMA)


def appends(folder: Path, events: int) -> Lake:
    """Large batches against plain parquet files of the same rows."""
    lake = open_lake(folder / "large")
    plain, delta = Watch(), Watch()
    for number in range(max(1, events // BATCH)):
        table = made_events(min(BATCH, events), number + 1)
        with watch() as one:
            pq.write_table(table, folder / f"{number}.parquet", compression="zstd", compression_level=1)
            handle = os.open(folder / f"{number}.parquet", os.O_RDONLY)
            os.fsync(handle)
            os.close(handle)
        with watch() as two:
            lake.log.append(table.column("batch")[0].as_py(), lambda version, committed, t=table: Draft(t))
        for total, part in ((plain, one), (delta, two)):
            total.cpu += part.cpu
            total.wall += part.wall
    show(f"append {events:,} events in batches of {BATCH:,}: CPU / plain parquet", delta.cpu / plain.cpu, "x", "<= 2")
    show("the same: plain parquet wall / wall", plain.wall / delta.wall, "x", ">= 0.7")
    return lake


def small_commits(folder: Path, count: int) -> None:
    """One artifact a commit, with compaction and stored projections on the way."""
    lake = open_lake(folder / "small")
    times = []
    for number in range(count):
        with watch() as one, lake.begin("s", f"{number}", derivation="d", code_version="1") as batch:
            batch.create("theme", f"t{number}", {"title": f"{number}"})
        times.append(one.cpu * 1_000)
    tenth = count // 10
    first, last = sum(times[tenth : 2 * tenth]) / tenth, sum(times[-tenth:]) / tenth
    show(f"{count:,} single commits: last tenth / second tenth", last / first, "x", "<= 1.5")
    show("one commit, last tenth, upkeep included", last, "ms CPU", "<= 15")
    reads = []
    for number in range(100):
        with watch() as one:
            lake.read("themes", where={"artifact_id": f"t{number}"})
        reads.append(one.cpu * 1_000)
    show("Lake.read of one artifact, lake unchanged", median(reads), "ms CPU", "quick")
    with watch() as one:
        open_lake(folder / "small").read("themes", where={"artifact_id": "t1"})
    show("the same in a fresh Lake", one.cpu * 1_000, "ms CPU", "quick")


def replays(lake: Lake, events: int) -> None:
    """Fold everything anew, against reading and writing the same bytes."""
    with watch() as folded:
        replay(lake)
    with watch() as plain, tempfile.TemporaryDirectory() as folder:
        table = lake.log.handle().to_pyarrow_table()
        pq.write_table(table, Path(folder) / "all.parquet", compression="zstd", compression_level=1)
    show(f"replay of {events:,} events", folded.cpu * 1e6 / events, "s/10^6", "<= 9")
    show("replay / reading and writing the events plainly", folded.cpu / plain.cpu, "x", "<= 2")
    with watch() as one:
        lake.at(lake.events_version() // 2).rows("batches", columns=["batch"])
    show("as-of open and the list of batches", one.cpu * 1_000, "ms CPU", "<= 20 + fold")


class Woven(NamedTuple):
    """A graph of environments of 500 versions each, rarely linked with each other, as numbers and as names."""

    names: pa.Array
    child: np.ndarray
    parent: np.ndarray


def woven(nodes: int) -> Woven:
    """Five parents a version where there are as many before it in its environment."""
    source = np.random.default_rng(5)
    number = np.arange(nodes)
    start = number - number % 500
    child = number.repeat(np.minimum(5, number - start))
    low = np.where(source.random(len(child)) < 0.0005, 0, start[child])
    parent = low + (source.random(len(child)) * (child - low)).astype(np.int64)
    names = pa.array([f"artifact-{n:07}@{sha256(f'{n}')[:32]}" for n in range(nodes)])
    return Woven(names, child, parent)


def woven_events(graph: Woven, first: int, count: int, version: int) -> pa.Table:
    """The events of a batch that made so many versions from `first` on, without going through them one by one."""
    names = graph.names.slice(first, count)
    places = np.searchsorted(graph.child, np.arange(first, first + count + 1))
    ends = graph.names.take(pa.array(graph.parent[places[0] : places[-1]]))
    roles = pa.repeat(pa.scalar("part"), len(ends))
    offsets = pa.array((places - places[0]).astype(np.int32))
    parents = pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays([ends, roles], ["version_id", "role"]))
    batch = sha256(f"woven {version}")
    given: dict[str, Any] = {
        "event_id": pc.binary_join_element_wise(batch[:32], names, ":"),
        "event_type": pa.repeat(pa.scalar("created"), count),
        "kind": pa.repeat(pa.scalar("theme"), count),
        "artifact_id": pc.utf8_slice_codeunits(names, 0, 16),
        "version_id": names,
        "content_hash": pc.utf8_slice_codeunits(names, 17),
        "derivation_hash": pc.utf8_slice_codeunits(names, 17),
        "parents": parents,
        "payload": pa.repeat(pa.scalar('{"title":"x"}'), count),
    }
    end = {"event_id": f"{batch[:32]}:end", "event_type": "committed", "payload": f'{{"events":{count + 1}}}'}
    columns = {}
    for field in SCHEMA:
        made = given.get(field.name, pa.nulls(count, field.type))
        columns[field.name] = pa.concat_arrays([made.cast(field.type), pa.array([end.get(field.name)], field.type)])
    whole = {"batch": batch, "stage": "s", "partition": f"{version}", "derivation": "d", "run_id": "r"}
    whole |= {"code_version": "c", "schema_version": 1, "ts": datetime.now(UTC), "commit_version": version}
    columns |= {name: pa.repeat(pa.scalar(value, SCHEMA.field(name).type), count + 1) for name, value in whole.items()}
    columns["position"] = pa.array(range(count + 1), pa.int64())
    return pa.table({name: columns[name] for name in SCHEMA.names}, schema=SCHEMA)


def lineage_answers(folder: Path, nodes: int) -> None:
    """Closures and look-ups in a lake of `nodes` versions and five edges each, against rustworkx and plain Arrow."""
    graph = woven(nodes)
    lake = open_lake(folder / "woven")
    for version, first in enumerate(range(0, nodes, BATCH), 1):
        table = woven_events(graph, first, min(BATCH, nodes - first), version)
        lake.log.append(table.column("batch")[0].as_py(), lambda version, committed, t=table: Draft(t))
    lake.refresh()
    del lake

    with watch() as plain:
        least = rustworkx.PyDiGraph()
        least.add_nodes_from(range(nodes))
        least.add_edges_from_no_data(list(zip(graph.child.tolist(), graph.parent.tolist(), strict=True)))
    lake = open_lake(folder / "woven")
    edges, names = len(graph.child), graph.names
    with watch() as cold:
        lineage.upstream(lake, names[nodes - 1].as_py(), limit=1_000)
    show(f"first answer of a fresh lake, {nodes:,} versions, {edges:,} edges", cold.cpu, "s CPU", "<= 5", plain.cpu)

    source, here = random.Random(5), lake.graph
    for what, few in (("any", False), ("of 300 and more", True)):
        walks, answers, floors, sizes = [], [], [], []
        while len(walks) < 200:
            place = source.randrange(nodes)
            place = min(nodes - 1, place - place % 500 + 499 - source.randrange(20)) if few else place
            name = names[place].as_py()
            with watch() as walked:
                walk = here.walk(name, up=True, limit=1_000)
            if walk.truncated or (few and len(walk.hops) < 300):
                continue
            with watch() as answered:
                lineage.upstream(lake, name, limit=1_000)
            with watch() as floor:
                rustworkx.descendants(least, place)
            sizes.append(len(walk.hops))
            for times, one in ((walks, walked), (answers, answered), (floors, floor)):
                times.append(one.cpu * 1_000)
        told = f"closure up to 1,000 versions, {what} (median {median(sizes):.0f})"
        show(told, median(walks), "ms CPU", "<= 1", median(floors))
        show("  with the edges among them", median(answers), "ms CPU", "quick", median(floors))

    asked = [names[source.randrange(nodes)].as_py() for _ in range(50)]
    lake.version(asked[0])
    times, floors = [], []
    for name in asked:
        with watch() as one:
            lake.version(name)
        times.append(one.cpu * 1_000)
        with watch() as least_one:
            names.filter(pc.equal(names, name))
        floors.append(least_one.cpu * 1_000)
    show("look-up of a version by id, in memory", median(times), "ms CPU", "<= 20", median(floors))
    times = []
    for name in asked:
        with watch() as one:
            lake.read("themes", where={"version_id": name})
        times.append(one.cpu * 1_000)
    show("Lake.read of a row by id, in memory", median(times), "ms CPU", "<= 20", median(floors))
    stored_look_ups(folder, lake, asked)


def stored_look_ups(folder: Path, lake: Lake, asked: list[str]) -> None:
    """The row of an id in the stored table after upkeep, as another engine finds it, against one sorted file."""
    compact(lake)
    stored = dict(lake.projections.tables())[f"projections/{lake.projections.generation()}/themes"]
    plain = folder / "sorted.parquet"
    pq.write_table(lake.table("themes").sort_by("artifact_id"), plain, compression="zstd", compression_level=1)
    times: dict[str, list[float]] = {"stored": [], "plain": []}
    with duckdb.connect(":memory:") as engine:
        for name in asked:
            artifact = name.partition("@")[0]
            for which, paths in (("stored", stored.file_uris()), ("plain", [str(plain)])):
                query = "SELECT version_id, title FROM read_parquet($1) WHERE artifact_id = $2"
                with watch() as one:
                    found = engine.execute(query, [paths, artifact]).fetchall()
                assert [row[0] for row in found] == [name]
                times[which].append(one.cpu * 1_000)
    stored_ms, plain_ms = median(times["stored"]), median(times["plain"])
    show("look-up by id in the stored table, by DuckDB", stored_ms, "ms CPU", "<= 20", plain_ms)


def blobs(folder: Path) -> None:
    """4,000 documents of 50 KB in packs, against hashing, compressing and writing them plainly."""
    source = random.Random(3)
    words = [source.randbytes(6).hex() for _ in range(2_000)]
    documents = [(" ".join(source.choices(words, k=4_000))).encode()[:50_000] for _ in range(400)]
    documents = [f"{n} ".encode() + documents[n % 400] for n in range(4_000)]
    compress: Callable[[bytes], bytes] = zstandard.ZstdCompressor(level=1).compress
    with watch() as plain:
        data = b"".join(compress(document) for document in documents if sha256(document))
        (folder / "plain").write_bytes(data)
        handle = os.open(folder / "plain", os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)
    lake = open_lake(folder / "blobs")
    with watch() as packed:
        writer = BlobWriter(lake.storage, lambda digest: None)
        for document in documents:
            writer.add(document)
        writer.flush()
    show("packs: CPU / (sha256 + zstd-1 + one raw write)", packed.cpu / plain.cpu, "x", "<= 1.3")
    with lake.begin("x", derivation="d") as batch:
        keys = [batch.blob(document) for document in documents]
    times = []
    for key in source.sample(keys, 200):
        with watch() as one:
            lake.blob(key)
        times.append(one.cpu * 1_000)
    show("random read of one blob", median(times), "ms CPU", "<= 0.3")


def main() -> None:
    """Run every measure, or those of one part."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--events", type=int, default=1_000_000)
    options.add_argument("--nodes", type=int, default=1_000_000)
    options.add_argument("--commits", type=int, default=1_000)
    options.add_argument("--only", choices=["blobs", "commits", "lineage", "replay"])
    options.add_argument("--json", type=Path, metavar="FILE")
    chosen = options.parse_args()
    parts: dict[str, Callable[[Path], None]] = {
        "blobs": blobs,
        "commits": lambda folder: small_commits(folder, chosen.commits),
        "lineage": lambda folder: lineage_answers(folder, chosen.nodes),
        "replay": lambda folder: replays(appends(folder, chosen.events), chosen.events),
    }
    with tempfile.TemporaryDirectory() as name:
        for part in [chosen.only] if chosen.only else parts:
            parts[part](Path(name))
    if chosen.json:
        chosen.json.write_text(json.dumps([measure._asdict() for measure in MEASURES], indent=2) + "\n")


if __name__ == "__main__":
    main()
