"""`agent-world sandbox`: does what keeps generated code in hold on this machine?"""

from __future__ import annotations

from dataclasses import asdict

import click

from agent_world.errors import AgentWorldError
from dagster_project.cli.common import Format, format_option, lake_option, print_rows


class SandboxLeaksError(AgentWorldError):
    """The self-test found attacks that work."""

    def __init__(self, backend: str, attacks: tuple[str, ...]) -> None:
        super().__init__(backend, attacks)
        self.backend, self.attacks = backend, attacks

    def __str__(self) -> str:
        return f"the sandbox {self.backend} does not hold {', '.join(self.attacks)}; do not run generated code here"


@click.group("sandbox")
def command() -> None:
    """Test that the sandbox holds."""


@command.command()
@click.option(
    "--backend",
    envvar="AGENT_WORLD_SANDBOX",
    default="bwrap",
    show_default="AGENT_WORLD_SANDBOX, else bwrap",
    help="The back-end to attack: bwrap, bwrap-process, docker or docker-runsc.",
)
@lake_option
@format_option
def selftest(backend: str, lake: str, format: Format) -> None:
    """Attack a back-end from the inside; each attack also runs outside of it, to show that it is one.

    Ends non-zero when an attack works. A control that fails is no failure: that attack proves nothing on this machine.
    What a back-end permits by design is neither contained nor not (null), and says so in its detail.
    No lake is read or made, wherever --lake points.
    """
    from agent_world import sandbox

    results = sandbox.selftest(backend)
    print_rows([asdict(result) for result in results], format)
    escaped = tuple(result.name for result in results if result.contained is False)
    if escaped:
        raise SandboxLeaksError(backend, escaped)
    if format == "table":
        held = [result for result in results if result.contained]
        unproven = sum(not result.control for result in held)
        click.echo(f"{len(held)} attacks held by {backend}; {unproven} of them do not work here anyway.")
        if len(held) < len(results):
            click.echo(f"{len(results) - len(held)} more are permitted by design.")
