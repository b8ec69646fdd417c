"""What the gates say of one artifact now. Each function runs in a worker, which opens the lake once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agent_world.auditing.census import Enrichment, Toolbox
from agent_world.auditing.databases import database_faults
from agent_world.codec import decode
from agent_world.discovery.gates import check_database, check_round
from agent_world.discovery.model import Theme
from agent_world.discovery.themes.documents import Draft, ThemeDocument, theme_of
from agent_world.environments.model import Database, Tool, ToolTest
from agent_world.environments.tool_gate import check_environment, check_tools
from agent_world.identity import Digest, VersionId, seed_of
from agent_world.models.named import laid_down
from agent_world.rollouts.canonical import canonical
from agent_world.rollouts.loop import EpisodeSpec, roll_out
from agent_world.sandbox import default_sandbox
from agent_world.tasks.gates import CONSISTENT_RUNS, audit, gate_task, trajectory_gate
from agent_world.tasks.verdicts import GateVerdict

if TYPE_CHECKING:
    from agent_world.world import World


class Training(NamedTuple):
    """How a checkpoint was trained, as the lake tells.

    `asked` are the steps that its gate says were asked for, 0 where no gate spoke; `last_step` the last that has
    metrics, 0 without any; `zero_spread` the share of groups without spread in each step that reports it.
    """

    method: str
    asked: int
    last_step: int
    zero_spread: Sequence[float]


CheckpointGate = Callable[[Path, Digest, Training], Sequence[str]]
"""What is wrong with a checkpoint: its files, its digest, how it was trained. The trainers know, not this package;
workers get it by pickle."""

SOLVER_RUNS_OF_AN_AUDIT = 20


class Word(NamedTuple):
    """What one gate says of one artifact, after how many runs; `reason` is None where it still accepts it."""

    gate: str
    kind: str
    subject: str
    reason: str | None = None
    passes: int = 0
    runs: int = 0


def judge_theme(uri: str, version: VersionId) -> list[Word]:
    """Its title, description and tools still pass; a tool that was kept and no longer does counts too."""
    theme = decode(Theme, world_at(uri).payload(version))
    document = ThemeDocument(source=theme.source, origin=theme.origin, data=b"", licence=theme.licence)
    found = theme_of(
        Draft(
            document=document, title=theme.title, description=theme.description, raw_tools=theme.tools,
            nouns=theme.nouns, verbs=theme.verbs,
        )
    )  # fmt: skip
    against = [*([found.rejection] if found.rejection else []), *found.faults]
    return [Word("theme", "theme", version, ", ".join(dict.fromkeys(item.reason for item in against)) or None)]


def judge_database(uri: str, version: VersionId) -> list[Word]:
    """Two loads, the digest, the measured integrity; the gate itself where no workflow added its tables."""
    world = world_at(uri)
    database, files = decode(Database, world.payload(version)), world.files(version)
    faults = database_faults(database, files)
    if not any(table.workflow for table in database.tables):
        faults += check_database(database, files).reasons
    return [Word("database", "database", version, ", ".join(faults) or None)]


def judge_enrichment(uri: str, made: Enrichment) -> list[Word]:
    """The database of the round is sound, and something in it is new."""
    world = world_at(uri)
    before, after = (decode(Database, world.payload(version)) for version in made)
    found = check_round(before, after, world.files(made.after))
    return [Word("complexify", "richer database", made.after, ", ".join(found.reasons) or None)]


def judge_toolbox(uri: str, box: Toolbox) -> list[Word]:
    """The stored tests of each tool, twice; of an environment also two resets."""
    world, sandbox = world_at(uri), default_sandbox()
    database, files = decode(Database, world.payload(box.database)), world.files(box.database)
    tools = [decode(Tool, world.payload(tool)) for tool in box.tools]
    tests = [decode(ToolTest, world.payload(test)) for test in box.tests]
    verdicts = check_tools(database, files, tools, tests, sandbox)
    words = [
        Word("tool", "tool", tool, ", ".join(verdict.reasons) or None)
        for tool, verdict in zip(box.tools, verdicts, strict=True)
    ]
    if box.environment:
        whole = check_environment(database, files, verdicts, sandbox)
        reasons = [*whole.reasons, *(["other_digest"] if whole.digest != database.digest else [])]
        words.append(Word("environment", "environment", box.environment, ", ".join(reasons) or None))
    return words


def judge_task(uri: str, seed: int, version: VersionId) -> list[Word]:
    """Every gate but the solver's."""
    bound = world_at(uri).task(version)
    verdicts = audit(bound.task, bound.environment, seed=seed, sandbox=default_sandbox())
    return [_word(verdict, "task", version) for verdict in verdicts]


