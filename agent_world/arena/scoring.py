"""How right a diagnosis is, measured on policies whose faults were planted (method.md 9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agent_world.arena.model import Diagnosis, FailureLabel


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Precision and recall over environments, and over (environment, label) pairs; 1.0 where nothing was due."""

    environment_precision: float
    environment_recall: float
    label_precision: float
    label_recall: float


def score(diagnosis: Diagnosis, planted: Mapping[str, FailureLabel]) -> Score:
    """Compare the weak set and each guideline's ability with the faults planted by environment key."""
    found = {guideline.environment: guideline.ability for guideline in diagnosis.guidelines}
    environments = found.keys() & planted.keys()
    labels = {key for key in environments if found[key] == planted[key]}
    return Score(
        environment_precision=_share(len(environments), len(found)),
        environment_recall=_share(len(environments), len(planted)),
        label_precision=_share(len(labels), len(found)),
        label_recall=_share(len(labels), len(planted)),
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0
