"""Rows moved in runs: what lies together in a log mostly stays so, and a slice costs nothing where a copy does."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

_SLICES = 512
"""More slices than this would make a table of too many chunks."""


def starts_of(breaks: np.ndarray) -> np.ndarray:
    """Where runs of rows begin; ``breaks[i]`` says that row i + 1 does not belong to the run of row i."""
    return np.append(0, np.flatnonzero(breaks) + 1)


def gathered(table: pa.Table, starts: np.ndarray, stops: np.ndarray) -> pa.Table:
    """The rows from each start up to its stop, one run behind the other; none of them is empty."""
    if not len(starts):
        return table.slice(0, 0)
    first = starts_of(starts[1:] != stops[:-1])  # runs that lie one behind the other are one
    firsts, lasts = starts[first], stops[np.append(first[1:] - 1, len(stops) - 1)]
    if len(firsts) <= _SLICES:
        pairs = zip(firsts.tolist(), lasts.tolist(), strict=True)
        return pa.concat_tables([table.slice(start, stop - start) for start, stop in pairs])
    counts = lasts - firsts
    return table.take(np.arange(counts.sum()) + (firsts - counts.cumsum() + counts).repeat(counts))
