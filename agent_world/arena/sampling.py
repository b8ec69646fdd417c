"""Whom the arena tests: min(K, size) environments of each first-level category (method.md 7)."""

from __future__ import annotations

from collections.abc import Mapping

from agent_world.identity import rng


def sample_environments(categories: Mapping[str, str], *, per_category: int, seed: int, round: int) -> list[str]:
    """Environment keys, a stratified draw that depends on `seed` and `round` only.

    Args:
        categories: environment key to first-level category.
        per_category: K, the most environments taken from one category.
        seed: seed of the run.
        round: round of the arena.
    """
    members: dict[str, list[str]] = {}
    for environment, category in sorted(categories.items()):
        members.setdefault(category, []).append(environment)
    drawn = []
    for category, keys in sorted(members.items()):
        drawn += rng("arena", seed, round, category).sample(keys, min(per_category, len(keys)))
    return sorted(drawn)
