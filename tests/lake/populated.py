"""A small lake in which every view has something to say, in two steps: what is true after the first changes later."""

from __future__ import annotations

from agent_world.lake import Lake
from assets.failures import FAILED
from assets.verdicts import verdict

KEY, OTHER = "library-1", "harbour-2"


def populate(lake: Lake) -> int:
    """Fill the lake; gives the version of events after the first step."""
    with lake.begin("first", OTHER, derivation="d", run_id="r1") as batch:
        _environment(batch, OTHER)
        there = [_task(batch, OTHER, 10 + n, "held_out", "train", calls=n + 2) for n in range(3)]
        _task(batch, OTHER, 30, "general", "hard", calls=4)
        _judge(batch, there)
        verdict(batch, "theme", "theme", f"{OTHER}-theme", accepted=True)
    with lake.begin("first", KEY, derivation="d", run_id="r1") as batch:
        environment = _environment(batch, KEY)
        kept = [_task(batch, KEY, n, "general", "train", calls=n % 3 + 1) for n in range(4)]
        here = [_task(batch, KEY, 10 + n, "held_out", "train", calls=n + 2) for n in range(3)]
        shown = [_task(batch, KEY, 20 + n, "practice", "practice" if n else None, calls=1) for n in range(3)]
        _judge(batch, [*kept, *here, *shown])
        verdict(batch, "leak", "task", shown[0], accepted=False, reason="identifier", environment=KEY)
        runs = [_episode(batch, environment, task, "demonstration", sample=0) for task in shown[1:]]
        verdict(batch, "trajectory", "trajectory", runs[0], accepted=True, environment=KEY)
        for sample in range(3):
            _episode(batch, environment, kept[0], "solver", sample=sample, passed=sample > 0)
    with lake.begin("trained", derivation="d", run_id="r1") as batch:
        base = _checkpoint(batch, "untrained", "init")
        sft = _checkpoint(batch, "sft", "sft", base=base, demonstrations=runs)
        passes = {task: n for n, task in enumerate([*kept, *here])}
        payload = {"name": "chosen", "purpose": "training", "round": 0, "tasks": kept, "size": 4, "passes": passes}
        _checkpoint(batch, "pi0", "grpo", base=sft, task_set=batch.create("task_set", "chosen", payload))
        _evaluate(batch, "pi0", 0, [*here, *there], passes=1)
        batch.quarantine(stage="themes", item="Ünicode's page", reason="not_a_page", detail="“1”, line 1", raw=b"\0x")
        batch.record("costs", {"stage": "first", "subject": KEY, "cpu_s": 1.5, "wall_s": 3.0})
    for key in (KEY, OTHER):
        with lake.begin("tools", key, derivation="d", run_id="r1") as batch:
            batch.quarantine(stage="tools", item=key, reason=FAILED, detail="it raised", raw=b"it raised")
    lake.refresh()  # what the second step leaves alone is read where it is stored, the rest is not
    before = lake.events_version()
    with lake.begin("tools", OTHER, derivation="e", run_id="r2"):
        pass
    with lake.begin("second", KEY, derivation="d", run_id="r2") as batch:
        richer = _environment(batch, KEY, round=1)
        targeted = [_task(batch, KEY, 40 + n, "targeted", "train", calls=2, round=1) for n in range(2)]
        batch.create("diagnosis", "diagnosis-r01", _diagnosis())
        _evaluate(batch, "pi1", 1, [*here, *there], passes=2)
        batch.observe(kept[0], {"tier": "hard"})
        batch.retire(kept[1], "wrong")
        _episode(batch, richer, targeted[0], "solver", sample=0, round=1)
        batch.record("costs", {"stage": "first", "subject": KEY, "cpu_s": 7.5, "wall_s": 9.0})
    return before


def _judge(batch, tasks):
    for task in tasks:
        verdict(batch, "rubric", "task", task, accepted=True, environment=task.partition("/")[0])