def judge_practice(uri: str, seed: int, version: VersionId) -> list[Word]:
    """The gates that a task which is only demonstrated went through, up to the first that says no."""
    from agent_world.solver import Solver

    bound = world_at(uri).task(version)
    found = gate_task(
        bound.task, bound.environment, sandbox=default_sandbox(), solver=Solver, seed=seed, thorough=False
    )  # fmt: skip
    return [_word(verdict, "practice task", version) for verdict in found.gates]


def judge_by_solver(uri: str, seed: int, version: VersionId) -> list[Word]:
    """The solver's gate: two runs pass with the same answer and the same final state.

    Fewer than two of five do so by chance where the solver is right every other time. So it goes on until two agree,
    and refuses after 20 runs: one chance in 1,900 at the gate's own rate of two in five.
    """
    from agent_world.solver import Solver

    bound = world_at(uri).task(version)
    agreeing: Counter[object] = Counter()
    for sample in range(SOLVER_RUNS_OF_AN_AUDIT):
        spec = EpisodeSpec(
            task=bound.task, environment=bound.environment, sample=sample, task_version=version,
            seed=seed_of("audit", seed, version, sample),
        )  # fmt: skip
        [run] = roll_out([spec], Solver(spec.seed), sandbox=default_sandbox())
        if run.outcome.status == "infra_error":
            return [Word("solver", "training task", version, "infra_error", runs=sample + 1)]
        if run.outcome.status == "pass":
            given = canonical(run.steps[-1][0].answer, bound.task.answer_schema), run.final_digest
            agreeing[given] += 1
            if agreeing[given] == CONSISTENT_RUNS:
                return [Word("solver", "training task", version, runs=sample + 1)]
    return [Word("solver", "training task", version, "not_consistent", runs=SOLVER_RUNS_OF_AN_AUDIT)]


def judge_trajectory(uri: str, version: VersionId) -> list[Word]:
    """It replays to the same observations and the same digest."""
    world = world_at(uri)
    trajectory = world.trajectory(version)
    bound = world.task(trajectory.task)
    verdict = trajectory_gate(trajectory, bound.task, bound.environment, sandbox=default_sandbox())
    return [_word(verdict, "trajectory", version)]


def judge_checkpoint(uri: str, gate: CheckpointGate, version: VersionId) -> list[Word]:
    """Its stored files are what its digest says, and nothing but numbers; its stored metrics show the training."""
    world = world_at(uri)
    payload = world.payload(version)
    with laid_down(world, version) as folder:
        reasons = gate(folder, Digest(payload["digest"]), _training(world, version, payload["method"], payload["job"]))
    return [Word("checkpoint", "checkpoint", version, ", ".join(reasons) or None)]


def _training(world: World, version: VersionId, method: str, job: str) -> Training:
    said = world.read("gate_verdicts", where={"gate": "checkpoint", "subject": version}, columns=["evidence"])
    metrics = world.read("training_metrics", where={"job": job}, columns=["step", "metric", "value"])
    return Training(
        method=method,
        asked=max((row["evidence"]["asked"] for row in said), default=0),
        last_step=max((row["step"] for row in metrics), default=0),
        zero_spread=[row["value"] for row in metrics if row["metric"] == "zero_spread_groups"],
    )


@cache
def world_at(uri: str) -> World:
    """The lake at `uri`, opened once a worker."""
    from agent_world import world

    return world.open(uri)


def _word(verdict: GateVerdict, kind: str, version: VersionId) -> Word:
    said = verdict.evidence
    return Word(verdict.gate, kind, version, verdict.reason, passes=said.get("passes", 0), runs=said.get("runs", 0))
