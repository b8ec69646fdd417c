"""What the lake costs against doing the same plainly: ratios inside one run, in CPU time where not said otherwise.

``python -m benchmarks.lake [--events 1000000] [--nodes 1000000] [--commits 1000]``
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from agent_world.identity import content_hash, derivation_hash, sha256, version_id
from agent_world.lake import Lake, open_lake
from agent_world.lake.blobs import BlobWriter
from agent_world.lake.graph import Graph
from agent_world.lake.log import SCHEMA, Draft
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


def show(name: str, value: float, unit: str, goal: str) -> None:
    """Print one measure beside its goal."""
    print(f"{name:<66} {value:10.3f} {unit:<8} goal {goal}", flush=True)


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


def closures(nodes: int) -> None:
    """Closures of at most 1,000 versions in a graph with five parents a version."""
    source = random.Random(5)
    names = [f"artifact-{n:07}@{n:032x}" for n in range(nodes)]
    children, parents = [], []
    for n in range(nodes):
        start = n - n % 500  # environments of 500 artifacts, rarely linked with each other
        for _ in range(min(5, n - start)):
            children.append(n)
            parents.append(source.randrange(start, n) if source.random() > 0.0005 else source.randrange(n))
    versions = pa.table({"version_id": names})
    edges = pa.table(
        {
            "child": pa.array(names).take(pa.array(children)),
            "parent": pa.array(names).take(pa.array(parents)),
            "role": ["p"] * len(children),
        }
    )
    graph = Graph(lambda: versions, lambda: edges)
    with watch() as cold:
        graph.refresh()
    show(f"graph of {nodes:,} versions and {len(children):,} edges, cold", cold.cpu, "s CPU", "<= 5 at 10^6")
    times = []
    for _ in range(200):
        start = names[source.randrange(nodes)]
        with watch() as one:
            walk = graph.walk(start, up=True, limit=1_000)
        times.append(one.cpu * 1_000 / max(1, len(walk.hops)) * 1_000)
    show("closure, for 1,000 versions reached", median(times), "ms CPU", "<= 1")


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
    """Run every measure."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--events", type=int, default=1_000_000)
    options.add_argument("--nodes", type=int, default=1_000_000)
    options.add_argument("--commits", type=int, default=1_000)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        blobs(folder)
        small_commits(folder, chosen.commits)
        closures(chosen.nodes)
        replays(appends(folder, chosen.events), chosen.events)


if __name__ == "__main__":
    main()
