"""Diagnosis `delta`: from failed traces to the ranked weak set `W` and a guideline for each of its environments.

Source: method.md 7. What the paper asks of a model with an interpreter is done here by rules over typed failures, so
that it is the same on every machine and can be scored on planted faults (scoring.py).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any, Literal

from agent_world.arena.labels import Failure, label_failure
from agent_world.arena.model import Diagnosis, ErrorDistribution, FailureLabel, Guideline, LabelRate, Weakness
from agent_world.environments.model import Environment
from agent_world.rollouts.model import Trajectory
from agent_world.tasks.model import Task

FAILURE_FLOOR = 0.1
"""An environment is weak only when its failure rate is above this with confidence."""

_SHARE_TO_NAME = 0.25
"""A tool, edge or pattern is named in a guideline when it takes at least this share of the failures."""

_REPEATED = 0.03
"""A database gives too little variety where more than this share of the pairs of training tasks have one plan shape."""

Shape = tuple[str, ...]

ABILITIES: Mapping[FailureLabel, str] = {
    "wrong_tool": "choosing the tool that the request needs",
    "wrong_argument": "passing the right value to a tool",
    "missing_step": "making every step that the request needs",
    "early_stop": "going on until everything asked for is done",
    "loop": "moving on after a result instead of asking again",
    "bad_format": "giving calls and answers in the right form",
    "wrong_final_state": "changing exactly what was asked and nothing else",
    "wrong_answer": "reporting what the tools returned",
    "infra": "nothing: the harness failed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One judged episode of the arena with its task."""

    trajectory: Trajectory
    task: Task
    environment: str


def wilson(passes: int, samples: int, z: float = 1.96) -> tuple[float, float]:
    """The 95 % Wilson interval of a rate; (0, 1) without samples."""
    if not samples:
        return 0.0, 1.0
    rate = passes / samples
    centre = (rate + z * z / (2 * samples)) / (1 + z * z / samples)
    half = z * ((rate * (1 - rate) + z * z / (4 * samples)) / samples) ** 0.5 / (1 + z * z / samples)
    return min(rate, max(0.0, centre - half)), max(rate, min(1.0, centre + half))  # it holds the rate, rounding or not


def diagnose(
    attempts: Sequence[Attempt],
    *,
    round: int,
    policy_version: str,
    environments: Mapping[str, Environment],
    categories: Mapping[str, str],
    training_shapes: Mapping[str, Sequence[Shape]],
) -> Diagnosis:
    """Rank the weak environments of one arena round and say what each should practise.

    Args:
        attempts: every judged episode of the round; harness errors are counted as such and never as weakness.
        round: the round diagnosed.
        policy_version: the policy that made the attempts.
        environments: metadata by environment key.
        categories: environment key to first-level category.
        training_shapes: the plan shape of every training task, by environment key.
    """
    by_environment: dict[str, list[tuple[Attempt, Failure | None]]] = defaultdict(list)
    for attempt in attempts:
        by_environment[attempt.environment].append((attempt, label_failure(attempt.trajectory, attempt.task)))
    weak, guidelines = [], []
    for key, judged in sorted(by_environment.items()):
        weakness = _weakness(key, categories.get(key, ""), judged)
        if weakness:
            weak.append(weakness)
            guidelines.append(_guideline(key, judged, environments[key], training_shapes.get(key, ())))
    order = sorted(range(len(weak)), key=lambda i: (-weak[i].severity, weak[i].environment))
    ranked = tuple(weak[i] for i in order)
    return Diagnosis(
        round=round,
        policy_version=policy_version,
        weak=ranked,
        guidelines=tuple(guidelines[i] for i in order),
        errors=_errors(by_environment, categories),
        summary=_summary(ranked, len(by_environment)),
    )


def _weakness(key: str, category: str, judged: Sequence[tuple[Attempt, Failure | None]]) -> Weakness | None:
    counted = [failure for _, failure in judged if failure is None or failure.label != "infra"]
    passes = sum(failure is None for failure in counted)
    low, high = wilson(passes, len(counted))
    if not counted or 1 - high <= FAILURE_FLOOR:
        return None
    labels: Counter[FailureLabel] = Counter(failure.label for failure in counted if failure)
    return Weakness(
        environment=key,
        category=category,
        pass_rate=passes / len(counted),
        low=low,
        high=high,
        samples=len(counted),
        labels=dict(labels.most_common()),
        severity=round(1 - high, 6),
    )


