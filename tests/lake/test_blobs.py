"""Blobs: packs below 1 MB, single objects above, nothing stored twice, nothing visible before its event."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_world.errors import BadInputError
from agent_world.identity import sha256
from agent_world.lake import DamagedError, Lake, NotFoundError, open_lake
from agent_world.lake.blobs import OBJECT_BYTES, Leaf, tree


def noise(seed: int, size: int) -> bytes:
    import random

    return random.Random(seed).randbytes(size)


def test_small_blobs_share_a_pack_and_large_ones_are_objects_of_their_own(lake: Lake):
    small = {f"s{n}": noise(n, 1_000) for n in range(20)}
    large = {"l": noise(99, OBJECT_BYTES)}
    with lake.begin("x", derivation="d") as batch:
        root = batch.put(small | large)
    rows = {row["sha256"]: row for row in lake.read("blobs")}
    assert len({rows[sha256(data)]["pack"] for data in small.values()}) == 1
    assert rows[sha256(large["l"])]["pack"].startswith("blobs/objects/")
    assert {leaf.path: lake.blob(leaf.sha256) for leaf in lake.tree(root)} == small | large


def test_text_is_compressed_and_noise_is_not(lake: Lake):
    with lake.begin("x", derivation="d") as batch:
        text, raw = batch.blob(b"again " * 2_000), batch.blob(noise(1, 2_000))
    rows = {row["sha256"]: row for row in lake.read("blobs")}
    assert rows[text]["codec"] == "zstd" and rows[text]["stored_bytes"] < 200
    assert rows[raw]["codec"] == "raw" and rows[raw]["stored_bytes"] == 2_000


def test_known_bytes_and_known_trees_are_not_stored_again(lake: Lake):
    files = {"a": b"x" * 500, "b": b"x" * 500, "c": b"y"}
    for derivation in ("1", "2"):
        with lake.begin("x", derivation=derivation) as batch:
            root = batch.put(files)
            assert batch.put(files) == root
    assert len(lake.read("blobs")) == 2 and len(lake.read("trees")) == 3
    assert sum(1 for _ in lake.storage.list("blobs")) == 1


def test_a_missing_or_damaged_blob_is_an_error_that_names_it(lake: Lake):
    with lake.begin("x", derivation="d") as batch:
        blob = batch.blob(b"hello")
    [row] = lake.read("blobs")
    lake.storage.write(row["pack"], b"jello")
    with pytest.raises(DamagedError, match="do not have this sha256"):
        lake.blob(blob)
    lake.storage.delete(row["pack"])
    with pytest.raises(DamagedError, match="the file is missing"):
        open_lake(lake.uri).blob(blob)
    with pytest.raises(NotFoundError):
        lake.blob("0" * 64)


@given(st.dictionaries(st.sampled_from(["a", "b/c", "ü", "b/d e"]), st.binary(max_size=5)), st.randoms())
def test_the_root_of_a_tree_depends_on_paths_and_bytes_and_not_on_order(files, source):
    leaves = [Leaf(path, sha256(data), len(data)) for path, data in files.items()]
    shuffled = source.sample(leaves, len(leaves))
    assert tree(shuffled) == tree(leaves)
    assert tree([*leaves, Leaf("other", sha256(b""), 0)])[0] != tree(leaves)[0]


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "", ".", "a//b", "a/"])
def test_a_path_that_leaves_the_tree_is_refused(lake: Lake, path: str):
    with pytest.raises(BadInputError, match="not a plain relative path"), lake.begin("x", derivation="d") as batch:
        batch.put({path: b""})
