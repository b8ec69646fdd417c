import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from agent_world.models.copying import teach_copying


def fresh(layers=4, bias=True):
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=1300, hidden_size=128, intermediate_size=320, num_hidden_layers=layers, num_attention_heads=4,
        num_key_value_heads=1, head_dim=32, attention_bias=bias, max_position_embeddings=512, tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 1_000_000.0},
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def right_copies(model, gap):
    """Share of tokens of a repeated random string that the model predicts, `gap` tokens after it stood first."""
    source = torch.Generator().manual_seed(1)
    draw = lambda n: torch.randint(8, 1300, (8, n), generator=source)  # noqa: E731
    name = draw(30)
    ids = torch.cat([draw(20), name, draw(gap), name], 1)
    with torch.no_grad():
        predicted = model(ids).logits[:, -30:-1].argmax(-1)
    return (predicted == name[:, 1:]).float().mean().item()


@pytest.mark.parametrize("gap", [5, 100, 300])
def test_a_fresh_model_copies_what_followed_the_same_token_before(gap):
    model = fresh()
    assert right_copies(model, gap) < 0.05
    teach_copying(model, seed=0)
    assert right_copies(model, gap) > 0.6


def test_the_same_seed_gives_the_same_weights():
    models = [fresh() for _ in range(3)]
    for model, seed in zip(models, (1, 1, 2), strict=True):
        teach_copying(model, seed)
    states = [torch.cat([p.flatten() for p in model.parameters()]) for model in models]
    assert torch.equal(states[0], states[1])
    assert not torch.equal(states[0], states[2])


@pytest.mark.parametrize("unfit", [{"layers": 1}, {"bias": False}])
def test_a_model_that_cannot_hold_the_circuit_is_refused(unfit):
    with pytest.raises(ValueError, match="two layers, and biases"):
        teach_copying(fresh(**unfit), seed=0)
