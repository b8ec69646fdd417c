"""Great Expectations suites as asset checks: they prove, on what is in the lake, that the gates kept their rules."""

import dagster as dg

from agent_world.world import World
from expectations import SUITES, prove


def check_specs(asset: str, *tables: str) -> list[dg.AssetCheckSpec]:
    """A blocking check for each table that an asset writes and that has rules."""
    return [
        dg.AssetCheckSpec(f"{table}_keep_their_rules", asset=asset, blocking=True, description=SUITES[table].meaning)
        for table in tables
    ]


def prove_all(world: World, *tables: str) -> list[dg.AssetCheckResult]:
    """Run the suites of `tables` over the current rows of the lake."""
    return [_prove(world, table) for table in tables]


def _prove(world: World, table: str) -> dg.AssetCheckResult:
    rows = world.read(table)
    verdicts = prove(SUITES[table], [row for row in rows if row.get("state", "created") == "created"])
    broken = [verdict for verdict in verdicts if not verdict.success]
    return dg.AssetCheckResult(
        check_name=f"{table}_keep_their_rules",
        passed=not broken,
        metadata={
            "rows": len(rows),
            "rules": len(verdicts),
            "broken": [f"{v.rule}: {v.unexpected} of {v.rows}, such as {', '.join(v.examples)}" for v in broken],
        },
    )
