"""Pandas and Spark count alike: the same rules hold, the same number of rows breaks the others."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest

from expectations import SUITES, prove
from tests.expectations.test_suites import PLANTED, SOUND

SHORT = ("checkpoints", "tools")  # nulls, numbers, texts, patterns and sets


def cases(tables):
    return [(table, rule, plant) for table, rule, plant in PLANTED if table in tables]


def compare(spark, table, rows):
    ours, theirs = prove(SUITES[table], rows), prove(SUITES[table], rows, spark)
    assert [replace(verdict, examples=()) for verdict in theirs] == [replace(verdict, examples=()) for verdict in ours]
    return theirs


def all_planted(table):
    """Sound rows, and a copy of them for each planted violation."""
    rows = copy.deepcopy(SOUND[table])
    for _, _, plant in cases([table]):
        more = copy.deepcopy(SOUND[table])
        plant(more)
        rows += more
    return rows


@pytest.mark.parametrize("table", SHORT)
def test_counts_on_spark_are_those_on_pandas(spark_jvm, table):
    assert any(verdict.unexpected for verdict in compare(spark_jvm, table, all_planted(table)))


@pytest.mark.long
@pytest.mark.parametrize("table", sorted(SUITES))
def test_every_suite_counts_alike_with_and_without_violations(spark_jvm, table):
    assert all(verdict.success for verdict in compare(spark_jvm, table, SOUND[table]))
    assert any(verdict.unexpected for verdict in compare(spark_jvm, table, all_planted(table)))


@pytest.mark.long
@pytest.mark.parametrize(("table", "rule", "plant"), PLANTED, ids=[f"{table}: {rule}" for table, rule, _ in PLANTED])
def test_every_planted_violation_counts_alike(spark_jvm, table, rule, plant):
    rows = copy.deepcopy(SOUND[table])
    plant(rows)
    assert any(rule in verdict.rule for verdict in compare(spark_jvm, table, rows) if not verdict.success)
