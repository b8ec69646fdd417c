"""Rows as Python mappings against the columns that a table declares: checked on the way in, decoded on the way out."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from agent_world.identity import canonical_json
from agent_world.lake.errors import BadRowError, NotFoundError, near
from lake_schemas import TABLES, ColumnSpec, TableSpec

Where = Mapping[str, Any]
"""Column to value, or to a list of values of which one must hold; None asks for null."""

ARTIFACTS: dict[str, TableSpec] = {spec.kind: spec for spec in TABLES.values() if spec.kind is not None}
"""Artifact tables by the kind they hold."""


def spec_of(table: str) -> TableSpec:
    """The declaration of `table`.

    Raises:
        NotFoundError: there is no such table.
    """
    if table not in TABLES:
        raise NotFoundError("table", table, near(table, list(TABLES)))
    return TABLES[table]


def spec_of_kind(kind: str) -> TableSpec:
    """The table that holds artifacts of `kind`.

    Raises:
        NotFoundError: there is no such kind.
    """
    if kind not in ARTIFACTS:
        raise NotFoundError("artifact kind", kind, near(kind, list(ARTIFACTS)))
    return ARTIFACTS[kind]


def check(spec: TableSpec, columns: Iterable[ColumnSpec], row: Mapping[str, Any], *, strict: bool) -> None:
    """See that the values of `row` fit; with `strict`, that it names no other column.

    Raises:
        BadRowError: a value or a name that does not fit.
    """
    known = {column.name: column for column in columns}
    for name, value in row.items():
        if name in known:
            why = _misfit(known[name], value)
            if why:
                raise BadRowError(spec.name, name, why)
        elif strict:
            raise BadRowError(spec.name, name, f"there is no such column; there are {', '.join(sorted(known))}")


def canonical(spec: TableSpec, row: Mapping[str, Any]) -> str:
    """The canonical JSON of `row`.

    Raises:
        BadRowError: it has no JSON form.
    """
    try:
        text = canonical_json(row)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise BadRowError(spec.name, "payload", f"{error}") from error
    return text


def extract(columns: Sequence[ColumnSpec], payloads: Sequence[Mapping[str, Any]]) -> dict[str, pa.Array]:
    """One Arrow array a column, taken by name from decoded payloads."""
    present = set().union(*payloads)
    arrays = {}
    for column in columns:
        name = column.name
        if name not in present:
            arrays[name] = pa.nulls(len(payloads), column.type)
        elif column.json:
            arrays[name] = pa.array([cell(column, payload.get(name)) for payload in payloads], type=column.type)
        else:
            arrays[name] = pa.array([payload.get(name) for payload in payloads], type=column.type)
    return arrays


def cell(column: ColumnSpec, value: Any) -> Any:
    """What the column stores for `value`."""
    if column.json and value is not None:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return value


def having(table: pa.Table, **values: Any) -> pa.Table:
    """The rows in which every named column has its value, or one of a list of values."""
    masks = [
        pc.is_in(table.column(name), value_set=pa.array(value, type=table.schema.field(name).type))
        if isinstance(value, list)
        else pc.equal(table.column(name), value)
        for name, value in values.items()
    ]
    return table.filter(reduce(pc.and_, masks))  # a mask: an expression would start an execution plan, at 2 ms each


def select(
    spec: TableSpec, table: pa.Table, where: Where | None, columns: Sequence[str] | None
) -> list[dict[str, Any]]:
    """The rows of `table` that `where` holds for, JSON columns decoded.

    Raises:
        NotFoundError: an unknown column. BadRowError: a value that cannot be compared with its column.
    """
    for name in [*(where or ()), *(columns or ())]:
        if name not in table.column_names:
            raise NotFoundError(f"column of {spec.name}", name, near(name, table.column_names))
    for name, wanted in (where or {}).items():
        table = table.filter(_holds(spec, table.column(name), spec.column(name), wanted))
    if columns is not None:
        table = table.select(list(dict.fromkeys(columns)))
    decoded = [column.name for column in spec.all_columns if column.json and column.name in table.column_names]
    rows = table.to_pylist()
    for row in rows:
        for name in decoded:
            if row[name] is not None:
                row[name] = json.loads(row[name])
    return rows


def _holds(spec: TableSpec, values: pa.ChunkedArray, column: ColumnSpec, wanted: Any) -> pa.ChunkedArray:
    many = wanted if isinstance(wanted, (list, tuple, set, frozenset)) and not column.json else [wanted]
    texts = [cell(column, value) for value in many]
    try:
        if len(texts) == 1 and texts[0] is not None:
            return pc.equal(values, pa.scalar(texts[0], type=column.type))  # a tenth of what is_in takes
        return pc.is_in(values, value_set=pa.array(texts, type=column.type))
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise BadRowError(spec.name, column.name, f"cannot be compared with {wanted!r}") from error


def _misfit(column: ColumnSpec, value: Any) -> str | None:
    """Why `value` does not fit the column; None when it does."""
    if value is None or column.json:
        return None
    kind = column.type
    if kind == pa.string():
        fits = isinstance(value, str)
    elif kind == pa.int64():
        fits = isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    elif kind == pa.float64():
        fits = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    else:
        fits = isinstance(value, bool)
    return None if fits else f"{value!r} is not {_WORDS[kind]}"


_WORDS = {
    pa.string(): "a text",
    pa.int64(): "a 64-bit integer",
    pa.float64(): "a finite number",
    pa.bool_(): "true or false",
}
