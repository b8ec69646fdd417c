"""Program tasks: a pattern over one environment, solved by code, executed, verified by other code (method.md 5b)."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from agent_world.environments.model import Json
from agent_world.environments.state import State
from agent_world.rollouts.verifier import verify
from agent_world.tasks.execution import Solved, passed_on, run_solution
from agent_world.tasks.graph_tasks import answer_schema, rubric, task_id
from agent_world.tasks.model import Knobs, Task
from agent_world.tasks.programs import branch, choose, each, figures, scan, select
from agent_world.tasks.programs.draft import Bench, Draft, verifier

Pattern = Callable[[Bench, random.Random], Draft | None]

READING: Mapping[str, tuple[Pattern, float]] = {
    "best_of": (choose.best_of, 3.0),
    "passing": (select.passing, 1.5),
    "sharing": (select.sharing, 1.5),
    "leading": (figures.leading, 2.0),
    "scanned": (scan.scanned, 3.0),
    "looked_into": (scan.looked_into, 3.0),
    "tallied": (scan.tallied, 3.0),
}
"""Patterns that change nothing, with how often each is drawn."""

WRITING: Mapping[str, tuple[Pattern, float]] = {
    "act_on_best": (choose.act_on_best, 3.0),
    "if_above": (branch.if_above, 3.0),
    "if_is": (branch.if_is, 2.0),
    "if_refused": (branch.if_refused, 2.0),
    "for_each": (each.for_each, 2.0),
}
"""Patterns that change the state."""

_FADING, _FAINTEST = 0.6, 0.02


def program_task(bench: Bench, *, seed: int, rng: random.Random, writing: bool) -> Task | None:
    """One candidate; None when the pattern finds nothing to draw, or its code does not run or does not verify.

    A pattern that led to nothing several times in a row is drawn less and less: data may have no use for it.
    """
    patterns = WRITING if writing else READING
    weights = [weight * max(_FADING ** bench.misses.get(name, 0), _FAINTEST) for name, (_, weight) in patterns.items()]
    name = rng.choices(list(patterns), weights)[0]
    task = _candidate(bench, patterns[name][0], seed, rng, writing)
    bench.misses[name] = 0 if task is not None else bench.misses.get(name, 0) + 1
    return task


def _candidate(bench: Bench, pattern: Pattern, seed: int, rng: random.Random, writing: bool) -> Task | None:
    draft = pattern(bench, rng)
    if draft is None:
        return None
    solved = run_solution(bench.environment, draft.solution, seed, bench.sandbox)
    if isinstance(solved, str) or writing != bool(solved.trace.change):
        return None
    task = task_from(bench, draft, solved, seed)
    verified = verify(
        task, [task.answer], State(bench.environment.files), solved.trace.final, solved.trace.change, bench.sandbox
    )[0]
    return None if verified.error or verified.failed else task


def task_from(bench: Bench, draft: Draft, solved: Solved, seed: int) -> Task:
    """The task of an executed draft."""
    catalogue, calls = bench.catalogue, solved.trace.calls
    tools = {call.tool: catalogue.environment.tool(call.tool) for call in calls}
    answer: Mapping[str, Json] = solved.answer
    schema = answer_schema(draft.fields)
    return Task(
        task_id=task_id(catalogue.environment, "program", draft.text, calls),
        kind="program",
        environments=(catalogue.environment.version,),
        instruction=draft.text,
        answer_schema=schema,
        answer=answer,
        plan=calls,
        shape=tuple(call.tool for call in calls),
        rubric=rubric(answer, schema, solved.trace.change),
        state_diff=solved.trace.change,
        knobs=Knobs(
            calls=len(calls),
            distinct_tools=len(tools),
            weak_share=passed_on(solved.trace),
            independent_share=round(1 - passed_on(solved.trace), 3),
            branches=draft.branches,
            loops=draft.loops,
            tables=len({table for tool in tools.values() for table in tool.tables}),
            aggregates=draft.aggregates,
            writes=sum(
                tools[call.tool].writes and observation.status == "ok"
                for call, observation in zip(calls, solved.trace.observations, strict=True)
            ),
            rewriting=draft.level,
        ),
        seed=seed,
        solution=draft.solution,
        verifier=verifier(draft, catalogue, solved.trace.change),
    )
