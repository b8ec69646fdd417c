"""Expectations of our own: the paper's filtering rules by name.

The one module that imports Great Expectations at its top, because a class needs its base; suites import it inside.
"""

from __future__ import annotations

import great_expectations.expectations as gxe  # noqa: TID253


class ExpectToolAccuracyAboveHalf(gxe.ExpectColumnValuesToBeBetween):
    """``Acc(f; C_f) > 0.5`` strictly: exactly half is not enough (method.md 3)."""

    column: str = "accuracy"
    min_value: float = 0.5
    strict_min: bool = True
    max_value: float = 1.0


class ExpectAtLeastOneValidTool(gxe.ExpectColumnValuesToBeBetween):
    """Every accepted environment has a valid tool."""

    column: str = "valid_tools"
    min_value: int = 1


class ExpectAtLeastOneValidTest(gxe.ExpectColumnValuesToBeBetween):
    """Every accepted environment has a passed test."""

    column: str = "valid_tests"
    min_value: int = 1


class ExpectTwoOfFiveConsistent(gxe.ExpectColumnValuesToBeBetween):
    """At least two of five solver runs agree and are right (method.md 5)."""

    column: str = "solver_passes"
    min_value: int = 2
    max_value: int = 5


class ExpectRandomAgentsToFail(gxe.ExpectColumnValuesToBeBetween):
    """At most one of twenty random runs passes (design.md 7)."""

    column: str = "random_passes"
    min_value: int = 0
    max_value: int = 1


class ExpectNonEmptyRubric(gxe.ExpectColumnValuesToBeBetween):
    """An empty rubric would pass everything."""

    column: str = "criteria"
    min_value: int = 1


class ExpectNoneLeft(gxe.ExpectColumnValuesToBeBetween):
    """A count of violations that must be zero in every row; `column` names what was counted."""

    min_value: int = 0
    max_value: int = 0
