"""The embedded policy: a tokenizer and a Llama model of about a million parameters, made from scratch.

Both come from the seed and the training episodes alone; the result is a true Hugging Face directory. Not Qwen2: for
that type ``AutoTokenizer`` (transformers 5.24) ignores the saved tokenizer's own splitting and encodes with Qwen's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agent_world.environments.model import Json
from agent_world.models import references
from agent_world.models.compact import dump, dump_record
from agent_world.models.copying import teach_copying
from agent_world.models.tiny_renderer import TinyRenderer, tag_token
from agent_world.rollouts.model import Observation, Step

if TYPE_CHECKING:
    from transformers import LlamaForCausalLM, PreTrainedTokenizerFast


@dataclass(frozen=True, slots=True, kw_only=True)
class TinySize:
    """Sizes of the tiny model; `vocabulary` counts bytes, merges and marks, but not the environment tags."""

    width: int = 128
    layers: int = 4
    heads: int = 4
    key_value_heads: int = 1
    feed_forward: int = 320
    vocabulary: int = 1280
    context: int = 2048
    rope_theta: float = 1_000_000.0


# Keys with their separator and the quotation mark of a string, then lower-case words (tool names included) with the
# space before them; capitals, digits and marks stay single, so that a name is spelt alike wherever it stands.
_PIECES = r""" ?[A-Za-z_][A-Za-z0-9_]*="?| ?[a-z]+(?:_[a-z0-9]+)*| ?[A-Z]|\d| ?[^\sA-Za-z\d]|\s"""

_LOWER_CASE = re.compile(r"[a-z][a-z _-]*")


def make_tokenizer(texts: Iterable[str], environments: Sequence[str], size: TinySize) -> PreTrainedTokenizerFast:
    """Byte-level BPE over `texts`, with a mark for each role and a token for each environment tag."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size.vocabulary,
        special_tokens=list(TinyRenderer.MARKS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        min_frequency=4,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tags = [tag_token(environment) for environment in sorted(set(environments))]
    tokenizer.add_special_tokens([AddedToken(tag, special=True) for tag in tags])
    tokenizer.add_tokens([AddedToken(mark, normalized=False) for mark in references.MARKS])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<e>", padding_side="left")


def vocabulary_texts(instruction: str, steps: Sequence[tuple[Step, Observation | None]]) -> Iterator[str]:
    """What the merges of the tokenizer are learnt from: one episode with its values blanked.

    Only lower-case strings stay, since those are states and categories. Names and numbers would fill the vocabulary
    with pieces that are seen too rarely to be copied well.
    """
    values: set[str] = set()
    for step, observation in steps:
        if step.kind == "tool":
            yield f"{step.tool}{dump_record(_blanked(step.arguments, values))}"
        elif step.kind == "answer":
            yield dump(_blanked(step.answer, values))
        if observation is not None:
            yield dump(_blanked(observation.value, values))
    for value in sorted(values, key=len, reverse=True):
        instruction = instruction.replace(value, "")
    yield " " + instruction


def _blanked(value: Json, values: set[str]) -> Json:
    if isinstance(value, dict):
        return {key: _blanked(item, values) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_blanked(item, values) for item in value]
    if isinstance(value, str) and not _LOWER_CASE.fullmatch(value):
        values.add(value)
        return ""
    return value


def make_model(tokenizer: PreTrainedTokenizerFast, size: TinySize, seed: int) -> LlamaForCausalLM:
    """A model for `tokenizer` that knows nothing but how to copy, float32."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=size.width,
        intermediate_size=size.feed_forward,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=size.key_value_heads,
        head_dim=size.width // size.heads,
        attention_bias=True,
        max_position_embeddings=size.context,
        rope_parameters={"rope_type": "default", "rope_theta": size.rope_theta},
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        dtype="float32",
    )
    torch.manual_seed(seed)
    model = LlamaForCausalLM(config)
    teach_copying(model, seed)
    return model


def save(directory: Path, model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast) -> None:
    """Write a Hugging Face model directory."""
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
