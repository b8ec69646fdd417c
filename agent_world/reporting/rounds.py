"""What each round took and brought: by which part of its training, where, and beside a control without a diagnosis."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agent_world.arena.evaluation import Interval, paired_difference, pass_rate
from agent_world.reporting.figures import Rows, shown

if TYPE_CHECKING:
    from agent_world.world import World

Samples = Sequence[Mapping[str, Any]]


def trainings_table(world: World) -> Rows:
    """One row a checkpoint: what it was trained from, on which demonstrations or tasks, and for how many steps.

    A demonstration is new in the round that made it, and rehearsed later. Tasks of GRPO were found by trying more
    (`tried`). What the checkpoint gate rejected is not used: its line goes on from what it was trained from.
    """
    shown: dict[str, list[str]] = defaultdict(list)
    for edge in world.read("edges", where={"role": "demonstration"}, columns=["parent", "child"]):
        shown[edge["child"]].append(edge["parent"])
    made = {
        row["version_id"]: row["round"]
        for row in world.read("trajectories", where={"purpose": "demonstration"}, columns=["version_id", "round"])
    }
    sets = {row["version_id"]: row for row in world.read("task_sets")}
    names = {row["version_id"]: row["name"] for row in world.read("checkpoints")}
    rows = []
    for row in world.read("checkpoints", where={"state": "created"}):
        rounds, tasks = [made[parent] for parent in shown[row["version_id"]]], sets.get(row["task_set"])
        rows.append(
            {
                "checkpoint": row["name"], "method": row["method"], "from": names.get(row["base"]),
                "steps": row["steps_done"],
                "new demonstrations": rounds.count(row["round"]) if rounds else None,
                "rehearsed": len(rounds) - rounds.count(row["round"]) if rounds else None,
                "tasks": tasks and tasks["size"],
                "tried": len(tasks["passes"]) if tasks and tasks["passes"] else None,
                "used": row["accepted"],
            }
        )  # fmt: skip
    return rows


def gains_table(world: World) -> Rows:
    """One row a part of each round's training: what it added to the sampled pass rate, and its share of the gain.

    Shares are stated only where the whole round gained.
    """
    samples = _sampled(world)
    rows = []
    for round in _rounds(samples):
        before = "untrained" if round == 0 else f"pi{round - 1}"
        middle = "sft" if round == 0 else f"pi{round}-demonstrations"
        whole = _difference(samples, before, f"pi{round}")
        for part, start, end in (("demonstrations", before, middle), ("GRPO", middle, f"pi{round}")):
            found = _difference(samples, start, end)
            if found and whole:
                rows.append(
                    {
                        "round": round, "part": part, "from": start, "to": end, "gain": shown(found),
                        "gain of the round": shown(whole),
                        "share of it": found.estimate / whole.estimate if whole.estimate > 0 else None,
                    }
                )  # fmt: skip
    return rows


def rounds_by_set_table(world: World) -> Rows:
    """One row a round and set of environments: pass rates before and after, and paired differences beside the control.

    The sets are all environments, the weak set of the round's diagnosis, and those of it that got targeted tasks.
    """
    samples = _sampled(world)
    rows = []
    for diagnosis in world.read("diagnoses", where={"state": "created"}):
        round = diagnosis["round"]
        before, after, control = f"pi{round - 1}", f"pi{round}", f"control{round}"
        for name, chosen in _sets(world, diagnosis):
            own = [row for row in samples if chosen is None or row["environment"] in chosen]
            gain = _difference(own, before, after)
            if gain:
                rows.append(
                    {
                        "round": round, "environments": name, "tasks": gain.tasks,
                        "before": shown(_rate(own, before)), "after": shown(_rate(own, after)),
                        "gain": shown(gain),
                        "control": shown(_rate(own, control)),
                        "gain of the control": shown(_difference(own, before, control)),
                        "beyond the control": shown(_difference(own, control, after)),
                    }
                )  # fmt: skip
    return rows


def _sets(world: World, diagnosis: Mapping[str, Any]) -> list[tuple[str, Collection[str] | None]]:
    weak = {weakness["environment"] for weakness in diagnosis["weak"]}
    made = world.read("tasks", where={"purpose": "targeted", "round": diagnosis["round"], "accepted": True})
    return [("all", None), ("weak", weak), ("targeted", {row["partition"] for row in made})]


def _sampled(world: World) -> Samples:
    return world.read("evaluations", where={"mode": "sampled"})


def _rounds(samples: Samples) -> list[int]:
    return sorted({row["round"] for row in samples})


def _rate(samples: Samples, point: str) -> Interval | None:
    return pass_rate([row for row in samples if row["point"] == point])


def _difference(samples: Samples, before: str, after: str) -> Interval | None:
    return paired_difference(*([row for row in samples if row["point"] == point] for point in (after, before)))
