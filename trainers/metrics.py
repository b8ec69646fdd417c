"""The file that training metrics are streamed to, under their canonical names (lake_schemas/training_metrics.py).

What a back-end does not report is null, never 0. A line of ``metrics.jsonl`` is one step: ``{"step", ...}``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from lake_schemas.training_metrics import METRICS

ROLLOUTS = "rollouts.jsonl"
"""The file, beside the metrics, of a sample of GRPO's episodes; a line a trajectory."""


class MetricsFile:
    """Appends one line a step, flushed at once, so that a supervisor can follow. Use it with `with`."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    def record(self, step: int, values: dict[str, float | None]) -> None:
        """Write one step; metrics that are not given are null.

        Raises:
            KeyError: a name that is not canonical.
        """
        unknown = values.keys() - METRICS.keys()
        if unknown:
            raise KeyError(f"not canonical metrics: {', '.join(sorted(unknown))}")
        row = {"step": step} | {name: _finite(values.get(name)) for name in METRICS}
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def read_metrics(path: Path) -> Iterator[dict[str, Any]]:
    """The complete lines of a metrics file, also while it is written."""
    if path.exists():
        for line in path.read_text("utf-8").splitlines(keepends=True):
            if line.endswith("\n"):
                yield json.loads(line)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
