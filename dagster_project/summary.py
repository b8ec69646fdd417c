"""What `agent-world run` says at its end: the table of the rounds, what failed, and where to look further."""

from collections import Counter
from textwrap import shorten

from agent_world import world
from agent_world.home import service_home
from agent_world.reporting import figures
from assets.failures import failures
from assets.progress import console
from dagster_project.cli.common import print_rows, typed

SHOWN = 10


def print_summary(lake: str) -> None:
    """Print the rounds, their differences, what failed, and the commands that show more."""
    opened = world.open(lake)
    console.print("\n[bold]Held-out pass rates[/bold] (95 % intervals over tasks)", highlight=False)
    print_rows(figures.rounds_table(opened), "table")
    differences = figures.differences_table(opened)
    if differences:
        console.print("\n[bold]Differences[/bold] (sampled, paired by task)", highlight=False)
        print_rows(differences, "table")
    print_failures(opened, lake)
    report = service_home(lake) / "report.html"
    console.print(
        f"\nReport     {report}\n"
        f"Look on    {typed('status', '--lake', lake)}\n"
        f"           {typed('env', 'list', '--lake', lake)}\n"
        f"           {typed('task', 'list', '--lake', lake)}\n"
        f"           {typed('audit', '--lake', lake)}\n"
        f"           {typed('ui', '--lake', lake)}",
        highlight=False,
        soft_wrap=True,
    )


def print_failures(opened: world.World, lake: str) -> None:
    """Print how many partitions of which stage failed, and why, a line each."""
    failed = failures(opened)
    if not failed:
        return
    counts = Counter(failure.stage for failure in failed)
    told = ", ".join(f"{count} of {stage}" for stage, count in counts.items())
    console.print(f"\n[bold]Failed and left out[/bold]: {told}", style="red", highlight=False)
    for failure in failed[:SHOWN]:
        line = f"  {failure.stage} {failure.partition}: {shorten(failure.why, 200)}"
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    if len(failed) > SHOWN:
        more = f"  and {len(failed) - SHOWN} more: {typed('status', '--lake', lake)}"
        console.print(more, highlight=False, soft_wrap=True)
