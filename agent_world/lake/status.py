"""What a lake holds, in a few lines: tables, gates, runs that have not ended, alarms."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from agent_world.lake.rows import having
from lake_schemas import TABLES

if TYPE_CHECKING:
    from agent_world.lake.view import View


class Line(NamedTuple):
    """One line: so many things of `name`; `detail` in words."""

    section: str
    name: str
    number: int
    detail: str


def status(view: View) -> list[Line]:
    """Every line there is to say; empty tables are left out."""
    return [*_tables(view), *_gates(view), *_unfinished(view), *_alarms(view)]


def _tables(view: View) -> Iterator[Line]:
    for name, spec in TABLES.items():
        table = view.table(name)
        if table.num_rows:
            states = Counter(table.column("state").to_pylist()) if spec.shape == "artifact" else {}
            yield Line("table", name, table.num_rows, ", ".join(f"{n} {state}" for state, n in sorted(states.items())))


def _gates(view: View) -> Iterator[Line]:
    verdicts: dict[tuple[str, int], list[str | None]] = defaultdict(list)
    for row in view.rows("gate_verdicts", columns=["gate", "round", "accepted", "reason"]):
        verdicts[row["gate"], row["round"] or 0].append(None if row["accepted"] else row["reason"] or "no reason")
    for (gate, round_), reasons in sorted(verdicts.items()):
        dropped = Counter(reason for reason in reasons if reason is not None)
        worst = ", ".join(f"{n} {reason}" for reason, n in dropped.most_common(3))
        detail = f"{reasons.count(None)} accepted" + (f"; {worst}" if worst else "")
        yield Line("gate", f"{gate}, round {round_}", len(reasons), detail)


def _unfinished(view: View) -> Iterator[Line]:
    last = {row["run"]: row for row in view.rows("runs", columns=["run", "status", "event_id"])}
    batches = view.table("batches").column("batch").to_pylist()
    for run, row in last.items():
        if row["status"] == "started":
            # Batches carry the ids of Dagster's runs, of which a loop has many: it is counted from its mark on.
            [mark] = having(view.table("events"), event_id=row["event_id"]).column("batch").to_pylist()
            since = len(batches) - batches.index(mark) - 1
            yield Line("unfinished", run, since, "batches since it started; go on with `agent-world run --resume`")


def _alarms(view: View) -> Iterator[Line]:
    events = view.table("events")
    alarms = Counter(having(events, event_type="diverged").column("artifact_id").to_pylist())
    for artifact, count in sorted(alarms.items()):
        yield Line("alarm", artifact, count, "one derivation gave more than one content: see events of type 'diverged'")
