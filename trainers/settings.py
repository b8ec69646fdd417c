"""The settings of the `trl` back-end: a job's hyper-parameters, and its options for what only `trl` knows."""

from __future__ import annotations

from agent_world.errors import BadInputError
from agent_world.models.tiny import TinySize
from trainers.grpo import GrpoOptions
from trainers.guard import GuardLimits
from trainers.job import Hyper, TrainJob
from trainers.options import names_of, settings
from trainers.sft import SftOptions


def tiny_size(job: TrainJob) -> TinySize:
    """How large the policy is that `init` makes.

    Raises:
        BadInputError: see `settings`.
    """
    return settings(TinySize, job.options)


def sft_options(job: TrainJob) -> SftOptions:
    """The settings of supervised fine-tuning.

    Raises:
        BadInputError: see `settings`.
    """
    hyper = job.hyper
    return settings(
        SftOptions,
        job.options,
        steps=hyper.steps,
        learning_rate=hyper.learning_rate,
        longest=hyper.max_trajectory_tokens,
    )


def grpo_options(job: TrainJob) -> GrpoOptions:
    """The settings of GRPO.

    Raises:
        BadInputError: see `settings`; or a top-p that would falsify the ratios of the loss.
    """
    if job.hyper.top_p != 1.0:
        why = f"top_p is {job.hyper.top_p}, but log-probabilities are those of the whole distribution"
        raise BadInputError("the training job", why, "set top_p to 1")
    limits = {name: value for name, value in job.options.items() if name in names_of(GuardLimits)}
    rest = {name: value for name, value in job.options.items() if name not in limits}
    shared = {name: getattr(job.hyper, name) for name in names_of(GrpoOptions) & names_of(Hyper)}
    return settings(GrpoOptions, rest, **shared, guard=settings(GuardLimits, limits))
