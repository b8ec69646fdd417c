"""The profiles of a run: how much of everything, in one place."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything a run is parameterised by; it is part of the derivation of what the run makes.

    `themes` are read, of which `environments` at most are built. An environment has `tasks` accepted training tasks,
    `practice` candidates to demonstrate and `held_out` evaluation tasks. A round meets `arena` fresh tasks in each of
    `arena_environments` of a category, and makes `targeted` training tasks for each of the `weakest` environments, and
    `targeted_practice` candidates to demonstrate. Steps are optimiser steps; evaluation draws `samples` a task;
    `control` trains a second line without a diagnosis beside the first.
    """

    seed: int = 7
    themes: int = 72
    environments: int = 14
    complexification_rounds: int = 2
    tasks: int = 14
    practice: int = 56
    held_out: int = 8
    arena_environments: int = 5
    arena: int = 4
    weakest: int = 4
    targeted: int = 12
    targeted_practice: int = 40
    rounds: int = 2
    sft_steps: int = 250
    grpo_steps: int = 10
    round_sft_steps: int = 75
    round_grpo_steps: int = 5
    samples: int = 8
    control: bool = False
    threads: int = 2

    def parameters(self, *names: str) -> Mapping[str, Any]:
        """The named settings, for a derivation hash."""
        return {name: getattr(self, name) for name in names}


PROFILES: Mapping[str, Settings] = {
    "smoke": Settings(
        themes=20, environments=3, tasks=6, practice=12, held_out=3, arena=2, weakest=2, targeted=3,
        targeted_practice=6, rounds=1, sft_steps=20, grpo_steps=2, round_sft_steps=5, round_grpo_steps=2, samples=2,
    ),
    "default": Settings(),
    "full": Settings(
        tasks=96, practice=120, held_out=24, weakest=14, targeted=8, targeted_practice=120, sft_steps=800,
        grpo_steps=100, round_sft_steps=300, round_grpo_steps=12, control=True,
    ),
}  # fmt: skip


def settings_for(profile: str, **overrides: int | None) -> Settings:
    """The settings of `profile` with what the caller changed."""
    return dataclasses.replace(PROFILES[profile], **{k: v for k, v in overrides.items() if v is not None})
