"""`agent-world run`: the whole loop from one command."""

from __future__ import annotations

import shlex
import sys

import click

from dagster_project.cli.common import lake_option

INTERRUPTED = 130
"""The exit status of a shell's Ctrl-C."""


@click.command()
@click.option(
    "--profile",
    type=click.Choice(["smoke", "default", "full"]),
    default="default",
    show_default=True,
    help="How much of everything: smoke about a minute, default about twelve, full up to an hour.",
)
@click.option("--seed", type=int, help="Seed of the run: the same seed gives the same artifacts.")
@click.option("--rounds", type=click.IntRange(0, 9), help="Rounds of evaluate, diagnose, target and train.")
@click.option("--environments", type=click.IntRange(1, 500), help="Most environments to build.")
@click.option("--resume", is_flag=True, help="Go on with the unfinished run of this lake.")
@lake_option
def command(
    lake: str, profile: str, seed: int | None, rounds: int | None, environments: int | None, resume: bool
) -> None:
    """Build environments and tasks, train a policy, evaluate, diagnose, target and train again.

    Everything made is committed to the lake as it is made; stop at any time with Ctrl-C and go on with --resume.
    """
    from assets.settings import settings_for
    from dagster_project.loop import RunInterruptedError, run_loop
    from dagster_project.summary import print_summary

    chosen = {"seed": seed, "rounds": rounds, "environments": environments}
    try:
        run_loop(lake, settings_for(profile, **chosen), resume=resume)
    except RunInterruptedError as stop:
        options = {"profile": profile, **chosen, "lake": lake}
        given = [text for name, value in options.items() if value is not None for text in (f"--{name}", str(value))]
        click.echo(f"{stop}, go on with: {shlex.join(['agent-world', 'run', '--resume', *given])}", err=True)
        sys.exit(INTERRUPTED)
    print_summary(lake)
