"""The options of the `trl` back-end from a job: its hyper-parameters, and `options` for what only `trl` knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from agent_world.errors import BadInputError
from agent_world.models.tiny import TinySize
from trainers.grpo import GrpoOptions
from trainers.guard import GuardLimits
from trainers.job import TrainJob
from trainers.sft import SftOptions

T = TypeVar("T")


def tiny_size(job: TrainJob) -> TinySize:
    """How large the policy is that `init` makes.

    Raises:
        BadInputError: an option that does not exist, or of another type.
    """
    return _filled(TinySize, job.options, {})


def sft_options(job: TrainJob) -> SftOptions:
    """The settings of supervised fine-tuning.

    Raises:
        BadInputError: an option that does not exist, or of another type.
    """
    hyper = job.hyper
    given = {"steps": hyper.steps, "learning_rate": hyper.learning_rate, "longest": hyper.max_trajectory_tokens}
    return _filled(SftOptions, job.options, given)


def grpo_options(job: TrainJob) -> GrpoOptions:
    """The settings of GRPO.

    Raises:
        BadInputError: an option that does not exist, or of another type; a top-p that would falsify the ratios.
    """
    hyper = job.hyper
    if hyper.top_p != 1.0:
        why = f"top_p is {hyper.top_p}, but log-probabilities are those of the whole distribution"
        raise BadInputError("the training job", why, "set top_p to 1")
    shared = {field.name for field in fields(GrpoOptions)} & {field.name for field in fields(hyper)}
    limits = {name: value for name, value in job.options.items() if name in _names(GuardLimits)}
    rest = {name: value for name, value in job.options.items() if name not in limits}
    given = {name: getattr(hyper, name) for name in shared} | {"guard": _filled(GuardLimits, limits, {})}
    return _filled(GrpoOptions, rest, given)


def _names(cls: type) -> set[str]:
    return {field.name for field in fields(cls)}


def _filled(cls: type[T], options: Mapping[str, str | int | float | bool], given: Mapping[str, Any]) -> T:
    for name, value in options.items():
        if name not in _names(cls) or name in given:
            known = ", ".join(sorted(_names(cls) - given.keys()))
            raise BadInputError(f"option {name}", "there is no such option here", f"known are: {known}")
        default = next(field.default for field in fields(cls) if field.name == name)
        if isinstance(default, (int, float)) and not isinstance(value, (int, float)):
            raise BadInputError(f"option {name}", f"{value!r} is no number", "give one")
    return cls(**given, **options)
