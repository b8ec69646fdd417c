"""The partitions of targeted tasks: those of a round lie together, whatever was there before."""

from __future__ import annotations

import dagster as dg
import pytest

from assets.diagnosis import _set_keys
from assets.partitions import targeted

ROUND_1, ROUND_2 = ["r01|a", "r01|b"], ["r02|a", "r02|c"]


@pytest.mark.parametrize(
    ("before", "keys", "after"),
    [
        ([], ROUND_1, ROUND_1),
        (ROUND_1[:1], ROUND_1, ROUND_1),
        (ROUND_1 + ROUND_2, ROUND_1, ROUND_1 + ROUND_2),
        (["r01|x", *ROUND_2], ROUND_1, ROUND_1),
        (ROUND_1, [], []),
    ],
    ids=["first", "after a crash", "again", "diagnosed otherwise", "nothing weak"],
)
def test_the_keys_of_a_round_replace_what_it_and_later_rounds_had(before, keys, after):
    with dg.DagsterInstance.ephemeral() as instance:
        if before:
            instance.add_dynamic_partitions(targeted.name, before)
        _set_keys(dg.build_asset_context(instance=instance), 1, keys)
        assert list(instance.get_dynamic_partitions(targeted.name)) == after
