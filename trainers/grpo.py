"""GRPO by TRL's trainer over our episodes: multi-environment batches of live sessions, observations masked.

TRL owns the loss, the optimiser and the distribution; the rollout, the reward and the bookkeeping are ours. An
`infra_error` gives no reward: TRL keeps such a rollout out of its group's baseline and out of the loss.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_world.identity import rng
from agent_world.models.renderer import Renderer
from agent_world.world import BoundTask
from trainers.guard import CollapseGuard, GuardLimits
from trainers.loss import episode_trainer
from trainers.metrics import MetricsFile
from trainers.rollouts import Rollouts

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from agent_world.sandbox import Sandbox


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpoOptions:
    """Settings of one run. Rollouts of a step: `tasks_per_step` groups of `rollouts_per_task`.

    `chunk_tokens` bounds the padded tokens of one forward inside a step; `kl_rows` is on how many rollouts a step
    measures its distance from the start policy (0 for not at all); `retries` of an `infra_error`. `live` rollouts are
    played together, by as many processes as there are `threads`, where one can be forked.

    A rollout fails at its `max_repeats`-th equal step that brought back the same (0: never). A loss that is divided by
    the length of an episode hardly feels a loop that runs on to the last turn, and such loops grow.

    The result is the mean of the weights after each of the last `averaged` of the steps (0: those after the last): at a
    rate that does not fall, the last step is as noisy as any. Source: Izmailov et al., Averaging weights leads to wider
    optima and better generalization (2018).
    """

    steps: int
    tasks_per_step: int = 32
    rollouts_per_task: int = 8
    clip_low: float = 0.2
    clip_high: float = 0.28
    kl_beta: float = 0.0
    temperature: float = 1.0
    learning_rate: float = 2e-4
    warm_up_steps: int = 3
    largest_gradient: float = 1.0
    max_trajectory_tokens: int = 1024
    max_generation_tokens: int = 128
    max_turns: int = 40
    max_repeats: int = 3
    averaged: float = 0.0
    micro_batch: int | None = None
    chunk_tokens: int = 8192
    live: int = 64
    threads: int = 1
    kl_rows: int = 16
    retries: int = 2
    snapshot_every: int = 5
    guard: GuardLimits = field(default_factory=GuardLimits)


class Trained(NamedTuple):
    """How a run ended: steps that count, and why the guard stopped it, when the last healthy weights were restored."""

    steps: int
    reason: str = ""


def train_grpo(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    renderer: Renderer,
    tasks: Sequence[BoundTask],
    options: GrpoOptions,
    *,
    seed: int,
    metrics: MetricsFile,
    scratch: Path,
    sandbox: Sandbox | None = None,
    version: str = "",
    kept: Path | None = None,
) -> Trained:
    """Train `model` in place. Every task of the set is drawn once before any is drawn again.

    `kept` is a file for a sample of the rollouts, one group a step and a line an episode, which name `version` as the
    policy that they began with.

    Raises:
        ValueError: fewer tasks than one step needs.
        SpoiltStepError: no episode of a step has a reward.
    """
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    from datasets import Dataset
    from trl import GRPOConfig

    if len(tasks) < options.tasks_per_step:
        raise ValueError(f"{len(tasks)} tasks are fewer than the {options.tasks_per_step} of one step")
    rows = options.tasks_per_step * options.rollouts_per_task
    micro = options.micro_batch or rows
    on_cpu = model.device.type == "cpu"
    config = GRPOConfig(
        output_dir=str(scratch),
        use_cpu=on_cpu,
        bf16=not on_cpu,
        fp16=False,
        seed=seed % 2**32,
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=rows // micro,
        num_generations=options.rollouts_per_task,
        max_completion_length=options.max_trajectory_tokens,
        max_steps=options.steps,
        loss_type="grpo",
        beta=options.kl_beta,
        epsilon=options.clip_low,
        epsilon_high=options.clip_high,
        scale_rewards="group",
        temperature=options.temperature,
        learning_rate=options.learning_rate,
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=options.warm_up_steps,
        adam_beta1=0.9,
        adam_beta2=0.99,
        weight_decay=0.0,
        max_grad_norm=options.largest_gradient,
        gradient_checkpointing=not on_cpu,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        shuffle_dataset=False,  # the order below is the order of training
        dataloader_num_workers=0,
    )
    rollouts = Rollouts(model, renderer, tasks, options, seed, sandbox, version=version, kept=kept)
    keys = [str(index) for index in _order(len(tasks), options, seed)]
    watch = _Watch(model, rollouts, options, metrics)
    trainer = episode_trainer()(
        chunk_tokens=options.chunk_tokens,
        transcripts=rollouts.transcripts,
        model=model,
        reward_funcs=_episode_reward,
        args=config,
        train_dataset=Dataset.from_dict({"prompt": keys}),
        processing_class=tokenizer,
        rollout_func=rollouts,
        callbacks=[watch.callback()],
    )
    trainer.remove_callback(_printer())
    with closing(rollouts):
        trainer.train()
    model.eval()
    return watch.finish(trainer.state.global_step)


def _order(tasks: int, options: GrpoOptions, seed: int) -> list[int]:
    """Which tasks each step takes: all of them in a new order, again and again, a step never holding a task twice."""
    order: list[int] = []
    epoch = 0
    while len(order) < options.steps * options.tasks_per_step:
        drawn = rng("grpo order", seed, epoch).sample(range(tasks), tasks)
        begun = order[len(order) - len(order) % options.tasks_per_step :]  # a step that the last epoch left open
        first = [task for task in drawn if task not in begun][: options.tasks_per_step - len(begun)]
        order += [*first, *(task for task in drawn if task not in first)]
        epoch += 1
    return order[: options.steps * options.tasks_per_step]


def _episode_reward(reward: list[float | None], **_: Any) -> list[float | None]:
    return reward


class _Watch:
    """Follows the trainer's logs: writes canonical metrics, keeps healthy weights, stops a run that collapses."""

    def __init__(self, model: PreTrainedModel, rollouts: Rollouts, options: GrpoOptions, metrics: MetricsFile) -> None:
        self._model, self._rollouts, self._options, self._metrics = model, rollouts, options, metrics
        self._guard = CollapseGuard(options.guard)
        self._healthy = (0, self._weights())
        self._first_averaged = options.steps + 1 - round(options.averaged * options.steps)
        self._mean: dict[str, torch.Tensor] = {}

    def callback(self) -> Any:
        """What TRL's trainer calls."""
        from transformers import TrainerCallback

        watch = self

        class Callback(TrainerCallback):
            def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
                if logs and "reward" in logs and not watch.note(state.global_step, logs):
                    control.should_training_stop = True

        return Callback()

    def note(self, step: int, logs: dict[str, Any]) -> bool:
        """Take the logs of one step; false when the run must stop."""
        ours = self._rollouts.last
        values = {
            "loss": logs.get("loss"),
            "reward_mean": logs.get("reward"),
            "reward_std": logs.get("reward_std"),
            "zero_spread_groups": logs.get("frac_reward_zero_std"),
            "clip_frac_low": logs.get("clip_ratio/low_mean"),
            "clip_frac_high": logs.get("clip_ratio/high_mean"),
            "grad_norm": logs.get("grad_norm"),
            "lr": logs.get("learning_rate"),
            "tokens": logs.get("num_tokens"),
            "kl_ref": logs.get("kl"),
            **ours,
        }
        self._metrics.record(step, values)
        healthy = self._guard.watch(
            reward=logs["reward"],
            tool_calls=ours["tool_call_frequency"],
            entropy=ours["entropy"],
            truncated=ours["truncated_frac"],
        )
        if healthy and step % self._options.snapshot_every == 0:
            self._healthy = (step, self._weights())
        if step >= self._first_averaged:
            self._average(step - self._first_averaged + 1)
        return healthy

    def finish(self, steps: int) -> Trained:
        """Give the model the weights that the run ends with: rolled back if the guard stopped it."""
        if not self._guard.reason:
            if self._mean:
                self._model.load_state_dict(self._mean)
            return Trained(steps)
        self._model.load_state_dict(self._healthy[1])
        return Trained(self._healthy[0], f"{self._guard.reason} at step {steps}")

    def _average(self, count: int) -> None:
        """Take the weights of the `count`-th step into the running mean."""
        weights = self._weights()
        if count == 1:
            self._mean = weights
        for name, mean in self._mean.items():
            mean.lerp_(weights[name], 1 / count)

    def _weights(self) -> dict[str, torch.Tensor]:
        return {name: tensor.detach().clone() for name, tensor in self._model.state_dict().items()}


def _printer() -> type:
    from transformers import PrinterCallback

    return PrinterCallback
