"""The validity ladder: how many candidates each gate let through, and what it said of the others."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lake_schemas.gate_verdicts import GATE_ORDER
from lake_schemas.tasks import PRACTISED

if TYPE_CHECKING:
    from agent_world.world import World

Verdicts = Sequence[Mapping[str, Any]]
"""Rows of `gate_verdicts`."""


class Ladders(NamedTuple):
    """The verdicts of a lake, those on tasks that are only demonstrated apart from all others."""

    rewarded: Verdicts
    practised: Verdicts
    """Of these tasks and their demonstrations; with a row `demonstration` for each task that every gate let through: a
    run of the solver passed or none did."""


def ladders(world: World) -> Ladders:
    """All verdicts, so dealt out that of the gates of a task each has for candidates what the one before accepted."""
    tasks = world.read("tasks", columns=["version_id", "purpose"])
    practice = {row["version_id"] for row in tasks if row["purpose"] in PRACTISED}
    runs = world.read("trajectories", columns=["version_id", "task"])
    shows = {row["version_id"]: row["task"] for row in runs if row["task"] in practice}
    verdicts = world.read("gate_verdicts")
    practised = [row for row in verdicts if row["subject"] in practice or row["subject"] in shows]
    return Ladders(
        rewarded=[row for row in verdicts if row["subject"] not in practice and row["subject"] not in shows],
        practised=[*practised, *_demonstrations(practised, shows)],
    )


def ladder(verdicts: Verdicts) -> list[dict[str, Any]]:
    """One row a gate, in the order of the pipeline: what it judges, candidates, accepted, why others were rejected."""
    rows = []
    for gate, own in _by_gate(verdicts).items():
        rejected = [row for row in own if not row["accepted"]]
        reasons = Counter(row["reason"] for row in rejected)
        rows.append(
            {
                "gate": gate,
                "of": list(dict.fromkeys(row["subject_kind"] for row in own)),
                "candidates": len(own),
                "accepted": len(own) - len(rejected),
                "reasons": [f"{reason} {count}" for reason, count in reasons.most_common()],
            }
        )
    return rows


def ladder_by_environment(verdicts: Verdicts) -> list[dict[str, Any]]:
    """One row an environment, author and round; a column a gate, which says `accepted/candidates`."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for row in verdicts:
        if row["environment"] is not None:
            groups[row["environment"], row["author"], row["round"]].append(row)
    gates = _by_gate([row for own in groups.values() for row in own])
    rows = []
    for (environment, author, round), own in sorted(groups.items()):
        counts = {row["gate"]: f"{row['accepted']}/{row['candidates']}" for row in ladder(own)}
        group = {"environment key": environment, "author": author, "round": round}  # a gate is named `environment`
        rows.append(group | {gate: counts.get(gate) for gate in gates})
    return rows


def failures(verdicts: Verdicts, each: int = 3) -> list[dict[str, Any]]:
    """Up to `each` real rejections of every gate, of different reasons first."""
    rows = []
    for own in _by_gate(verdicts).values():
        rejected = [row for row in own if not row["accepted"]]
        seen: Counter[str] = Counter()
        ranked = []
        for row in rejected:
            ranked.append((seen[row["reason"]], len(ranked), row))
            seen[row["reason"]] += 1
        for _, _, row in sorted(ranked, key=lambda item: item[:2])[:each]:
            rows.append({k: row[k] for k in ("gate", "subject", "environment", "reason", "evidence")})
    return rows


def _by_gate(verdicts: Verdicts) -> dict[str, list[Mapping[str, Any]]]:
    """The verdicts of each gate, in the order of the pipeline; gates that it does not know come last."""
    by_gate: dict[str, list[Mapping[str, Any]]] = {gate: [] for gate in GATE_ORDER}
    for row in sorted(verdicts, key=lambda row: row["gate"]):
        by_gate.setdefault(row["gate"], []).append(row)
    return {gate: own for gate, own in by_gate.items() if own}


def _demonstrations(verdicts: Verdicts, shows: Mapping[str, str]) -> list[dict[str, Any]]:
    """A row for each task that no gate rejected: was it demonstrated? `shows` names the task of each trajectory."""
    shown = {shows[row["subject"]] for row in verdicts if row["gate"] == "trajectory"}
    of_tasks = [row for row in verdicts if row["subject_kind"] == "task"]
    rejected = {row["subject"] for row in of_tasks if not row["accepted"]}
    passed = {row["subject"]: row for row in of_tasks if row["subject"] not in rejected}
    return [
        {
            **row, "gate": "demonstration", "accepted": task in shown, "evidence": {},
            "reason": None if task in shown else "no_run_passes",
        }
        for task, row in passed.items()
    ]  # fmt: skip
