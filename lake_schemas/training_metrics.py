"""Canonical training metrics; null where a back-end does not report one."""

from __future__ import annotations

from lake_schemas.base import TableSpec, integer, real, text

METRICS: dict[str, str] = {
    "loss": "what was minimised",
    "policy_loss": "cross-entropy of the tokens that the policy writes, nats",
    "context_loss": "cross-entropy of the tokens that the policy reads again, nats",
    "reward_mean": "share of rollouts that passed",
    "reward_std": "its standard deviation over rollouts",
    "zero_spread_groups": "share of groups whose rollouts all got the same reward",
    "infra_errors": "rollouts without a reward, kept out of the loss",
    "entropy": "of the policy over its own tokens, nats",
    "kl_ref": "mean over tokens of log pi - log pi_start, nats",
    "clip_frac_low": "share of tokens clipped below",
    "clip_frac_high": "share of tokens clipped above",
    "completion_tokens_mean": "tokens written by the policy in one rollout",
    "truncated_frac": "share of rollouts without an answer",
    "turns_mean": "steps of one rollout",
    "tool_call_frequency": "tool calls of one rollout",
    "tool_error_rate": "share of tool calls that were refused, invalid or in error",
    "grad_norm": "before clipping",
    "lr": "learning rate of the first parameter group",
    "tokens": "tokens seen so far",
}
"""The canonical names of training metrics and what each means; a back-end reports the ones it has."""

TABLE = TableSpec(
    name="training_metrics",
    shape="fact",
    meaning="Canonical training metrics; null where a back-end does not report one.",
    key=(
        "job",
        "step",
        "metric",
    ),
    columns=(
        text("job", "sha256 of the TrainJob"),
        text("stage", "name of the checkpoint that was trained: sft, pi0, pi1-demonstrations, ..."),
        integer("step", "optimiser step"),
        text("metric", "canonical name"),
        real("value", "value"),
    ),
)
