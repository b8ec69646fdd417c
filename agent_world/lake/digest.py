"""Logical digests: of rows, whatever their order or their files, and of the batches of the log."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from agent_world.identity import Digest, sha256
from lake_schemas import EVENTS, TableSpec

if TYPE_CHECKING:
    import duckdb


class BatchDigest(NamedTuple):
    """What one batch says, wherever it lies and whenever it was committed."""

    batch: str
    events: int
    sha256: Digest


def table_digest(spec: TableSpec, table: pa.Table, *, volatile: bool) -> Digest:
    """One digest of the rows of a table, independent of their order.

    With `volatile` it covers every column: two folds of one log agree. Without, it leaves out when, where and in which
    run things happened: two lakes in which the same was made agree.
    """
    if not table.num_rows:
        return sha256("")
    names = [column.name for column in spec.all_columns if volatile or not column.volatile]
    rows = _query(f"SELECT sha256({_row(spec, names)}) AS digest FROM rows ORDER BY digest", table)
    return sha256("".join(rows.column("digest").to_pylist()))


def batch_digests(events: pa.Table) -> list[BatchDigest]:
    """A digest of each batch, in the order of the events; of each event the columns that its version had."""
    written = sorted(events.column("schema_version").unique().to_pylist())
    cases = " ".join(f"WHEN {version} THEN {_row(EVENTS, _columns(version))}" for version in written)
    row = f"CASE schema_version {cases} END" if written else "''"
    rows = _query(
        f"""
        SELECT batch, count(*) AS events, sha256(string_agg(digest, '' ORDER BY place)) AS sha256
        FROM (SELECT batch, sha256({row}) AS digest, place FROM rows)
        GROUP BY batch ORDER BY min(place)
        """,
        events.append_column("place", pa.array(range(events.num_rows), type=pa.int64())),
    )
    return [BatchDigest(**row) for row in rows.to_pylist()]


def _columns(version: int) -> list[str]:
    return [column.name for column in EVENTS.all_columns if not column.volatile and column.since <= version]


@cache
def _engine() -> duckdb.DuckDBPyConnection:
    """One engine for all digests of the process: making one costs more than most digests."""
    import duckdb

    return duckdb.connect(":memory:")


def _query(query: str, rows: pa.Table) -> pa.Table:
    with _engine().cursor() as engine:
        engine.register("rows", rows)
        return engine.sql(query).to_arrow_table()


def _row(spec: TableSpec, names: list[str]) -> str:
    """An expression for one unambiguous text of a row."""
    cells = []
    for name in names:
        # JSON would write a timestamp in the time zone of the session.
        moment = pa.types.is_timestamp(spec.column(name).type)
        cells.append(f"'{name}', epoch_us(\"{name}\")" if moment else f"'{name}', \"{name}\"")
    return f"CAST(json_object({', '.join(cells)}) AS VARCHAR)"
