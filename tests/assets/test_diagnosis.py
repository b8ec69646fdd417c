"""What a diagnosis looks at; the partitions of targeted tasks: those of a round lie together, whatever was there."""

from __future__ import annotations

import dagster as dg
import pytest

from agent_world import world
from assets.diagnosis import _set_keys, replayed_attempts
from assets.partitions import targeted
from assets.verdicts import verdict

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


def test_an_attempt_whose_replay_showed_something_else_is_not_diagnosed(tmp_path):
    lake = world.open(tmp_path / "lake", create=True)
    with lake.begin("toy", derivation="d0") as batch:
        for name, purpose, round, policy in [("a", "arena", 1, "p"), ("b", "arena", 1, "p"), ("c", "arena", 1, "q"),
                                             ("d", "arena", 2, "p"), ("e", "evaluation", 1, "p")]:  # fmt: skip
            payload = {"purpose": purpose, "round": round, "policy_version": policy}
            made = batch.create("trajectory", name, payload)
            reason = "other_digest" if name == "b" else None
            verdict(batch, "trajectory", "trajectory", made, accepted=not reason, reason=reason, round=round)
    assert [name.split("@")[0] for name in replayed_attempts(lake, 1, "p")] == ["a"]
