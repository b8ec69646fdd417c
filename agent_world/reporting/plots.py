"""The figures of the report. Each takes plain rows and returns a matplotlib figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, SOFT, ACCENT, WARM, PALE = "#1c2430", "#8b95a3", "#2563a8", "#c8662b", "#cfd8e3"
_MANY = (ACCENT, WARM, "#3f8f6b", "#8a5aa8", "#c9a227", "#b23a48", "#4aa3b5", SOFT)


def ladder(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """How many candidates each gate let through: rows of `gate`, `of`, `candidates`, `accepted`, in gate order."""
    figure, axes = _axes(7.6, 0.42 * len(rows) + 0.9)
    names = [f"{row['gate']} ({', '.join(row['of'])})" for row in rows]
    axes.barh(names, [row["candidates"] for row in rows], color=PALE, label="candidates")
    axes.barh(names, [row["accepted"] for row in rows], color=ACCENT, label="accepted", height=0.5)
    for index, row in enumerate(rows):
        axes.text(row["candidates"], index, f"  {row['accepted']:,} of {row['candidates']:,}", va="center", fontsize=8)
    axes.invert_yaxis()
    axes.margins(x=0.2)
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    return figure


def pass_rates(series: Mapping[str, Sequence[tuple[str, float, float, float]]]) -> Figure:
    """Pass rate with its interval at each point: series name to (point, rate, low, high)."""
    figure, axes = _axes(7.6, 3.4)
    for color, (name, points) in zip((ACCENT, WARM, SOFT, INK), series.items(), strict=False):
        labels, rates, lows, highs = zip(*points, strict=True)
        errors = [
            [rate - low for rate, low in zip(rates, lows, strict=True)],
            [high - rate for rate, high in zip(rates, highs, strict=True)],
        ]
        axes.errorbar(labels, rates, yerr=errors, color=color, marker="o", capsize=3, label=name, linewidth=1.6)
    axes.set_ylim(0, 1)
    axes.set_ylabel("pass rate")
    axes.legend(frameon=False, fontsize=8)
    return figure


def curves(metrics: Mapping[str, Mapping[str, Sequence[tuple[int, float]]]]) -> Figure:
    """Training curves: metric to stage to (step, value); one panel a metric."""
    import matplotlib.pyplot as plt

    count = max(1, len(metrics))
    figure, panels = plt.subplots(1, count, figsize=(3.6 * count, 2.8), squeeze=False)
    for axes, (metric, stages) in zip(panels[0], metrics.items(), strict=False):
        _bare(axes)
        for color, (stage, points) in zip((ACCENT, WARM, SOFT, INK), stages.items(), strict=False):
            axes.plot([step for step, _ in points], [value for _, value in points], color=color, label=stage)
        axes.set_title(metric, fontsize=9, loc="left")
        axes.set_xlabel("step", fontsize=8)
    if metrics:
        panels[0][0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    return figure


def bars(counts: Mapping[str, float], label: str) -> Figure:
    """Horizontal bars, largest first."""
    ordered = dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
    figure, axes = _axes(7.6, 0.34 * len(ordered) + 0.8)
    axes.barh(list(ordered), list(ordered.values()), color=ACCENT)
    axes.invert_yaxis()
    axes.set_xlabel(label, fontsize=8)
    return figure


def stacked(shares: Mapping[str, Mapping[str, float]], label: str) -> Figure:
    """Horizontal bars between 0 and 1, made of parts: bar to part to length; the part that is longest in all first."""
    figure, axes = _axes(7.6, 0.34 * len(shares) + 1.2)
    totals: Counter[str] = Counter()
    for parts in shares.values():
        totals.update(parts)
    left = [0.0] * len(shares)
    for color, (part, _) in zip(_MANY, totals.most_common(), strict=False):
        lengths = [parts.get(part, 0.0) for parts in shares.values()]
        axes.barh(list(shares), lengths, left=left, color=color, label=part)
        left = [before + length for before, length in zip(left, lengths, strict=True)]
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xlabel(label, fontsize=8)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def histogram(groups: Mapping[str, Mapping[int, int]], label: str) -> Figure:
    """Stacked counts by an integer: group to value to count."""
    figure, axes = _axes(7.6, 2.8)
    values = sorted({value for counts in groups.values() for value in counts})
    bottom = [0] * len(values)
    for color, (group, counts) in zip((ACCENT, WARM, SOFT, INK), groups.items(), strict=False):
        heights = [counts.get(value, 0) for value in values]
        axes.bar(values, heights, bottom=bottom, color=color, label=group)
        bottom = [low + high for low, high in zip(bottom, heights, strict=True)]
    axes.set_xlabel(label, fontsize=8)
    axes.legend(frameon=False, fontsize=8)
    return figure


def _axes(width: float, height: float) -> tuple[Figure, Axes]:
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(width, height))
    _bare(axes)
    return figure, axes


def _bare(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8, colors=INK)
    axes.grid(axis="y", color=PALE, linewidth=0.5)
    axes.set_axisbelow(True)
