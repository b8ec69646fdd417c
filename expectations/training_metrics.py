"""Rules of `training_metrics`: canonical names, finite values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from expectations.base import Row, Suite

if TYPE_CHECKING:
    import great_expectations.expectations as gxe

CANONICAL = (
    "reward_mean",
    "reward_std",
    "zero_spread_groups",
    "entropy",
    "kl_ref",
    "clip_frac_low",
    "clip_frac_high",
    "completion_tokens_mean",
    "truncated_frac",
    "turns_mean",
    "tool_error_rate",
    "tool_call_frequency",
    "grad_norm",
    "lr",
    "loss",
)


def _frame(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [
        {
            "metric": row["metric"],
            "step": row["step"],
            "not_finite": int(row["value"] is not None and row["value"] - row["value"] != 0),
        }
        for row in rows
    ]


def _rules() -> list[gxe.Expectation]:
    import great_expectations.expectations as gxe

    from expectations.custom import ExpectNoneLeft

    return [
        gxe.ExpectColumnValuesToBeInSet(column="metric", value_set=list(CANONICAL)),
        gxe.ExpectColumnValuesToBeBetween(column="step", min_value=0),
        ExpectNoneLeft(column="not_finite"),
    ]


SUITE = Suite(
    table="training_metrics", meaning="training reports canonical, finite numbers", frame=_frame, rules=_rules
)