def _environment(batch, key, round=0):
    theme = batch.create("theme", f"{key}-theme", {"source": "M3", "title": key.title(), "nouns": ["x", "ÿ"]})
    batch.observe(theme, {"matched_source": "toy", "match_score": 0.1 + 0.2})
    richness = {"tables": 2.0 + round, "columns": 9.0, "rows": 40.0 + round, "links": 1.0, "documents": 0.0,
                "formats": 0.0, "sources": 1.0, "filled": 0.97}  # fmt: skip
    tables = [{"name": "a", "rows": 40 + round, "workflow": None}]
    mined = batch.create(
        "database", key, {"database_id": key, "theme": theme, "round": round, "tables": tables, "richness": richness},
        parents=[(theme, "theme")],
    )  # fmt: skip
    tables = [*tables, {"name": "loans", "rows": 0, "workflow": "loan"}]
    payload = {"database_id": key, "theme": theme, "round": round, "tables": tables, "richness": richness}
    database = batch.create("database", key, payload, parents=[(mined, "database")])
    environment = batch.create(
        "environment", key,
        {"environment_id": key, "title": f"The {key}", "theme": theme, "database_version": database,
         "tool_versions": []}, parents=[(database, "database")],
    )  # fmt: skip
    seen = {"category": f"kind-{key[0]}", "round": round, "tables": 2, "tools": 3, "tests": 9, "writing_tools": 1}
    batch.observe(environment, seen)
    return environment


def _task(batch, key, number, purpose, tier, *, calls, round=0):
    payload = {
        "task_id": f"{key}/{number}", "kind": "program" if number % 2 else "graph", "purpose": purpose, "round": round,
        "knobs": {"calls": calls, "weak_share": 0.5}, "instruction": f"What is “{number}”?\nSay.",
        "environments": [key],
    }  # fmt: skip
    task = batch.create("task", f"{key}/{number}", payload)
    batch.observe(task, {"accepted": tier in ("train", "hard"), "tier": tier})
    return task


def _episode(batch, environment, task, purpose, *, sample, passed=True, round=0):
    payload = {
        "task": task, "environment": environment, "policy": "toy", "sample": sample,
        "steps": [{"n": n} for n in range(3)], "status": "pass" if passed else "fail", "purpose": purpose,
        "round": round, "outcome": {"failed": []},
    }  # fmt: skip
    return batch.create("trajectory", f"{task.partition('@')[0]}-{purpose}-{sample}", payload, parents=[(task, "task")])


def _checkpoint(batch, name, method, *, base=None, task_set=None, demonstrations=()):
    payload = {"name": name, "round": 0, "method": method, "base": base, "task_set": task_set, "steps_done": 7}
    parents = [(run, "demonstration") for run in demonstrations]
    version = batch.create("checkpoint", name, payload, parents=parents)
    batch.observe(version, {"accepted": True})
    return version


def _evaluate(batch, point, round, tasks, *, passes):
    for place, task in enumerate(tasks):
        for sample in range(3):
            status = "infra_error" if place == sample == 2 else "pass" if sample < passes and place else "fail"
            batch.record(
                "evaluations",
                {"point": point, "task_set": "held_out@1", "task": task, "environment": task.partition("/")[0],
                 "kind": "program" if place % 2 else "graph", "mode": "sampled", "sample": sample, "status": status,
                 "steps": 2, "round": round, "policy_version": f"{point}@1"},
            )  # fmt: skip


def _diagnosis():
    weak = [
        {"environment": key, "category": f"kind-{key[0]}", "pass_rate": rate, "low": 0.0, "high": 1 - severity,
         "samples": 8, "labels": {"loop": 3, "wrong_tool": 4}, "severity": severity}
        for key, rate, severity in ((KEY, 0.125, 0.75), (OTHER, 0.25, 0.5))
    ]  # fmt: skip
    guidelines = [
        {"environment": w["environment"], "ability": "loop", "text": f"practise at {w['environment']}"} for w in weak
    ]
    return {
        "round": 1,
        "policy_version": "pi0@1",
        "weak": weak,
        "guidelines": guidelines,
        "errors": [],
        "summary": "Two.",
    }
