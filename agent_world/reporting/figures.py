"""What the report says, as plain rows read from the lake; the page and the command line show the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from agent_world.arena.evaluation import Interval, paired_difference, pass_rate
from agent_world.identity import canonical_json

if TYPE_CHECKING:
    from agent_world.world import World

Rows = list[dict[str, Any]]


def points(world: World) -> list[str]:
    """The evaluated points in the order they were measured."""
    return list(dict.fromkeys(row["point"] for row in world.read("evaluations", columns=["point"])))


def rounds_table(world: World) -> Rows:
    """One row a point: pass rates on the held-out set, greedy and sampled, with 95 % intervals over tasks."""
    evaluations = world.read("evaluations")
    weak = weak_environments(world)
    rows = []
    for point in points(world):
        own = [row for row in evaluations if row["point"] == point]
        sampled = [row for row in own if row["mode"] == "sampled"]
        rows.append(
            {
                "point": point,
                "greedy": shown(pass_rate([row for row in own if row["mode"] == "greedy"])),
                "sampled": shown(pass_rate(sampled)),
                "graph tasks": shown(pass_rate([row for row in sampled if row["kind"] == "graph"])),
                "program tasks": shown(pass_rate([row for row in sampled if row["kind"] == "program"])),
                "weak environments": shown(pass_rate([row for row in sampled if row["environment"] in weak])),
                "tasks": len({row["task"] for row in own}),
            }
        )
    return rows


def rates_by_point(world: World) -> dict[str, list[tuple[str, float, float, float]]]:
    """Mode to (point, rate, low, high) of each evaluated point."""
    evaluations = world.read("evaluations")
    series: dict[str, list[tuple[str, float, float, float]]] = {}
    for mode in ("greedy", "sampled"):
        for point in points(world):
            rate = pass_rate([row for row in evaluations if row["point"] == point and row["mode"] == mode])
            if rate:
                series.setdefault(mode, []).append((point, rate.estimate, rate.low, rate.high))
    return series


def differences_table(world: World) -> Rows:
    """The paired differences of sampled pass rates between points, on all tasks and on the weak environments.

    Each round's policy stands beside the one before it and beside its control, the last also beside the base.
    """
    sampled = [row for row in world.read("evaluations") if row["mode"] == "sampled"]
    weak = weak_environments(world)
    rows = []
    for before, after in _compared(max((row["round"] for row in sampled), default=0)):
        for name, chosen in (("all", None), ("weak", weak)):
            pair = [
                [r for r in sampled if r["point"] == point and (chosen is None or r["environment"] in chosen)]
                for point in (after, before)
            ]
            found = paired_difference(*pair) if all(pair) else None
            if found:
                rows.append(
                    {
                        "from": before, "to": after, "environments": name, "difference": shown(found),
                        "tasks": found.tasks, "beyond its interval": found.excludes_zero,
                    }
                )  # fmt: skip
    return rows


def _compared(rounds: int) -> list[tuple[str, str]]:
    by_round = [
        pair
        for number in range(1, rounds + 1)
        for pair in ((f"pi{number - 1}", f"pi{number}"), (f"control{number}", f"pi{number}"))
    ]
    return [("sft", "pi0"), *by_round, *([("pi0", f"pi{rounds}")] if rounds > 1 else [])]


def weak_environments(world: World) -> set[str]:
    """Every environment that some round found weak."""
    return {weakness["environment"] for row in world.read("diagnoses") for weakness in row["weak"]}


def environments_table(world: World) -> Rows:
    """One row an environment: where it comes from, what it holds, how many tasks it gave."""
    themes = {row["version_id"]: row for row in world.read("themes")}
    databases = {row["version_id"]: row for row in world.read("databases")}
    tasks = world.read("tasks", where={"state": "created"}, columns=["partition", "accepted", "purpose", "tier"])
    accepted = Counter(row["partition"] for row in tasks if row["accepted"])
    trained = Counter(
        row["partition"] for row in tasks if row["tier"] == "train" and row["purpose"] in ("general", "targeted")
    )
    shown = Counter(row["partition"] for row in tasks if row["tier"] == "practice")
    rows = []
    for row in world.read("environments", where={"state": "created"}):
        theme, database = themes[row["theme"]], databases[row["database_version"]]
        rows.append(
            {
                "environment": row["environment_id"],
                "title": row["title"],
                "source": theme["source"],
                "data": theme["matched_source"],
                "category": row["category"],
                "tables": row["tables"],
                "rows": sum(table["rows"] for table in database["tables"]),
                "documents": len(database["documents"]),
                "tools": row["tools"],
                "writing": row["writing_tools"],
                "tasks": accepted[row["environment_id"]],
                "training tasks": trained[row["environment_id"]],
                "demonstrations": shown[row["environment_id"]],
            }
        )
    return rows


def richness_table(world: World) -> Rows:
    """One row a database version: how each complexification round enriched it."""
    return [
        {"environment": row["database_id"], "round": row["round"], **(row["richness"] or {})}
        for row in world.read("databases")
        if not any(table["workflow"] for table in row["tables"])
    ]


def flawed_tools_table(world: World) -> Rows:
    """One row a failing test of a kept tool: what was called, what was expected, what came back, each shortened."""
    kept = world.read("tools", where={"accepted": True})
    flawed = {row["version_id"]: row for row in kept if row["accuracy"] is not None and row["accuracy"] < 1}
    failing = {row["version_id"]: row for row in world.read("tool_tests", where={"passed": False})}
    rows = []
    for edge in world.read("edges", where={"role": "tool"}):
        if edge["parent"] in flawed and edge["child"] in failing:
            tool, test = flawed[edge["parent"]], failing[edge["child"]]
            refusal = {"refusal": test["refusal"]} if test["refusal"] else None
            rows.append(
                {
                    "tool": tool["tool_id"],
                    "accuracy": tool["accuracy"],
                    "test": test["name"],
                    "reason": test["reason"],
                    "call": "; ".join(
                        f"{call['tool']} {_short(call['arguments'])}" for call in [*test["before"], test["call"]]
                    ),
                    "expected": _short(refusal or test["expect"]),
                    "seen": _short(test["seen"]),
                }
            )
    return rows


def _short(value: Any, length: int = 200) -> str:
    text = canonical_json(value)
    return text if len(text) <= length else f"{text[: length - 1]}…"


def solver_table(world: World) -> Rows:
    """How many candidates reached the solver, in how many of its five runs it was consistent and right, and its no.

    Practice tasks are left out: of them only those that it can do are kept, in one run.
    """
    rows = [row for row in world.read("tasks") if row["solver_passes"] is not None and row["purpose"] != "practice"]
    counts = Counter((row["kind"], row["solver_passes"]) for row in rows)
    found = []
    for kind in sorted({row["kind"] for row in rows}):
        own = [row for row in rows if row["kind"] == kind]
        found.append(
            {
                "kind": kind,
                "candidates": len(own),
                "rejected share": sum(row["tier"] == "hard" for row in own) / len(own),
                **{f"{passes} of 5": counts[kind, passes] for passes in range(6)},
            }
        )
    return found


def hard_examples(world: World, count: int = 5) -> Rows:
    """Tasks that passed every gate but the solver's, with what its runs got wrong."""
    rows = world.read("tasks", where={"tier": "hard"})
    said = {row["subject"]: row for row in world.read("gate_verdicts", where={"gate": "solver", "accepted": False})}
    examples = []
    for row in rows[:: max(1, len(rows) // count)][:count]:
        evidence = said[row["version_id"]]["evidence"] if row["version_id"] in said else {}
        examples.append(
            {
                "environment": row["partition"], "kind": row["kind"], "calls": row["knobs"]["calls"],
                "instruction": row["instruction"], "failed": evidence.get("failed", []),
            }
        )  # fmt: skip
    return examples


def calls_by_kind(world: World) -> dict[str, dict[int, int]]:
    """Accepted tasks by number of gold calls, reading and writing apart."""
    found: dict[str, Counter[int]] = {"reading": Counter(), "writing": Counter()}
    for row in world.read("tasks", where={"accepted": True}):
        found["writing" if row["state_diff"] else "reading"][row["knobs"]["calls"]] += 1
    return {kind: dict(counts) for kind, counts in found.items()}


def weak_table(world: World) -> Rows:
    """The weak set of each round with its guideline."""
    rows = []
    for diagnosis in world.read("diagnoses"):
        guidelines = {guideline["environment"]: guideline for guideline in diagnosis["guidelines"]}
        for weakness in diagnosis["weak"]:
            guideline = guidelines[weakness["environment"]]
            rows.append(
                {
                    "round": diagnosis["round"],
                    "environment": weakness["environment"],
                    "category": weakness["category"],
                    "pass rate": f"{weakness['pass_rate']:.2f} [{weakness['low']:.2f}, {weakness['high']:.2f}]",
                    "samples": weakness["samples"],
                    "failures": [f"{label} {count}" for label, count in weakness["labels"].items()],
                    "guideline": guideline["text"],
                }
            )
    return rows


def errors_table(world: World) -> Rows:
    """How often the episodes of each category failed in each way, of each round, with 95 % intervals."""
    found = [(row["round"], error) for row in world.read("diagnoses") for error in _by_category(row)]
    labels: Counter[str] = Counter()
    for _, error in found:
        labels.update({rate["label"]: rate["count"] for rate in error["rates"]})
    rows = []
    for round, error in found:
        said = {r["label"]: f"{r['rate']:.2f} [{r['low']:.2f}, {r['high']:.2f}]" for r in error["rates"]}
        cells = {label: said.get(label) for label, _ in labels.most_common()}
        rows.append({"round": round, "category": error["name"], "episodes": error["samples"], **cells})
    return rows


def errors_by_category(world: World) -> dict[str, dict[str, float]]:
    """Round and category to the share of its episodes that failed in each way, harness errors left out."""
    return {
        f"r{row['round']:02d} {error['name']}": {
            rate["label"]: rate["rate"] for rate in error["rates"] if rate["label"] != "infra"
        }
        for row in world.read("diagnoses")
        for error in _by_category(row)
    }


def _by_category(diagnosis: dict[str, Any]) -> Rows:
    return [error for error in diagnosis["errors"] if error["by"] == "category"]


def diagnosis_scores_table(world: World) -> Rows:
    """One row a policy with a planted fault: what the diagnosis found, and how right that is."""
    return [
        {
            "planted fault": row["policy"],
            "environments": row["environments"],
            "episodes": row["episodes"],
            "struck": len(row["planted"]),
            "found weak": len(row["found"]),
            **{
                f"{what} {measure}": row[f"{what}_{measure}"]
                for what in ("environment", "label")
                for measure in ("precision", "recall")
            },
            "found otherwise": [
                f"{key}: {row['found'].get(key, 'not found')}"
                for key in sorted({*row["found"], *row["planted"]})
                if row["found"].get(key) != row["planted"].get(key)
            ],
        }
        for row in world.read("diagnosis_scores", where={"state": "created"})
    ]


GRPO_CURVES = ("reward_mean", "entropy", "kl_ref")


def curves(
    world: World, metrics: Sequence[str], stages: Collection[str] | None = None
) -> dict[str, dict[str, list[tuple[int, float]]]]:
    """Training curves of these stages, or of all: metric to stage to (step, value)."""
    found: dict[str, dict[str, list[tuple[int, float]]]] = {metric: {} for metric in metrics}
    for row in world.read("training_metrics"):
        if row["metric"] in found and (stages is None or row["stage"] in stages):
            found[row["metric"]].setdefault(row["stage"], []).append((row["step"], row["value"]))
    return {metric: stages for metric, stages in found.items() if stages}


def shown(interval: Interval | None) -> str | None:
    """An estimate with its interval, for a table."""
    return f"{interval.estimate:.3f} [{interval.low:.3f}, {interval.high:.3f}]" if interval else None
