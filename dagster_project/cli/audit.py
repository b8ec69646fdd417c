"""`agent-world audit`: do the gates still hold on everything accepted?"""

from __future__ import annotations

import sys

import click

from dagster_project.cli.common import format_option, lake_option, print_rows


@click.command()
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the fresh runs.")
@click.option("--tasks", type=int, help="Audit only this many tasks, spread over the environments.")
@lake_option
@format_option
def command(lake: str, seed: int, tasks: int | None, format: str) -> None:
    r"""Run every gate again on every accepted artifact with fresh seeds; non-zero exit if one no longer holds.

    \b
    tools          the stored tests, each twice
    environments   the reset digest, twice
    tasks          gold passes; null, wrong and idle answers fail; random within its stated bound
    trajectories   replay to the recorded digest
    """
    from agent_world import world
    from agent_world.auditing import audit_lake
    from agent_world.sandbox import default_sandbox

    seen: list[str] = []

    def tell(what: str) -> None:
        seen.append(what)
        if len(seen) % 50 == 0:
            click.echo(f"  {len(seen)} audited, now {what}", err=True)

    opened = world.open(lake)
    findings = audit_lake(opened, seed=seed, sandbox=default_sandbox(), tasks=tasks, on_progress=tell)
    print_rows([finding.row() for finding in findings], format)
    if any(finding.broken for finding in findings):
        sys.exit(1)
