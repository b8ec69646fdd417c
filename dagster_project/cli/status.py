"""`agent-world status`: what the lake holds and what is unfinished."""

from __future__ import annotations

from collections import Counter

import click

from dagster_project.cli.common import Format, format_option, lake_option, open_world, print_rows


@click.command()
@lake_option
@format_option
def command(lake: str, format: Format) -> None:
    """Counts per table, per gate, per round; partitions that failed; runs that have not ended; alarms."""
    from agent_world.lake.status import Line, status
    from agent_world.reporting.figures import rates_by_point
    from assets.failures import failures

    opened = open_world(lake)
    failed = [Line("failed", f"{stage}, {partition}", 1, why) for stage, partition, why in failures(opened)]
    rows = opened.read("evaluations", columns=["point", "mode"])
    samples = Counter((row["point"], row["mode"]) for row in rows)
    rated = [
        Line("evaluation", f"{point}, {mode}", samples[point, mode], f"pass rate {rate:.3f} [{low:.3f}, {high:.3f}]")
        for mode, rates in rates_by_point(opened).items()
        for point, rate, low, high in rates
    ]
    lines = [*status(opened), *rated, *failed]
    print_rows([{"section": s, "name": name, "count": n, "detail": detail} for s, name, n, detail in lines], format)
