"""Marts: tables that Spark writes for people, beside a lake and never in it; each names the snapshot it comes from."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pyarrow as pa

from agent_world.home import service_home
from agent_world.identity import canonical_json
from agent_world.lake import snapshots
from agent_world.lake.code import code_version
from agent_world.lake.errors import LakeError, NotFoundError, near
from agent_world.lake.lake import Lake
from agent_world.lake.spark.sessions import session
from agent_world.lake.sql import named
from agent_world.lake.storage import open_storage
from lake_schemas.base import ColumnSpec, integer, text
from lake_schemas.views import ViewSpec

ROLLOUTS_DAILY = ViewSpec(
    name="rollouts_daily",
    meaning="Episodes of each day (UTC), by what they were for, environment, policy and kind of task.",
    columns=(
        ColumnSpec(name="day", type=pa.date32(), meaning="day on which the episodes were committed, in UTC"),
        text("purpose", "solver, arena, evaluation, demonstration or training"),
        integer("round", "round"),
        text("environment", "environment key"),
        text("kind", "graph or program"),
        text("policy", "policy name"),
        integer("episodes", "episodes kept in the lake"),
        integer("passes", "those that passed"),
        integer("failures", "those that failed"),
        integer("infra_errors", "those without an outcome"),
        integer("steps", "steps of all of them"),
    ),
    query="""
        SELECT
            CAST(r.created_at AS DATE) AS day, r.purpose, r.round, e.environment_id AS environment, t.kind, r.policy,
            count(*) AS episodes, sum(CASE WHEN r.status = 'pass' THEN 1 ELSE 0 END) AS passes,
            sum(CASE WHEN r.status = 'fail' THEN 1 ELSE 0 END) AS failures,
            sum(CASE WHEN r.status = 'infra_error' THEN 1 ELSE 0 END) AS infra_errors,
            sum(json_array_length(r.steps)) AS steps
        FROM trajectories r
        LEFT JOIN environments e ON e.version_id = r.environment
        LEFT JOIN tasks t ON t.version_id = r.task
        GROUP BY CAST(r.created_at AS DATE), r.purpose, r.round, e.environment_id, t.kind, r.policy
    """,
)

MARTS: dict[str, ViewSpec] = {ROLLOUTS_DAILY.name: ROLLOUTS_DAILY}
"""The marts we ship, by name; `write_mart` takes any `ViewSpec`."""


class MartInLakeError(LakeError):
    """A mart was to be written into a lake, whose only writer is delta-rs."""

    def __init__(self, place: str, lake: str) -> None:
        super().__init__(place, lake)
        self.place, self.lake = place, lake

    def __str__(self) -> str:
        return f"{self.place} lies in the lake {self.lake}, which Spark never writes to; name a place beside it"


def mart(name: str) -> ViewSpec:
    """The mart of this name.

    Raises:
        NotFoundError: there is none.
    """
    if name not in MARTS:
        raise NotFoundError("mart", name, near(name, list(MARTS)) or list(MARTS))
    return MARTS[name]


def write_mart(lake: Lake, spec: ViewSpec, place: str | None = None, snapshot: str | None = None) -> str:
    """Write a mart as a Delta table with Spark, in place of what it held; gives the place.

    It is made from a snapshot: the one given, else one that is taken now. The commit says so in its `userMetadata`:
    lake, snapshot, query and code, so that the same mart can be made again; earlier versions stay readable.

    Args:
        lake: the lake it is made from.
        spec: name, columns and query.
        place: a directory or ``s3://`` URI, by default ``marts/<name>`` in the folder of the lake's services.
        snapshot: id of a snapshot, or a unique start of one.

    Raises:
        MartInLakeError: the place is in the lake. NotFoundError: there is no such snapshot.
        SparkUnavailableError: see `session`.
    """
    target = place or str(service_home(lake.uri) / "marts" / spec.name)
    _check_place(target, lake)
    pinned = snapshots.create(lake) if snapshot is None else snapshots.named(lake, snapshot)
    spark = session(lake, pinned, only=named(spec.query))
    lineage: dict[str, Any] = {
        "mart": spec.name,
        "lake": lake.uri,
        "snapshot": pinned,
        "tables": list(named(spec.query).tables),
        "query_sha256": hashlib.sha256(spec.spark_sql.encode()).hexdigest(),
        "code_version": code_version(),
    }
    rows = spark.sql(spec.spark_sql)
    described = rows.select(*(rows[c.name].alias(c.name, metadata={"comment": c.meaning}) for c in spec.columns))
    writer = described.coalesce(1).write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer.option("userMetadata", canonical_json(lineage)).save(target)
    return target


def _check_place(target: str, lake: Lake) -> None:
    place, home = (f"{_resolved(uri)}/" for uri in (target, lake.uri))
    if place.startswith(home):
        raise MartInLakeError(target, lake.uri)


def _resolved(uri: str) -> str:
    """The address without ways round: links and ``..`` of a directory."""
    return open_storage(uri).uri if "://" in uri else str(Path(uri).resolve())
