"""What reaches TRL from our episodes: masks, rewards, and the rows and padding that are left out of the loss."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agent_world.models.renderer import Transcript, transcript
from agent_world.rollouts.model import Outcome, Step, Tokens
from tests.models import little
from tests.trainers import jobs
from trainers import grpo, rollouts
from trainers.data import first_turn
from trainers.grpo import GrpoOptions
from trainers.loss import episode_trainer
from trainers.rollouts import Rollouts, SpoiltStepError


class Trainer:
    """As much of TRL's trainer as a rollout function may look at."""


def rolled(options=None, tasks=None, monkeypatch=None, trajectories=None):
    tasks = tasks or [jobs.bound(jobs.READING), jobs.bound(jobs.WRITING)]
    made = Rollouts(little.model(), little.renderer(), tasks, options or GrpoOptions(steps=1, kl_rows=0), 0, None)
    if trajectories is not None:
        calls = []

        def played(specs, policy, **_):
            calls.append(len(specs))
            return [trajectories(len(calls), index) for index in range(len(specs))]

        monkeypatch.setattr(rollouts, "roll_out", played)
        return made, calls
    return made


def with_tokens(steps):
    """The steps as a local policy would have recorded them."""
    script = little.script()
    out = []
    for step, observation in steps:
        ids = tuple(script.step(step))
        tokens = Tokens(ids=ids, logprobs=tuple(-0.1 * (n + 1) for n in range(len(ids))))
        out.append((Step(**{f: getattr(step, f) for f in Step.__slots__ if f != "tokens"}, tokens=tokens), observation))
    return tuple(out)


def test_only_what_the_policy_wrote_is_unmasked_and_carries_its_logprobs(monkeypatch):
    passed = jobs.trajectory(jobs.READING, with_tokens(little.EPISODE))
    made, _ = rolled(monkeypatch=monkeypatch, trajectories=lambda call, index: passed)
    batch = made(["0"] * 4, Trainer())
    ids, written, prompt, _ = transcript(
        little.renderer(), little.renderer().begin(first_turn(jobs.bound(jobs.READING))), passed.steps
    )
    assert batch["prompt_ids"][0] + batch["completion_ids"][0] == ids
    assert [bool(m) for m in batch["env_mask"][0]] == written[prompt:]
    recorded = [p for p, by_policy in zip(batch["logprobs"][0], written[prompt:], strict=True) if by_policy]
    assert recorded == [p for step, _ in passed.steps for p in step.tokens.logprobs]
    assert all(p == 0.0 for p, by_policy in zip(batch["logprobs"][0], written[prompt:], strict=True) if not by_policy)
    assert batch["completion_ids"][0][-1] == little.tokenizer().eos_token_id
    assert batch["reward"] == [1.0] * 4


def test_what_the_harness_spoilt_is_tried_again_and_then_has_no_reward(monkeypatch):
    good = jobs.trajectory(jobs.READING, with_tokens(little.EPISODE))
    spoilt = jobs.trajectory(jobs.READING, with_tokens(little.EPISODE)[:1], "infra_error")
    failed = jobs.trajectory(jobs.READING, with_tokens(little.EPISODE), "fail")

    def episodes(call, index):
        if call == 1:
            return (good, spoilt, spoilt, failed)[index]
        return spoilt if index else good

    made, calls = rolled(monkeypatch=monkeypatch, trajectories=episodes)
    batch = made(["0"] * 4, Trainer())
    assert calls == [4, 2, 1]
    assert batch["reward"] == [1.0, 1.0, 1.0, 0.0]
    made, calls = rolled(
        monkeypatch=monkeypatch, trajectories=lambda call, index: good if call == 1 and index else spoilt
    )
    assert made(["0"] * 4, Trainer())["reward"] == [None, 1.0, 1.0, 1.0]
    assert made.last["infra_errors"] == 1


def test_an_episode_that_was_spoilt_before_its_first_step_has_something_to_score(monkeypatch):
    """TRL looks at the last id of every completion."""
    good = jobs.trajectory(jobs.READING, with_tokens(little.EPISODE))
    nothing = jobs.trajectory(jobs.READING, (), "infra_error")
    episodes = lambda call, index: good if call == 1 and index else nothing  # noqa: E731
    made, _ = rolled(monkeypatch=monkeypatch, trajectories=episodes)
    batch = made(["0"] * 2, Trainer())
    assert batch["completion_ids"][0] == [little.renderer().pad]
    assert batch["env_mask"][0] == [0]
    assert batch["logprobs"][0] == [0.0]
    assert batch["reward"] == [None, 1.0]
    assert (*batch["prompt_ids"][0], *batch["completion_ids"][0]) in made.transcripts


