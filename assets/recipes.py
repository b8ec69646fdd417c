"""The hyper-parameters of the embedded policy, stage by stage; a real model takes the paper's defaults of `Hyper`."""

from assets.settings import Settings
from trainers.job import Hyper

GRPO_TASKS = 16
"""Groups of rollouts in a step."""

GRPO_OPTIONS = {"averaged": 0.2}
"""Options of GRPO: its result is the mean over the last fifth of its steps, since its rate does not fall."""

MAX_CONTEXT, MAX_STEP, MAX_TURNS = 1024, 48, 20
"""Tokens of an episode and of one step, and steps of an episode: in training, screening and evaluation alike."""

ROUND_SFT_OPTIONS = {"start_share": 0.5}
"""Options of a round's SFT: half of the weights it began with stay, since imitation spreads what reward sharpened."""

_TINY = {"max_trajectory_tokens": MAX_CONTEXT, "max_generation_tokens": MAX_STEP, "max_turns": MAX_TURNS}


def init_hyper(settings: Settings) -> Hyper:
    """Random weights."""
    return Hyper(steps=0, threads=settings.threads, **_TINY)


def cold_start_hyper(settings: Settings) -> Hyper:
    """SFT from random weights on the solver's successful attempts."""
    return Hyper(steps=settings.sft_steps, learning_rate=1.2e-2, threads=settings.threads, **_TINY)


def grpo_hyper(settings: Settings, *, tasks: int, round: int) -> Hyper:
    """GRPO with the paper's clipping and groups, at a rate and a batch that suit a model of a million parameters.

    A step takes `GRPO_TASKS` of the set's `tasks`, or all of a smaller set. The few steps of a round go at half the
    rate of those of `pi0` (round 0): at the whole one they undo what was imitated just before.
    """
    steps, rate = (settings.round_grpo_steps, 4e-4) if round else (settings.grpo_steps, 8e-4)
    return Hyper(
        steps=steps, learning_rate=rate, tasks_per_step=min(GRPO_TASKS, tasks), threads=settings.threads, **_TINY
    )


def demonstration_hyper(settings: Settings) -> Hyper:
    """SFT on targeted demonstrations: at half the rate of the cold start, so that what is known stays."""
    return Hyper(steps=settings.round_sft_steps, learning_rate=6e-3, threads=settings.threads, **_TINY)
