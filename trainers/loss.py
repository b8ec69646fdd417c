"""TRL's GRPO loss over our episodes: the policy chooses among what it may write, and still rows cost nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from agent_world.models.decoding import among
from agent_world.models.renderer import Transcript

if TYPE_CHECKING:
    import torch


def episode_trainer() -> Any:
    """TRL's GRPOTrainer for a policy that chooses among what it may write; what cannot move it costs no time."""
    import torch
    from trl import GRPOTrainer

    class EpisodeTrainer(GRPOTrainer):
        """The loss stays TRL's.

        Without a KL term a row without advantage has no gradient: it is left out, and what is left is taken in chunks
        of alike length, each cut to its longest row. Under a grammar only what was written is scored, as it was
        sampled: among what was allowed. TRL's own metrics of the loss are means over these chunks, so the entropy is
        taken from the rollouts instead (`rollouts.statistics`).
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
                super(EpisodeTrainer, self)._compute_loss(model, cut(inputs, chunk)) * (len(chunk) / len(lengths))
                for chunk in chunks(rows, lengths, self._chunk_tokens)
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
            by_policy = [wrote for row in rows for wrote in row.written]
            written[attention_mask.bool()] = torch.tensor(by_policy, device=written.device)
            hidden = model.base_model(
                input_ids=input_ids, attention_mask=attention_mask, use_cache=False
            ).last_hidden_state[:, :-1]
            logits = model.get_output_embeddings()(hidden[written[:, 1:]]).float() / self.temperature
            wrote = input_ids[written][:, None]
            # Equal ids of two tasks share a transcript; should their grammars differ, what was written was allowed.
            held = among(logits, allowed).scatter(-1, wrote, logits.gather(-1, wrote))
            choice = torch.log_softmax(held, -1)
            scores = choice.new_zeros(input_ids.shape)
            scores[written] = choice.gather(-1, wrote)[:, 0]
            scores = scores[:, -logits_to_keep:]
            return scores, torch.zeros_like(scores), None  # the zeros stand for an entropy that TRL would log

    return EpisodeTrainer


def chunks(rows: torch.Tensor, lengths: torch.Tensor, most_tokens: int) -> Iterator[torch.Tensor]:
    """Rows, sorted by length, in runs that hold at most `most_tokens` once padded."""
    start = 0
    for end in range(1, len(rows) + 1):
        if end == len(rows) or int(lengths[rows[end]]) * (end + 1 - start) > most_tokens:
            yield rows[start:end]
            start = end


def cut(inputs: dict[str, Any], rows: torch.Tensor) -> dict[str, Any]:
    """These rows of a batch without the padding that all of them share: left of prompts, right of completions."""
    batch = len(inputs["prompt_mask"])
    left = int(inputs["prompt_mask"][rows].sum(1).max())
    right = int(inputs["completion_mask"][rows].sum(1).max())
    kept: dict[str, Any] = {}
    for name, value in inputs.items():
        if not hasattr(value, "shape") or value.dim() == 0 or len(value) != batch:
            kept[name] = value
        elif value.dim() == 1:
            kept[name] = value[rows]
        else:
            span = slice(-left, None) if name.startswith("prompt") else slice(0, right)
            kept[name] = value[rows][:, span]
    return kept
