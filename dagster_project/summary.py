"""What `agent-world run` says at its end: the table of the rounds and where to look further."""

from agent_world import world
from agent_world.home import service_home
from agent_world.reporting import figures
from assets.progress import console
from dagster_project.cli.common import print_rows


def print_summary(lake: str) -> None:
    """Print the rounds, their differences, and the commands that show more."""
    opened = world.open(lake)
    console.print("\n[bold]Held-out pass rates[/bold] (95 % intervals over tasks)", highlight=False)
    print_rows(figures.rounds_table(opened), "table")
    differences = figures.differences_table(opened)
    if differences:
        console.print("\n[bold]Differences[/bold] (sampled, paired by task)", highlight=False)
        print_rows(differences, "table")
    report = service_home(lake) / "report.html"
    console.print(
        f"\nReport     {report}\n"
        f"Look on    agent-world status --lake {lake}\n"
        f"           agent-world env list --lake {lake}\n"
        f"           agent-world task list --lake {lake}\n"
        f"           agent-world audit --lake {lake}\n"
        f"           agent-world ui --lake {lake}",
        highlight=False,
    )
