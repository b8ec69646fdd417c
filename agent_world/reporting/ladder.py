"""The validity ladder: how many candidates each gate let through, and what it said of the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

GATE_ORDER = (
    "theme", "match", "database", "complexify", "tool", "environment",
    "rubric", "leak", "evidence", "null", "gold", "wrong_answer", "state", "random", "solver",
    "trajectory", "checkpoint",
)  # fmt: skip


def ladder(verdicts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row a gate, in the order of the pipeline: candidates, accepted, and the reasons of the rejected."""
    by_gate: dict[str, list[Mapping[str, Any]]] = {}
    for row in verdicts:
        by_gate.setdefault(row["gate"], []).append(row)
    known = {gate: place for place, gate in enumerate(GATE_ORDER)}
    rows = []
    for gate in sorted(by_gate, key=lambda gate: (known.get(gate, len(known)), gate)):
        rejected = [row for row in by_gate[gate] if not row["accepted"]]
        reasons = Counter(row["reason"] for row in rejected)
        rows.append(
            {
                "gate": gate,
                "candidates": len(by_gate[gate]),
                "accepted": len(by_gate[gate]) - len(rejected),
                "reasons": [f"{reason} {count}" for reason, count in reasons.most_common()],
            }
        )
    return rows


def failures(verdicts: Sequence[Mapping[str, Any]], each: int = 3) -> list[dict[str, Any]]:
    """Up to `each` real rejections of every gate, of different reasons first."""
    rows = []
    for gate in dict.fromkeys(row["gate"] for row in ladder(verdicts)):
        rejected = [row for row in verdicts if row["gate"] == gate and not row["accepted"]]
        seen: Counter[str] = Counter()
        ranked = []
        for row in rejected:
            ranked.append((seen[row["reason"]], len(ranked), row))
            seen[row["reason"]] += 1
        for _, _, row in sorted(ranked, key=lambda item: item[:2])[:each]:
            rows.append({k: row[k] for k in ("gate", "subject", "environment", "reason", "evidence")})
    return rows
