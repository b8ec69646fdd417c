from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_world.identity import (
    artifact_id_of,
    canonical_json,
    content_hash,
    derivation_hash,
    partition_key,
    rng,
    seed_of,
    version_id,
)

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)


@given(st.dictionaries(st.text(), values))
def test_the_order_of_keys_does_not_change_a_content_hash(payload):
    backwards = dict(reversed(payload.items()))
    assert content_hash("tool", payload) == content_hash("tool", backwards)


@given(values)
def test_canonical_json_reads_back_as_the_same_value(value):
    assert json.loads(canonical_json(value)) == value


@given(st.text(min_size=1), st.text(min_size=1))
def test_other_kinds_and_other_blobs_are_other_contents(kind, root):
    assert content_hash(kind, {}) != content_hash(kind + "x", {})
    assert content_hash(kind, {}, root) != content_hash(kind, {})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": [float("-inf")]}])
def test_what_json_cannot_carry_is_refused(value):
    with pytest.raises(ValueError, match="no JSON form"):
        canonical_json(value)


def test_a_key_that_is_no_string_is_refused_instead_of_being_renamed():
    with pytest.raises(TypeError, match="key must be a string"):
        canonical_json({1: "a"})


@given(st.lists(st.text()), st.randoms())
def test_the_order_of_parents_does_not_change_a_derivation(parents, random):
    shuffled = list(parents)
    random.shuffle(shuffled)
    assert derivation_hash("code", {}, parents) == derivation_hash("code", {}, shuffled)


def test_a_version_names_its_artifact():
    version = version_id("e/a@b", content_hash("tool", {}))
    assert artifact_id_of(version) == "e/a@b"


@given(st.text(), st.text())
def test_partition_keys_are_safe_and_tell_names_apart(one, other):
    key = partition_key(one)
    assert set(key) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert (key == partition_key(other)) == (one == other)


@given(st.lists(st.text() | st.integers(), min_size=1))
def test_a_seed_depends_on_its_parts_alone(parts):
    assert seed_of(*parts) == seed_of(*parts)
    assert 0 <= seed_of(*parts) < 2**63
    assert rng(*parts).random() == rng(*parts).random()
    assert seed_of(*parts) != seed_of(*parts, "more")
