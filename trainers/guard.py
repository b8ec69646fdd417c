"""The collapse guard: the watch that stops a training run that dies, before it has unlearnt everything.

A collapsing policy shows it in three numbers long before the reward is gone for good: it stops calling tools, its
entropy falls to nothing or climbs without bound, or its episodes no longer end in an answer. One that makes fewer calls
and passes more has found shorter ways.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardLimits:
    """Bounds on means over `window` steps. The first window is what later ones are compared with."""

    window: int = 4
    least_calls: float = 0.5  # of the calls at the start
    least_entropy: float = 0.0005  # nats
    most_entropy: float = 3.0  # times the entropy at the start, and at least `entropy_floor`
    entropy_floor: float = 1.0  # nats
    most_truncated: float = 0.5  # share of rollouts without an answer, unless it was so at the start


@dataclass(slots=True)
class CollapseGuard:
    """Takes the metrics of each step; `reason` says why the run must stop, empty while it is healthy."""

    limits: GuardLimits = field(default_factory=GuardLimits)
    reason: str = ""
    _start: dict[str, float] | None = None
    _recent: deque[dict[str, float]] = field(default_factory=deque)

    def watch(self, *, reward: float, tool_calls: float, entropy: float, truncated: float) -> bool:
        """Note one step (means over its rollouts); true while the run is healthy."""
        self._recent.append({"reward": reward, "calls": tool_calls, "entropy": entropy, "truncated": truncated})
        if len(self._recent) < self.limits.window:
            return True
        mean = {key: sum(step[key] for step in self._recent) / len(self._recent) for key in self._recent[0]}
        self._recent.popleft()
        if self._start is None:
            self._start = mean
            return True
        self.reason = self._complaint(mean, self._start)
        return not self.reason

    def _complaint(self, now: dict[str, float], start: dict[str, float]) -> str:
        limits = self.limits
        if now["calls"] < limits.least_calls * start["calls"] and now["reward"] <= start["reward"]:
            return f"tool calls fell from {start['calls']:.2f} to {now['calls']:.2f} a rollout"
        if now["entropy"] < min(limits.least_entropy, start["entropy"] / 2):
            return f"entropy fell from {start['entropy']:.4f} to {now['entropy']:.4f} nats"
        if now["entropy"] > max(limits.most_entropy * start["entropy"], limits.entropy_floor):
            return f"entropy rose from {start['entropy']:.3f} to {now['entropy']:.3f} nats"
        if now["truncated"] > max(limits.most_truncated, (1 + start["truncated"]) / 2):
            shares = f"{now['truncated']:.0%}, {start['truncated']:.0%} at the start"
            return f"rollouts end without an answer ({shares})"
        return ""
