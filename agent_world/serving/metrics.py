"""Counters of a serving process in the text format that Prometheus reads (version 0.0.4)."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the buckets of a duration."""

Labels = tuple[str, ...]


class Counter:
    """Something that only grows, apart by labels. Values of labels come from a closed set, never from a client."""

    kind = "counter"

    def __init__(self, name: str, meaning: str, labels: Sequence[str] = ()) -> None:
        self.name, self.meaning, self.labels = name, meaning, tuple(labels)
        self._values: dict[Labels, float] = {}
        self._lock = threading.Lock()

    def add(self, *values: str, amount: float = 1) -> None:
        """Count one more, or `amount`, under these values of the labels."""
        with self._lock:
            self._values[values] = self._values.get(values, 0) + amount

    def lines(self) -> Iterator[str]:
        """The samples."""
        with self._lock:
            found = sorted(self._values.items())
        for values, value in found:
            yield _sample(self.name, zip(self.labels, values, strict=True), value)


class Gauge:
    """Something that is asked for when somebody reads it."""

    kind = "gauge"

    def __init__(self, name: str, meaning: str, value: Callable[[], float]) -> None:
        self.name, self.meaning, self._value = name, meaning, value

    def lines(self) -> Iterator[str]:
        """The sample."""
        yield _sample(self.name, (), self._value())


class Histogram:
    """Durations in seconds, apart by labels."""

    kind = "histogram"

    def __init__(self, name: str, meaning: str, labels: Sequence[str] = ()) -> None:
        self.name, self.meaning, self.labels = name, meaning, tuple(labels)
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}
        self._lock = threading.Lock()

    def observe(self, seconds: float, *values: str) -> None:
        """Count one duration under these values of the labels."""
        with self._lock:
            counts = self._counts.setdefault(values, [0] * (len(SECONDS) + 1))
            counts[bisect_left(SECONDS, seconds)] += 1
            self._sums[values] = self._sums.get(values, 0.0) + seconds

    def lines(self) -> Iterator[str]:
        """The samples: buckets that include those below them, the sum, the count."""
        with self._lock:
            found = [(values, list(counts), self._sums[values]) for values, counts in sorted(self._counts.items())]
        for values, counts, total in found:
            labels = list(zip(self.labels, values, strict=True))
            reached = 0
            for bound, count in zip([*map(_number, SECONDS), "+Inf"], counts, strict=True):
                reached += count
                yield _sample(f"{self.name}_bucket", [*labels, ("le", bound)], reached)
            yield _sample(f"{self.name}_sum", labels, total)
            yield _sample(f"{self.name}_count", labels, reached)


class Metrics:
    """What one serving process counts; other parts of the application register theirs with `add`."""

    def __init__(self) -> None:
        self.requests = Counter(
            "agent_world_http_requests_total", "HTTP requests answered.", ("path", "method", "status")
        )
        self.seconds = Histogram(
            "agent_world_http_request_seconds", "From a request to the end of its answer.", ("path", "method")
        )
        self.refused = Counter("agent_world_refusals_total", "What was refused, by the code of the refusal.", ("code",))
        self.calls = Counter("agent_world_tool_calls_total", "Tool calls over MCP.", ("served", "tool", "status"))
        self.call_seconds = Histogram(
            "agent_world_tool_call_seconds", "Time of a tool call over MCP, waiting included.", ("served",)
        )
        self.sessions = Counter("agent_world_mcp_sessions_total", "Sessions that MCP clients opened.", ("served",))
        self.outcomes = Counter(
            "agent_world_mcp_episodes_total", "Episodes over MCP that ended, by outcome.", ("served", "outcome")
        )
        self._all: list[Counter | Gauge | Histogram] = [
            self.requests, self.seconds, self.refused, self.calls, self.call_seconds, self.sessions, self.outcomes,
        ]  # fmt: skip

    def add(self, metric: Counter | Gauge | Histogram) -> None:
        """Publish one more."""
        self._all.append(metric)

    def render(self) -> str:
        """All of them as text."""
        lines: list[str] = []
        for metric in self._all:
            lines += [f"# HELP {metric.name} {metric.meaning}", f"# TYPE {metric.name} {metric.kind}", *metric.lines()]
        return "\n".join(lines) + "\n"


def _sample(name: str, labels: Iterable[tuple[str, str]], value: float) -> str:
    inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
    return f"{name}{{{inside}}} {_number(value)}" if inside else f"{name} {_number(value)}"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
