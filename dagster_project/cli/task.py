"""`agent-world task`: list, show, attempt and serve tasks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from dagster_project.cli.common import Format, format_option, lake_option, open_world, print_json, print_rows
from dagster_project.cli.serving import ServingOptions, serve_to_many, serve_to_one, serving_options

if TYPE_CHECKING:
    from agent_world.rollouts.model import Trajectory


@click.group()
def command() -> None:
    """List, show, attempt and serve tasks.

    TASK is a task's version or key, as `list` names it, or a unique start of one.
    """


@command.command("list")
@click.option("--environment", metavar="ENV", help="Only tasks of this environment (a key or the start of one).")
@click.option("--tier", type=click.Choice(["train", "hard", "practice", "rejected"]), help="Only tasks of this tier.")
@lake_option
@format_option
def list_(lake: str, format: Format, environment: str | None, tier: str | None) -> None:
    """Every task with its kind, size, tier and what the gates measured."""
    from agent_world.lake.errors import NotFoundError, near

    world = open_world(lake)
    rows = [_line(row) for row in world.read("tasks", where={"state": "created"})]
    if environment is not None:
        known = {row["environment"] for row in rows}
        if not any(key.startswith(environment) for key in known):
            raise NotFoundError("environment", environment, near(environment, known))
        rows = [row for row in rows if row["environment"].startswith(environment)]
    if tier is not None:
        rows = [row for row in rows if row["tier"] == tier]
    print_rows(rows, format)


@command.command()
@click.argument("task", metavar="TASK")
@click.option("--gold", is_flag=True, help="Show the plan, the answer and how it is judged as well.")
@lake_option
@format_option
def show(lake: str, format: Format, task: str, gold: bool) -> None:
    """One task: what an agent is asked, and what every gate said of it.

    TASK is a version or key of a task, or a unique start of one.
    """
    from agent_world.codec import encode

    world = open_world(lake)
    bound = world.task(task)
    shown = encode(bound.task)
    secret = ("answer", "plan", "shape", "rubric", "state_diff", "solution", "verifier")
    gates = world.read("gate_verdicts", where={"subject": [bound.version, bound.task.task_id]})
    kept = ("gate", "accepted", "reason", "evidence")
    details = {
        "version": bound.version,
        **{name: value for name, value in shown.items() if gold or name not in secret},
        "gates": [{name: row[name] for name in kept} for row in gates],
    }
    if format == "json":
        print_json(details)
    else:
        print_rows([{"": name, "value": value} for name, value in details.items()], format)


@command.command()
@click.argument("task", metavar="TASK")
@click.option(
    "--policy", required=True, metavar="POLICY",
    help="gold, null, random, wrong, a checkpoint of the lake or a model directory, or <endpoint URL>#<model>"
    " (its key in AGENT_WORLD_API_KEY).",
)  # fmt: skip
@click.option("--samples", type=click.IntRange(1), default=1, show_default=True, help="How often to try.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the policy.")
@click.option(
    "--temperature", type=click.FloatRange(0), default=1.0, show_default=True, help="For models: 0 is greedy."
)
@lake_option
@format_option
def attempt(lake: str, format: Format, task: str, policy: str, samples: int, seed: int, temperature: float) -> None:
    """Let a policy try a task in its pinned environment, and show every step.

    TASK is a version or key of a task, or a unique start of one.

    \b
      agent-world task attempt airportsapi-cd6b91/graph-5991048284f3 --policy gold
      agent-world task attempt airportsapi-cd6b91/graph-59 --policy pi2 --samples 8
      agent-world task attempt airportsapi-cd6b91/graph-59 --policy http://127.0.0.1:8000/v1#Qwen/Qwen3-8B
    """  # noqa: D301 - click takes the character
    from agent_world.identity import seed_of
    from agent_world.models.named import open_policy
    from agent_world.rollouts.loop import EpisodeSpec, roll_out

    world = open_world(lake)
    bound = world.task(task)
    specs = [
        EpisodeSpec(
            task=bound.task, environment=bound.environment, task_version=bound.version, sample=sample,
            seed=seed_of("attempt", seed, sample),
        )
        for sample in range(samples)
    ]  # fmt: skip
    key = os.environ.get("AGENT_WORLD_API_KEY")
    with open_policy(policy, [bound.task], [bound.environment], world, temperature=temperature, api_key=key) as player:
        trajectories = roll_out(specs, player)
    if format == "json":
        print_json([_as_json(trajectory) for trajectory in trajectories])
    elif samples == 1:
        click.echo(bound.task.instruction, err=True)
        print_rows(_steps(trajectories[0]), format)
    else:
        print_rows([_outcome(trajectory) for trajectory in trajectories], format)


@command.command()
@click.argument("task", metavar="TASK")
@serving_options
@lake_option
def serve(lake: str, task: str, options: ServingOptions) -> None:
    """Serve one task over MCP as an episode; every client gets an attempt of its own.

    TASK is a version or key of a task, or a unique start of one. The client is told what to do, acts with the tools of
    the environment, and calls `submit_answer` once, which says pass, fail or infra_error and ends the attempt.

    \b
      agent-world task serve airportsapi-cd6b91/graph-59                  as the command of an MCP client
      agent-world task serve airportsapi-cd6b91/graph-59 --transport http --port 8765
    """  # noqa: D301 - click takes the character
    from agent_world.serving.mcp.attempts import task_offer
    from agent_world.serving.metrics import Metrics

    metrics = Metrics()
    offer = task_offer(open_world(lake).task(task), limits=options.limits, metrics=metrics)
    if options.transport == "stdio":
        serve_to_one(offer)
    else:
        serve_to_many([offer], options, metrics)


def _line(row: dict[str, Any]) -> dict[str, Any]:
    from agent_world.identity import artifact_id_of

    return {
        "task": row["version_id"],
        "environment": artifact_id_of(row["environments"][0]),
        "kind": row["kind"],
        "calls": row["knobs"]["calls"],
        "writes": bool(row["state_diff"]),
        "purpose": row["purpose"],
        "round": row["round"],
        "tier": row["tier"] or "rejected",
        "solver_passes": row["solver_passes"],
        "random_passes": row["random_passes"],
        "instruction": row["instruction"],
    }


def _steps(trajectory: Trajectory) -> list[dict[str, Any]]:
    rows = [
        {
            "step": number,
            "kind": step.kind,
            "tool": step.tool,
            "said": step.arguments if step.kind == "tool" else step.answer if step.kind == "answer" else step.text,
            "status": observation.status if observation else trajectory.outcome.status,
            "result": observation.value if observation else list(trajectory.outcome.failed),
        }
        for number, (step, observation) in enumerate(trajectory.steps, 1)
    ]
    if not rows or rows[-1]["kind"] != "answer":
        outcome = trajectory.outcome
        rows.append(
            {"step": len(rows) + 1, "kind": "end", "tool": None, "said": outcome.detail, "status": outcome.status,
             "result": list(outcome.failed)}
        )  # fmt: skip
    return rows


def _outcome(trajectory: Trajectory) -> dict[str, Any]:
    return {
        "sample": trajectory.sample,
        "policy": trajectory.policy_version,
        "status": trajectory.outcome.status,
        "reward": trajectory.outcome.reward,
        "calls": len(trajectory.calls),
        "failed": list(trajectory.outcome.failed),
        "detail": trajectory.outcome.detail,
    }


def _as_json(trajectory: Trajectory) -> dict[str, Any]:
    from agent_world.codec import encode

    return {**_outcome(trajectory), "steps": encode(trajectory)["steps"]}