def test_what_the_harness_spoilt_is_no_behaviour_of_the_policy():
    good = jobs.trajectory(jobs.READING, with_tokens(little.EPISODE))
    failed = jobs.trajectory(jobs.READING, with_tokens(little.EPISODE)[:1], "fail")
    spoilt = jobs.trajectory(jobs.READING, with_tokens(little.EPISODE)[:2], "infra_error")
    lived = rollouts.statistics([good, failed])
    assert rollouts.statistics([spoilt, good, spoilt, failed]) == lived | {"infra_errors": 2}
    assert lived["truncated_frac"] == 0.5
    assert lived["turns_mean"] == 2


def test_a_step_in_which_the_harness_spoilt_everything_says_what_spoilt_it(monkeypatch):
    outcome = Outcome(status="infra_error", detail="session: OSError: no space left")
    spoilt = replace(jobs.trajectory(jobs.READING, ()), outcome=outcome)
    made, calls = rolled(monkeypatch=monkeypatch, trajectories=lambda call, index: spoilt)
    with pytest.raises(SpoiltStepError, match="every episode of the step was spoilt by the harness: session: OSError"):
        made(["0"] * 2, Trainer())
    assert calls == [2, 2, 2]


def test_the_entropy_is_over_all_that_was_written_whether_it_moves_the_policy_or_not():
    """A group that all passes has no advantage, and yet it shows what the policy is like."""
    good = jobs.trajectory(jobs.READING, with_tokens(little.EPISODE))
    failed = jobs.trajectory(jobs.WRITING, with_tokens(jobs.LOANS), "fail")
    wrote = [p for t in (good, good, failed) for step, _ in t.steps for p in step.tokens.logprobs]
    found = rollouts.statistics([good, good, failed])
    assert found["entropy"] == pytest.approx(-sum(wrote) / len(wrote))
    assert found["completion_tokens_mean"] == len(wrote) / 3


def test_samples_of_a_task_go_on_counting_over_steps_so_that_no_draw_comes_twice(monkeypatch):
    seen = []

    def played(specs, policy, **_):
        seen.extend((spec.task.task_id, spec.sample, spec.seed) for spec in specs)
        return [jobs.trajectory(jobs.READING, with_tokens(little.EPISODE)) for _ in specs]

    monkeypatch.setattr(rollouts, "roll_out", played)
    made = rolled()
    made(["0", "0", "1", "1"], Trainer())
    made(["0", "0", "1", "1"], Trainer())
    assert len(set(seen)) == 8
    assert [sample for task, sample, _ in seen if task == "toy-read"] == [0, 1, 2, 3]


@given(size=st.integers(1, 6), more=st.integers(0, 14), steps=st.integers(1, 30), seed=st.integers(0, 9))
def test_every_task_is_drawn_once_before_any_is_drawn_again_and_no_step_holds_one_twice(size, more, steps, seed):
    tasks = size + more
    order = grpo._order(tasks, GrpoOptions(steps=steps, tasks_per_step=size), seed)
    assert len(order) == steps * size
    for step in range(0, len(order), size):
        assert len(set(order[step : step + size])) == size
    for epoch in range(0, len(order), tasks):
        drawn = order[epoch : epoch + tasks]
        assert len(set(drawn)) == len(drawn)
    assert set(order) <= set(range(tasks))


def test_epochs_and_seeds_draw_in_another_order():
    once, again = (grpo._order(30, GrpoOptions(steps=20, tasks_per_step=3), seed) for seed in (1, 2))
    assert once[:30] != once[30:] != again[30:]


@pytest.fixture
def batch():
    """Six rows of different length, padded as TRL pads them; two have no advantage."""
    generator = torch.Generator().manual_seed(0)
    prompts, completions = [3, 5, 4, 5, 2, 5], [7, 2, 9, 4, 12, 6]
    ids = lambda n: torch.randint(8, 300, (n,), generator=generator)  # noqa: E731
    inputs = {
        name: torch.zeros(6, width, dtype=torch.long)
        for name, width in (
            ("prompt_ids", 5),
            ("prompt_mask", 5),
            ("completion_ids", 12),
            ("completion_mask", 12),
            ("tool_mask", 12),
        )
    }
    for row, (p, c) in enumerate(zip(prompts, completions, strict=True)):
        inputs["prompt_ids"][row, 5 - p :] = ids(p)
        inputs["prompt_mask"][row, 5 - p :] = 1
        inputs["completion_ids"][row, :c] = ids(c)
        inputs["completion_mask"][row, :c] = 1
        inputs["tool_mask"][row, :c] = torch.arange(c) % 3 != 1
    inputs["advantages"] = torch.tensor([1.0, 0.0, -0.5, 0.7, 0.0, -1.2])
    return {**inputs, "num_items_in_batch": torch.tensor(40)}


