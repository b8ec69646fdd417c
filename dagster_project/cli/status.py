"""`agent-world status`: what the lake holds and what is unfinished."""

from __future__ import annotations

from collections import Counter

import click

from dagster_project.cli.common import Format, format_option, lake_option, open_world, print_rows


@click.command()
@lake_option
@format_option
def command(lake: str, format: Format) -> None:
    """Counts per table, per gate, per round; versions below; partitions that failed; runs not ended; alarms."""
    from agent_world.environments.runtime import runtime_here, runtimes_of
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
    here = runtime_here()
    made = [
        Line(
            "made under", str(runtime), count, "as here" if runtime == here else f"here are {here}: replays may differ"
        )
        for runtime, count in runtimes_of(opened).most_common()
    ]
    lines = [*status(opened), *rated, *made, *failed]
    print_rows([{"section": s, "name": name, "count": n, "detail": detail} for s, name, n, detail in lines], format)