def _guideline(
    key: str, judged: Sequence[tuple[Attempt, Failure | None]], environment: Environment, shapes: Sequence[Shape]
) -> Guideline:
    failed = [(attempt, failure) for attempt, failure in judged if failure and failure.label != "infra"]
    label = Counter(failure.label for _, failure in failed).most_common(1)[0][0]
    tools = _named(failure.missed for _, failure in failed)
    edges = _named((f.after, f.missed) if f.after and f.missed else None for _, f in failed)
    known = {tool.name: tool for tool in environment.tools}
    patterns = _named(known[f.missed].pattern if f.missed in known else None for _, f in failed)
    kinds = _named(attempt.task.kind for attempt, _ in failed)
    calls = sorted(attempt.task.knobs.calls for attempt, _ in failed)
    low, high = calls[len(calls) // 10], calls[-1 - len(calls) // 10]
    writing = sum(attempt.task.writes for attempt, _ in failed) / len(failed)
    writes = True if writing > 0.75 else False if writing < 0.25 else None
    enrich = repeated(shapes) > _REPEATED
    return Guideline(
        environment=key,
        ability=label,
        tools=tools,
        edges=edges,
        patterns=patterns,
        writes=writes,
        kinds=kinds if len(kinds) == 1 else (),
        knobs={"calls": (float(low), float(high))},
        enrich=enrich,
        text=_text(environment.title, label, tools, (low, high), enrich),
    )


def repeated(shapes: Sequence[Shape]) -> float:
    """The share of all pairs of tasks that have the same plan shape; 1 where there is no pair.

    Unlike the number of distinct shapes for each task it does not fall or rise with the number of tasks, so that one
    bound does for all profiles.
    """
    pairs = comb(len(shapes), 2)
    return sum(comb(count, 2) for count in Counter(shapes).values()) / pairs if pairs else 1.0


def _named(items: Iterable[Any]) -> tuple[Any, ...]:
    """Items that take a fair share of the failures, most frequent first; None is counted but never named."""
    counts = Counter(items)
    total = sum(counts.values())
    return tuple(
        item
        for item, n in sorted(counts.items(), key=lambda pair: (-pair[1], str(pair[0])))
        if item is not None and n >= _SHARE_TO_NAME * total
    )


def _errors(
    by_environment: Mapping[str, Sequence[tuple[Attempt, Failure | None]]], categories: Mapping[str, str]
) -> tuple[ErrorDistribution, ...]:
    failures = {key: [failure for _, failure in judged] for key, judged in sorted(by_environment.items())}
    by_category: dict[str, list[Failure | None]] = defaultdict(list)
    for key, own in failures.items():
        by_category[categories.get(key, "")] += own
    return (
        *(_distribution("environment", key, own) for key, own in failures.items()),
        *(_distribution("category", category, own) for category, own in sorted(by_category.items())),
    )


def _distribution(
    by: Literal["environment", "category"], name: str, failures: Sequence[Failure | None]
) -> ErrorDistribution:
    counts: Counter[FailureLabel] = Counter(failure.label for failure in failures if failure)
    outcomes = len(failures) - counts["infra"]
    rates = []
    for label, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        samples = len(failures) if label == "infra" else outcomes
        low, high = wilson(count, samples)
        rates.append(LabelRate(label=label, count=count, samples=samples, rate=count / samples, low=low, high=high))
    return ErrorDistribution(by=by, name=name, samples=outcomes, rates=tuple(rates))


def _text(title: str, label: FailureLabel, tools: Sequence[str], calls: tuple[int, int], enrich: bool) -> str:
    at = f" at {', '.join(tools)}" if tools else ""
    more = " Enrich the database first: training knows few different plans here." if enrich else ""
    return f"{title}: practise {ABILITIES[label]}{at}, in tasks of {calls[0]} to {calls[1]} calls.{more}"


def _summary(weak: Sequence[Weakness], tested: int) -> str:
    if not weak:
        return f"No weak environment among {tested} tested."
    worst = weak[0]
    return (
        f"{len(weak)} of {tested} environments are weak; the weakest is {worst.environment} with a pass rate of "
        f"{worst.pass_rate:.2f} [{worst.low:.2f}, {worst.high:.2f}] over {worst.samples} samples."
    )