def transcripts(batch, choice):
    """The rows of a batch as the rollouts keep them, `choice` being what could be written at every place."""
    found = {}
    for row in range(len(batch["advantages"])):
        parts = [(batch[f"{part}_ids"][row], batch[f"{part}_mask"][row].bool()) for part in ("prompt", "completion")]
        scored = parts[1][1]
        ids = [int(i) for part, seen in parts for i in part[seen]]
        before = int(batch["prompt_mask"][row].sum())
        written = [False] * before + batch["tool_mask"][row][scored].bool().tolist()
        found[tuple(ids)] = Transcript(ids, written, before, [choice] * sum(written))
    return found


def gradients(tmp_path, batch, chunk_tokens, cls=None, beta=0.0, choice=None):
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    model = little.model()
    config = GRPOConfig(
        output_dir=str(tmp_path),
        use_cpu=True,
        bf16=False,
        per_device_train_batch_size=6,
        num_generations=2,
        loss_type="grpo",
        epsilon_high=0.28,
        beta=beta,
        report_to=[],
        gradient_checkpointing=False,
    )
    options = {
        "model": model,
        "reward_funcs": grpo._episode_reward,
        "args": config,
        "processing_class": little.tokenizer(),
        "train_dataset": Dataset.from_dict({"prompt": ["0"]}),
        "rollout_func": lambda prompts, trainer: {},
    }
    if cls is None:
        trainer = GRPOTrainer(**options)
    else:
        trainer = cls(chunk_tokens=chunk_tokens, transcripts=transcripts(batch, choice), **options)
    trainer.current_gradient_accumulation_steps = 1
    loss = trainer._compute_loss(trainer.model, batch)
    loss.backward()
    return loss.item(), torch.cat([p.grad.flatten() for p in model.parameters()])


@pytest.mark.parametrize("choice", [None, np.ones(len(little.tokenizer()), dtype=bool)], ids=["trl", "ours"])
@pytest.mark.parametrize("chunk_tokens", [20, 40, 10_000])
def test_leaving_out_still_rows_and_padding_changes_neither_loss_nor_gradient(tmp_path, batch, chunk_tokens, choice):
    whole, expected = gradients(tmp_path, batch, 0)
    loss, gradient = gradients(tmp_path, batch, chunk_tokens, episode_trainer(), choice=choice)
    assert loss == pytest.approx(whole, abs=1e-6)
    assert torch.allclose(gradient, expected, atol=1e-6)
    assert expected.abs().max() > 1e-4


def test_a_batch_that_cannot_move_the_policy_has_no_gradient(tmp_path, batch):
    still = {**batch, "advantages": torch.zeros(6)}
    loss, gradient = gradients(tmp_path, still, 100, episode_trainer())
    assert loss == 0
    assert gradient.abs().max() == 0


def test_what_had_no_alternative_moves_nothing(tmp_path, batch):
    """Under a grammar with one way to go a policy decides nothing, whatever it is rewarded for."""
    for part in ("prompt", "completion"):
        batch[f"{part}_ids"][batch[f"{part}_mask"].bool()] = 9
    for row in range(6):
        batch["prompt_ids"][row, -1] = 10 + row  # rows are known by their ids
    only = np.zeros(len(little.tokenizer()), dtype=bool)
    only[9] = True
    _, gradient = gradients(tmp_path, batch, 100, episode_trainer(), choice=only)
    assert gradient.abs().max() < 1e-9


def test_what_was_written_can_be_scored_whatever_a_transcript_allows(tmp_path, batch):
    """Equal ids of two tasks share a transcript, and their grammars may differ."""
    other = np.zeros(len(little.tokenizer()), dtype=bool)
    other[[1, 2]] = True
    loss, gradient = gradients(tmp_path, batch, 100, episode_trainer(), choice=other)
    assert np.isfinite(loss) and torch.isfinite(gradient).all()
    assert gradient.abs().max() > 0
