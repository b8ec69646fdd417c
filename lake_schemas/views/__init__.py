"""The views of the lake: one module a view, all of them in `VIEWS`, the same in every engine."""

from __future__ import annotations

from lake_schemas.views import (
    checkpoint_training,
    environment_richness,
    open_quarantine,
    pass_rates,
    task_yield,
    validity_ladder,
    weaknesses,
)
from lake_schemas.views.base import ViewSpec

VIEWS: dict[str, ViewSpec] = {
    module.VIEW.name: module.VIEW
    for module in (
        validity_ladder,
        task_yield,
        environment_richness,
        pass_rates,
        weaknesses,
        checkpoint_training,
        open_quarantine,
    )
}
"""Every view of the lake by name, in the order of the pipeline."""

__all__ = ["VIEWS", "ViewSpec"]
