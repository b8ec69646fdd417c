"""GRPO by TRL's trainer over our episodes: multi-environment batches of live sessions, observations masked.

TRL owns the loss, the optimiser and the distribution; the rollout, the reward and the bookkeeping are ours. An
`infra_error` gives no reward: TRL keeps such a rollout out of its group's baseline and out of the loss.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_world.identity import rng, seed_of
from agent_world.models.decoding import among
from agent_world.models.local import LocalPolicy
from agent_world.models.renderer import Renderer, Transcript, transcript
from agent_world.rollouts.loop import EpisodeSpec, roll_out
from agent_world.rollouts.model import Trajectory
from agent_world.world import BoundTask
from trainers.data import first_turn
from trainers.guard import CollapseGuard, GuardLimits
from trainers.metrics import MetricsFile

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from agent_world.sandbox import Sandbox


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpoOptions:
    """Settings of one run. Rollouts of a step: `tasks_per_step` groups of `rollouts_per_task`.

    `chunk_tokens` bounds the padded tokens of one forward inside a step; `kl_rows` is on how many rollouts a step
    measures its distance from the start policy (0 for not at all); `updates` of the policy on the rollouts of one step;
    `retries` of an `infra_error`.
    """

    steps: int
    tasks_per_step: int = 32
    rollouts_per_task: int = 8
    updates: int = 1
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
    micro_batch: int | None = None
    chunk_tokens: int = 8192
    live: int = 128
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
    each_step: Callable[[int], None] = lambda step: None,
) -> Trained:
    """Train `model` in place. Every task of the set is drawn once before any is drawn again.

    Raises:
        ValueError: fewer tasks than one step needs.
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
        num_iterations=options.updates,
        max_completion_length=options.max_trajectory_tokens,
        max_steps=options.steps * options.updates,
        loss_type="grpo",
        beta=options.kl_beta,
        epsilon=options.clip_low,
        epsilon_high=options.clip_high,
        scale_rewards="group",
        temperature=options.temperature,
        learning_rate=options.learning_rate,
        lr_scheduler_type="linear",
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
    rollouts = _Rollouts(model, renderer, tasks, options, seed, sandbox)
    keys = [str(index) for index in _order(len(tasks), options, seed)]
    watch = _Watch(model, rollouts, options, metrics, each_step)
    trainer = _trainer_class()(
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
    trainer.train()
    model.eval()
    return watch.finish(trainer.state.global_step)


def _order(tasks: int, options: GrpoOptions, seed: int) -> list[int]:
    """Which tasks each step takes: epochs in a new order, a step never holding a task twice."""
    order: list[int] = []
    epoch = 0
    while len(order) < options.steps * options.tasks_per_step:
        drawn = rng("grpo order", seed, epoch).sample(range(tasks), tasks)
        order += drawn[: tasks - tasks % options.tasks_per_step]
        epoch += 1
    return order[: options.steps * options.tasks_per_step]


def _episode_reward(reward: list[float | None], **_: Any) -> list[float | None]:
    return reward


class _Rollouts:
    """TRL's rollout function: prompts are keys of tasks, each repeated for its group."""

    def __init__(
        self,
        model: PreTrainedModel,
        renderer: Renderer,
        tasks: Sequence[BoundTask],
        options: GrpoOptions,
        seed: int,
        sandbox: Sandbox | None,
    ) -> None:
        self._renderer, self._tasks, self._options, self._seed, self._sandbox = renderer, tasks, options, seed, sandbox
        self._policy = LocalPolicy(
            model,
            renderer,
            name="grpo",
            version="training",
            temperature=options.temperature,
            max_step=options.max_generation_tokens,
            max_context=options.max_trajectory_tokens,
        )
        self._start = _frozen_copy(model) if options.kl_rows and not options.kl_beta else None
        self._visits: Counter[int] = Counter()
        self.last: dict[str, float] = {}
        self.transcripts: dict[tuple[int, ...], Transcript] = {}  # of the last step, by their ids

    def __call__(self, prompts: list[str], trainer: Any) -> dict[str, list[Any]]:
        specs = [self._spec(int(key)) for key in prompts]
        trajectories = self._run(specs)
        contexts = [
            transcript(self._renderer, self._renderer.begin(first_turn(self._tasks[int(key)])), trajectory.steps)
            for key, trajectory in zip(prompts, trajectories, strict=True)
        ]
        logprobs = [
            _spread(context.written[context.prompt :], trajectory)
            for context, trajectory in zip(contexts, trajectories, strict=True)
        ]
        self.transcripts.clear()
        self.transcripts.update((tuple(context.ids), context) for context in contexts)
        self.last = _statistics(trajectories)
        if self._start is not None:
            self.last["kl_ref"] = _divergence(self._start, contexts, logprobs, self._options.kl_rows)
        return {
            "prompt_ids": [context.ids[: context.prompt] for context in contexts],
            "completion_ids": [context.ids[context.prompt :] for context in contexts],
            "env_mask": [[int(by_policy) for by_policy in context.written[context.prompt :]] for context in contexts],
            "logprobs": logprobs,
            "reward": [trajectory.outcome.reward for trajectory in trajectories],
        }

    def _spec(self, task: int) -> EpisodeSpec:
        bound = self._tasks[task]
        sample = self._visits[task]
        self._visits[task] += 1
        return EpisodeSpec(
            task=bound.task,
            environment=bound.environment,
            sample=sample,
            seed=seed_of("grpo", self._seed, bound.version, sample),
            task_version=bound.version,
        )

    def _run(self, specs: Sequence[EpisodeSpec]) -> list[Trajectory]:
        """All episodes; those that the harness spoilt are run again a few times."""
        done = self._played(specs)
        for _ in range(self._options.retries):
            spoilt = [index for index, trajectory in enumerate(done) if trajectory.outcome.reward is None]
            if not spoilt:
                break
            again = self._played([specs[index] for index in spoilt])
            for index, trajectory in zip(spoilt, again, strict=True):
                done[index] = trajectory
        return done

    def _played(self, specs: Sequence[EpisodeSpec]) -> list[Trajectory]:
        """One attempt each. The first step outside the format ends it: the rest would cost much and teach nothing."""
        options = self._options
        return roll_out(
            specs, self._policy, sandbox=self._sandbox, max_steps=options.max_turns, max_malformed=1, live=options.live
        )


def _spread(written: Sequence[bool], trajectory: Trajectory) -> list[float]:
    """Log-probabilities at the places the policy wrote, 0 elsewhere."""
    recorded = iter([p for step, _ in trajectory.steps if step.tokens for p in step.tokens.logprobs])
    return [next(recorded, 0.0) if by_policy else 0.0 for by_policy in written]


def _statistics(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """What our episodes know and TRL does not."""
    calls = [o for t in trajectories for step, o in t.steps if step.kind == "tool" and o is not None]
    answered = [bool(t.steps) and t.steps[-1][0].kind == "answer" for t in trajectories]
    return {
        "infra_errors": sum(t.outcome.reward is None for t in trajectories),
        "truncated_frac": 1 - sum(answered) / len(answered),
        "turns_mean": sum(len(t.steps) for t in trajectories) / len(trajectories),
        "tool_call_frequency": len(calls) / len(trajectories),
        "tool_error_rate": sum(o.status != "ok" for o in calls) / len(calls) if calls else 0.0,
    }


def _frozen_copy(model: PreTrainedModel) -> PreTrainedModel:
    import copy

    return copy.deepcopy(model).eval().requires_grad_(False)


def _divergence(
    start: PreTrainedModel, contexts: Sequence[Transcript], logprobs: Sequence[list[float]], rows: int
) -> float:
    """Mean over written tokens of log pi - log pi_start, over the first `rows` rollouts and one of each group first."""
    import torch

    chosen = range(0, len(contexts), max(1, len(contexts) // rows))
    total, count = 0.0, 0
    with torch.no_grad():
        for index in chosen:
            ids, written, _, allowed = contexts[index]
            logits = start(torch.tensor([ids], device=start.device), use_cache=False).logits[0, :-1].float()
            places = torch.tensor(written[1:], device=start.device)
            wrote = torch.tensor(ids[1:], device=start.device)[places]
            reference = torch.log_softmax(among(logits[places], allowed), -1).gather(-1, wrote[:, None]).sum()
            total += sum(logprobs[index]) - float(reference)
            count += len(wrote)
    return total / max(count, 1)


class _Watch:
    """Follows the trainer's logs: writes canonical metrics, keeps healthy weights, stops a run that collapses."""

    def __init__(
        self,
        model: PreTrainedModel,
        rollouts: _Rollouts,
        options: GrpoOptions,
        metrics: MetricsFile,
        each_step: Callable[[int], None],
    ) -> None:
        self._model, self._rollouts, self._options = model, rollouts, options
        self._metrics, self._each_step = metrics, each_step
        self._guard = CollapseGuard(options.guard)
        self._healthy = (0, self._weights())

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
            "entropy": logs.get("entropy"),
            "clip_frac_low": logs.get("clip_ratio/low_mean"),
            "clip_frac_high": logs.get("clip_ratio/high_mean"),
            "completion_tokens_mean": logs.get("completions/mean_length"),
            "grad_norm": logs.get("grad_norm"),
            "lr": logs.get("learning_rate"),
            "tokens": logs.get("num_tokens"),
            "kl_ref": logs.get("kl"),
            **ours,
        }
        self._metrics.record(step, values)
        self._each_step(step)
        healthy = self._guard.watch(
            tool_calls=ours["tool_call_frequency"], entropy=values["entropy"] or 0.0, truncated=ours["truncated_frac"]
        )
        if healthy and step % self._options.snapshot_every == 0:
            self._healthy = (step, self._weights())
        return healthy

    def finish(self, steps: int) -> Trained:
        """Roll back if the guard stopped the run."""
        if not self._guard.reason:
            return Trained(steps)
        self._model.load_state_dict(self._healthy[1])
        return Trained(self._healthy[0], f"{self._guard.reason} at step {steps}")

    def _weights(self) -> dict[str, torch.Tensor]:
        return {name: tensor.detach().clone() for name, tensor in self._model.state_dict().items()}


def _printer() -> type:
    from transformers import PrinterCallback

    return PrinterCallback


def _trainer_class() -> Any:
    """TRL's GRPOTrainer for a policy that chooses among what it may write; what cannot move it costs no time."""
    import torch
    from trl import GRPOTrainer

    class EpisodeTrainer(GRPOTrainer):
        """The loss stays TRL's.

        Without a KL term a row without advantage has no gradient: it is left out, and what is left is taken in chunks
        of alike length, each cut to its longest row. Under a grammar only what was written is scored, as it was
        sampled: among what was allowed.
        """

        def __init__(
            self, *, chunk_tokens: int, transcripts: Mapping[tuple[int, ...], Transcript], **options: Any
        ) -> None:
            super().__init__(**options)
            self._chunk_tokens, self._transcripts = chunk_tokens, transcripts

        def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
            lengths = inputs["prompt_mask"].sum(1) + inputs["completion_mask"].sum(1)
            moving = torch.ones_like(lengths) if self.beta else inputs["advantages"] != 0
            rows = moving.nonzero()[:, 0] if moving.any() else torch.arange(1, device=lengths.device)
            rows = rows[lengths[rows].argsort(stable=True)]
            losses = [
                super(EpisodeTrainer, self)._compute_loss(model, _cut(inputs, chunk)) * (len(chunk) / len(lengths))
                for chunk in _chunks(rows, lengths, self._chunk_tokens)
            ]
            return torch.stack(losses).sum()

        def _get_per_token_logps_and_entropies(
            self, model: Any, input_ids: Any, attention_mask: Any, logits_to_keep: int, **options: Any
        ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
            rows = [
                self._transcripts[tuple(ids[seen.bool()].tolist())]
                for ids, seen in zip(input_ids, attention_mask, strict=True)
            ]
            allowed = [choice for row in rows for choice in row.allowed]
            if all(choice is None for choice in allowed):
                return super()._get_per_token_logps_and_entropies(
                    model, input_ids, attention_mask, logits_to_keep, **options
                )
            written = torch.zeros_like(attention_mask, dtype=torch.bool)
            written[attention_mask.bool()] = torch.tensor([by_policy for row in rows for by_policy in row.written])
            hidden = model.base_model(
                input_ids=input_ids, attention_mask=attention_mask, use_cache=False
            ).last_hidden_state[:, :-1]
            logits = model.get_output_embeddings()(hidden[written[:, 1:]]).float() / self.temperature
            choice = torch.log_softmax(among(logits, allowed), -1)
            scores = choice.new_zeros(input_ids.shape)
            scores[written] = choice.gather(-1, input_ids[written][:, None])[:, 0]
            entropies = choice.new_zeros(input_ids.shape)
            entropies[written] = -(choice.exp() * choice.clamp(min=-1e9)).sum(-1).detach()
            return scores[:, -logits_to_keep:], entropies[:, -logits_to_keep:], None

    return EpisodeTrainer


def _chunks(rows: torch.Tensor, lengths: torch.Tensor, most_tokens: int) -> Iterator[torch.Tensor]:
    """Rows, sorted by length, in runs that hold at most `most_tokens` once padded."""
    start = 0
    for end in range(1, len(rows) + 1):
        if end == len(rows) or int(lengths[rows[end]]) * (end + 1 - start) > most_tokens:
            yield rows[start:end]
            start = end


def _cut(inputs: dict[str, Any], rows: torch.Tensor) -> dict[str, Any]:
    """These rows of a batch without the padding that all of them share: left of prompts, right of completions."""
    batch = len(inputs["prompt_mask"])
    left = int(inputs["prompt_mask"][rows].sum(1).max())
    right = int(inputs["completion_mask"][rows].sum(1).max())
    cut: dict[str, Any] = {}
    for name, value in inputs.items():
        if not hasattr(value, "shape") or value.dim() == 0 or len(value) != batch:
            cut[name] = value
        elif value.dim() == 1:
            cut[name] = value[rows]
        else:
            span = slice(-left, None) if name.startswith("prompt") else slice(0, right)
            cut[name] = value[rows][:, span]
    return cut
