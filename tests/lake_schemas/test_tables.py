"""What the schema modules declare holds for every table."""

from __future__ import annotations

import re

import pytest

import lake_schemas
from lake_schemas import EVENTS, TABLES, TableSpec

REQUIRED = set(
    "themes databases tools tool_tests tool_graph_edges environments taxonomy tasks task_sets gate_verdicts quarantine "
    "trajectories rewards evaluations checkpoints training_metrics diagnoses benchmark_results edges runs snapshots "
    "costs blobs trees".split()
)
ALL = [*TABLES.values(), EVENTS]


def test_every_table_of_the_design_is_declared():
    assert set(TABLES) >= REQUIRED
    assert all(name == spec.name for name, spec in TABLES.items())


@pytest.mark.parametrize("spec", ALL, ids=lambda spec: spec.name)
def test_a_table_has_plain_column_names_meanings_and_keys_that_exist(spec: TableSpec):
    names = [column.name for column in spec.all_columns]
    assert len(names) == len(set(names))
    # Delta through delta-rs takes any name; Spark refuses spaces and punctuation.
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", name) for name in names)
    assert all(column.meaning for column in spec.all_columns) and spec.meaning
    assert spec.key and set(spec.key) <= set(names)
    assert (spec.kind is not None) == (spec.shape == "artifact")


@pytest.mark.parametrize("spec", ALL, ids=lambda spec: spec.name)
def test_the_arrow_schema_and_the_spark_ddl_name_the_same_columns(spec: TableSpec):
    assert spec.arrow.names == re.findall(r"`(\w+)` [A-Z]", spec.spark_ddl())
    assert all(field.metadata[b"meaning"] for field in spec.arrow)


def test_kinds_name_one_table_each():
    kinds = [spec.kind for spec in TABLES.values() if spec.kind]
    assert len(kinds) == len(set(kinds))


def test_only_artifacts_are_observed():
    assert all(spec.shape == "artifact" for spec in ALL if any(column.observed for column in spec.columns))


def test_a_column_is_found_by_name():
    assert TABLES["themes"].column("rev").type == "int64"
    with pytest.raises(KeyError, match=r"themes\.nothing"):
        TABLES["themes"].column("nothing")
    assert lake_schemas.__all__ == ["EVENTS", "TABLES", "ColumnSpec", "TableSpec"]
