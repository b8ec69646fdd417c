"""`agent-world run`: the whole loop from one command."""

from __future__ import annotations

import sys

import click

from assets.settings import PROFILES
from dagster_project.cli.common import lake_option, typed

INTERRUPTED = 130
"""The exit status of a shell's Ctrl-C."""


def _default(name: str) -> str:
    """The setting in profile `default`, and where another profile differs."""
    usual = getattr(PROFILES["default"], name)
    others = ((profile, getattr(settings, name)) for profile, settings in PROFILES.items())
    return ", ".join([str(usual), *(f"{profile}: {value}" for profile, value in others if value != usual)])


@click.command()
@click.option(
    "--profile",
    type=click.Choice(list(PROFILES)),
    show_default="default",
    help="How much of everything, on two slow cores: smoke three minutes, default eighteen, full over an hour.",
)
@click.option(
    "--seed", type=int, show_default=_default("seed"), help="The same seed gives the same artifacts up to training."
)
@click.option(
    "--rounds",
    type=click.IntRange(0, 9),
    show_default=_default("rounds"),
    help="Rounds of evaluate, diagnose, target and train.",
)
@click.option(
    "--environments",
    type=click.IntRange(1, 500),
    show_default=_default("environments"),
    help="Most environments to build.",
)
@click.option(
    "--threads",
    type=click.IntRange(1, 256),
    show_default=_default("threads"),
    help="Worker processes, and threads of training; with 1 the same seed also gives the same checkpoints on one kind"
    " of processor.",
)
@click.option("--resume", is_flag=True, help="Go on with this lake's last run, with the options it was begun with.")
@lake_option
def command(lake: str, resume: bool, **options: str | int | None) -> None:
    """Build environments and tasks, train a policy, evaluate, diagnose, target and train again.

    Everything made is committed to the lake as it is made; stop at any time with Ctrl-C and go on with --resume. What
    fails is left out and told at the end; only when nothing can go on the run fails.
    """
    from dagster_project.loop import run_loop
    from dagster_project.stages import RunInterruptedError
    from dagster_project.summary import print_summary

    asked = {name: value for name, value in options.items() if value is not None}
    try:
        run_loop(lake, asked, resume=resume)
    except RunInterruptedError as stop:
        click.echo(f"{stop}, go on with: {typed('run', '--resume', '--lake', lake)}", err=True)
        sys.exit(INTERRUPTED)
    print_summary(lake)
