"""The three partition sets: environments, rounds, and the weak environments of each round (design.md 10)."""

import dagster as dg

environments = dg.DynamicPartitionsDefinition(name="environment")
"""One key an environment: slug and short hash. Added together, so that a range of them is one run."""

rounds = dg.DynamicPartitionsDefinition(name="round")
"""r00 is the base (untrained, cold start, general GRPO); r01, r02 ... are the rounds of the arena."""

targeted = dg.DynamicPartitionsDefinition(name="targeted")
"""``r01|<environment>``: what the diagnosis of a round asked for; added in one call, so contiguous."""

BY_100 = dg.BackfillPolicy.multi_run(max_partitions_per_run=100)
IN_ONE_RUN = dg.BackfillPolicy.single_run()

RANGE_START, RANGE_END = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"


def round_key(number: int) -> str:
    """The partition key of a round."""
    return f"r{number:02d}"


def targeted_key(round: int, environment: str) -> str:
    """The partition key of what a round makes for an environment."""
    return f"{round_key(round)}|{environment}"


def round_number(key: str) -> int:
    """The round of a key of `rounds` or `targeted`."""
    return int(key.partition("|")[0][1:])
