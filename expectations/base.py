"""How a rule over a table is stated once and proved with Great Expectations.

The gates filter; a suite proves, on what was accepted, that the filter kept its rule (design.md 7). A suite turns lake
rows into a frame whose derived columns make each rule a plain column rule, so that pandas and Spark count alike.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import great_expectations.expectations as gxe
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import SparkSession

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """The rules of one table.

    `frame` gives one record for each thing the rules are about, with derived columns; `rules` makes the expectations
    (inside, because importing Great Expectations takes seconds).
    """

    table: str
    meaning: str
    frame: Callable[[Sequence[Row]], list[dict[str, Any]]]
    rules: Callable[[], list[gxe.Expectation]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleVerdict:
    """Whether one rule held: `unexpected` counts the rows that break it, `examples` shows a few values."""

    rule: str
    success: bool
    rows: int
    unexpected: int
    examples: tuple[str, ...]


def as_frame(suite: Suite, rows: Sequence[Row]) -> pd.DataFrame:
    """The frame that the suite's rules run on; nested values as JSON text."""
    import pandas as pd

    return pd.DataFrame.from_records(_records(suite, rows))


def prove(suite: Suite, rows: Sequence[Row], spark: SparkSession | None = None) -> list[RuleVerdict]:
    """Run every rule of `suite` on `rows` (SUMMARY format), with pandas, or in the session `spark`.

    An empty table breaks every rule but has no bad row.
    """
    records = _records(suite, rows)
    if not records:
        return [RuleVerdict(rule="rows exist", success=False, rows=0, unexpected=0, examples=())]
    import great_expectations as gx

    frame = as_frame(suite, rows) if spark is None else spark.createDataFrame(_typed(records))
    engine = "pandas" if spark is None else "spark"
    batch = _batch_definition(engine).get_batch(batch_parameters={"dataframe": frame})
    result = batch.validate(gx.ExpectationSuite(name=suite.table, expectations=suite.rules()), result_format="SUMMARY")
    return [_verdict(item, len(records)) for item in result.results]


def _records(suite: Suite, rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [
        {k: json.dumps(v) if isinstance(v, (dict, list)) else v for k, v in row.items()} for row in suite.frame(rows)
    ]


def _typed(records: list[dict[str, Any]]) -> pa.Table:
    """The records in Arrow; a column without any value counts as numbers, for Spark compares nothing with no type."""
    import pyarrow as pa

    table = pa.Table.from_pylist(records)
    return table.cast(pa.schema([(f.name, pa.float64() if pa.types.is_null(f.type) else f.type) for f in table.schema]))


@cache
def _batch_definition(engine: Literal["pandas", "spark"]) -> Any:
    import great_expectations as gx

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    add = context.data_sources.add_pandas if engine == "pandas" else context.data_sources.add_spark
    return add("lake").add_dataframe_asset("rows").add_batch_definition_whole_dataframe("all")


def _verdict(item: Any, rows: int) -> RuleVerdict:
    config, result = item.expectation_config, item.result or {}
    column = config.kwargs.get("column")
    error = (item.exception_info or {}).get("exception_message")
    examples = (error,) if error else tuple(str(v) for v in result.get("partial_unexpected_list", [])[:3])
    return RuleVerdict(
        rule=f"{config.type} ({column})" if column else config.type,
        success=bool(item.success),
        rows=rows,
        unexpected=int(result.get("unexpected_count", 0)),
        examples=examples,
    )
