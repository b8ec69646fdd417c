"""The audit: every gate again on everything accepted, with fresh seeds (design.md 7)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_world.codec import decode
from agent_world.environments.model import Environment, ToolTest
from agent_world.environments.tool_gate import check_environment, check_tools
from agent_world.identity import VersionId, rng
from agent_world.tasks.gates import audit, trajectory_gate
from agent_world.tasks.verdicts import upper_bound

if TYPE_CHECKING:
    from agent_world.sandbox import Sandbox
    from agent_world.world import World

OnProgress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One gate over all artifacts of one kind: how many it ran on, how many broke it, and which."""

    gate: str
    kind: str
    audited: int
    broken: tuple[str, ...]
    bound: str = ""

    def row(self) -> dict[str, Any]:
        """The finding for a table."""
        return {
            "gate": self.gate,
            "kind": self.kind,
            "audited": self.audited,
            "broken": len(self.broken),
            "bound": self.bound,
            "examples": list(self.broken[:3]),
        }


def audit_lake(
    world: World, *, seed: int, sandbox: Sandbox, tasks: int | None = None, trajectories: int = 200,
    on_progress: OnProgress = lambda what: None,
) -> list[Finding]:  # fmt: skip
    """Run every gate again; `tasks` and `trajectories` bound how many, drawn by `seed`.

    The random gate is judged over all tasks together: its bound is the upper end of the 95 % interval of the pass rate.
    """
    return [
        *_audit_environments(world, sandbox, on_progress),
        *_audit_tasks(world, sandbox, seed, tasks, on_progress),
        _audit_trajectories(world, sandbox, seed, trajectories, on_progress),
    ]


def _audit_environments(world: World, sandbox: Sandbox, on_progress: OnProgress) -> Iterator[Finding]:
    tools, resets, count = [], [], 0
    environments = world.environments()
    for environment in environments:
        on_progress(environment.environment_id)
        database, files = environment.database, environment.files
        verdicts = check_tools(database, files, environment.tools, tests_of(world, environment), sandbox)
        tools += [verdict.tool.tool_id for verdict in verdicts if not verdict.accepted]
        count += len(verdicts)
        if not check_environment(database, files, verdicts, sandbox).accepted:
            resets.append(environment.environment_id)
    yield Finding(gate="tool", kind="tool", audited=count, broken=tuple(tools))
    yield Finding(gate="environment", kind="environment", audited=len(environments), broken=tuple(resets))


def tests_of(world: World, environment: Environment) -> list[ToolTest]:
    """The stored unit tests of an environment's tools, in the order of the lake."""
    pinned = set(environment.tool_versions)
    own = {row["child"] for row in world.read("edges", where={"role": "tool"}) if row["parent"] in pinned}
    rows = world.read("tool_tests", columns=["version_id"])
    return [decode(ToolTest, world.payload(row["version_id"])) for row in rows if row["version_id"] in own]


def _audit_tasks(
    world: World, sandbox: Sandbox, seed: int, most: int | None, on_progress: OnProgress
) -> Iterator[Finding]:
    versions = _drawn([row["version_id"] for row in world.read("tasks", where={"accepted": True})], most, seed)
    broken: dict[str, list[str]] = {}
    audited: dict[str, int] = {}
    passes = runs = 0
    for version in versions:
        on_progress(version)
        bound = world.task(version)
        for verdict in audit(bound.task, bound.environment, seed=seed, sandbox=sandbox):
            audited[verdict.gate] = audited.get(verdict.gate, 0) + 1
            if not verdict.accepted:
                broken.setdefault(verdict.gate, []).append(version)
            if verdict.gate == "random":
                passes += verdict.evidence.get("passes", 0)
                runs += verdict.evidence.get("runs", 0)
    for gate, count in audited.items():
        bound = f"{passes} of {runs} runs, at most {upper_bound(passes, runs):.4f}" if gate == "random" and runs else ""
        yield Finding(gate=gate, kind="task", audited=count, broken=tuple(broken.get(gate, ())), bound=bound)


def _audit_trajectories(world: World, sandbox: Sandbox, seed: int, most: int, on_progress: OnProgress) -> Finding:
    rows = world.read("trajectories", columns=["version_id", "status"])
    versions = _drawn([row["version_id"] for row in rows if row["status"] != "infra_error"], most, seed)
    broken = []
    for version in versions:
        on_progress(version)
        trajectory = world.trajectory(VersionId(version))
        bound = world.task(trajectory.task)
        if not trajectory_gate(trajectory, bound.task, bound.environment, sandbox=sandbox).accepted:
            broken.append(version)
    return Finding(gate="trajectory", kind="trajectory", audited=len(versions), broken=tuple(broken))


def _drawn(versions: Sequence[str], most: int | None, seed: int) -> list[str]:
    if most is None or most >= len(versions):
        return list(versions)
    return sorted(rng("audit", seed).sample(list(versions), most))
