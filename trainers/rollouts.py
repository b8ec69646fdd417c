"""Rollouts for TRL: live sessions of many environments, observations masked, rewards from outcomes."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_world.codec import encode
from agent_world.errors import AgentWorldError
from agent_world.identity import seed_of
from agent_world.models.decoding import among
from agent_world.models.local import LocalPolicy
from agent_world.models.renderer import Renderer, Transcript, transcript
from agent_world.rollouts.loop import EpisodeSpec, roll_out
from agent_world.rollouts.model import Trajectory
from agent_world.world import BoundTask
from trainers.data import first_turn
from trainers.players import Players, Seat

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from agent_world.sandbox import Sandbox
    from trainers.grpo import GrpoOptions


class SpoiltStepError(AgentWorldError):
    """No episode of a step has a reward, so nothing can be learnt from it; `detail` is what spoilt the first."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail

    def __str__(self) -> str:
        return f"every episode of the step was spoilt by the harness: {self.detail}"


class Rollouts:
    """TRL's rollout function: prompts are keys of tasks, each repeated for its group."""

    def __init__(
        self,
        model: PreTrainedModel,
        renderer: Renderer,
        tasks: Sequence[BoundTask],
        options: GrpoOptions,
        seed: int,
        sandbox: Sandbox | None,
        *,
        version: str = "",
        kept: Path | None = None,
    ) -> None:
        """`version` is the checkpoint that training began with; `kept` a file for the first group of each step."""
        self._kept = kept
        self._renderer, self._tasks, self._options, self._seed, self._sandbox = renderer, tasks, options, seed, sandbox
        self._policy = LocalPolicy(
            model,
            renderer,
            name="grpo",
            version=version,
            temperature=options.temperature,
            max_step=options.max_generation_tokens,
            max_context=options.max_trajectory_tokens,
        )
        self._players = Players(model, self._play, options.threads) if self._may_fork(model) else None
        self._start = _frozen_copy(model) if options.kl_rows and not options.kl_beta else None
        self._visits: Counter[int] = Counter()
        self.last: dict[str, float] = {}
        self.transcripts: dict[tuple[int, ...], Transcript] = {}  # of the last step, by their ids

    def close(self) -> None:
        """End what plays for it."""
        if self._players:
            self._players.close()

    def __call__(self, prompts: list[str], trainer: Any) -> dict[str, list[Any]]:
        """What TRL asks for: ids, masks, log-probabilities and rewards of one rollout a prompt, in order.

        Raises:
            SpoiltStepError: see `statistics`.
        """
        trajectories = self._run([self._seat(int(key)) for key in prompts])
        self.last = statistics(trajectories)
        if self._kept:
            with self._kept.open("a", encoding="utf-8") as file:
                for trajectory in trajectories[: self._options.rollouts_per_task]:
                    if trajectory.outcome.reward is not None and _is_finite(trajectory):
                        file.write(json.dumps(encode(trajectory)) + "\n")
        contexts = [
            self._context(self._tasks[int(key)], trajectory)
            for key, trajectory in zip(prompts, trajectories, strict=True)
        ]
        logprobs = [
            spread(context.written[context.prompt :], trajectory)
            for context, trajectory in zip(contexts, trajectories, strict=True)
        ]
        self.transcripts.clear()
        self.transcripts.update((tuple(context.ids), context) for context in contexts)
        if self._start is not None:
            self.last["kl_ref"] = divergence(self._start, contexts, logprobs, self._options.kl_rows)
        return {
            "prompt_ids": [context.ids[: context.prompt] for context in contexts],
            "completion_ids": [context.ids[context.prompt :] for context in contexts],
            "env_mask": [[int(by_policy) for by_policy in context.written[context.prompt :]] for context in contexts],
            "logprobs": logprobs,
            "reward": [trajectory.outcome.reward for trajectory in trajectories],
        }

    def _context(self, bound: BoundTask, trajectory: Trajectory) -> Transcript:
        """The episode as one sequence; one that was spoilt before its first step reads a pad: TRL wants something."""
        script = self._renderer.begin(first_turn(bound))
        found = transcript(self._renderer, script, trajectory.steps, choices=True)
        if len(found.ids) > found.prompt:
            return found
        return Transcript([*found.ids, self._renderer.pad], [*found.written, False], found.prompt)

    def _seat(self, task: int) -> Seat:
        seat = Seat(task, self._visits[task])
        self._visits[task] += 1
        return seat

    def _run(self, seats: Sequence[Seat]) -> list[Trajectory]:
        """All episodes; those that the harness spoilt are run again a few times."""
        done = self._played(seats)
        for _ in range(self._options.retries):
            spoilt = [index for index, trajectory in enumerate(done) if trajectory.outcome.reward is None]
            if not spoilt:
                break
            again = self._played([seats[index] for index in spoilt])
            for index, trajectory in zip(spoilt, again, strict=True):
                done[index] = trajectory
        return done

    def _played(self, seats: Sequence[Seat]) -> list[Trajectory]:
        """One attempt each, in hands that do not depend on how many play: who plays together is part of the result."""
        count = -(-len(seats) // self._options.live)
        hands = [seats[start::count] for start in range(count)]
        played = self._players(hands) if self._players else list(map(self._play, hands))
        return [played[index % count][index // count] for index in range(len(seats))]

    def _play(self, seats: Sequence[Seat]) -> list[Trajectory]:
        """These attempts together. The first step outside the format ends one, as does a loop: more teaches nothing."""
        options = self._options
        return roll_out(
            [self._spec(seat) for seat in seats], self._policy, sandbox=self._sandbox, max_steps=options.max_turns,
            max_malformed=1, max_repeats=options.max_repeats, live=options.live,
        )  # fmt: skip

    def _spec(self, seat: Seat) -> EpisodeSpec:
        bound = self._tasks[seat.task]
        return EpisodeSpec(
            task=bound.task,
            environment=bound.environment,
            sample=seat.sample,
            seed=seed_of("grpo", self._seed, bound.version, seat.sample),
            task_version=bound.version,
        )

    def _may_fork(self, model: PreTrainedModel) -> bool:
        """Whether others can play: a given sandbox and a GPU belong to this process alone."""
        return self._options.threads > 1 and self._sandbox is None and model.device.type == "cpu"


def spread(written: Sequence[bool], trajectory: Trajectory) -> list[float]:
    """Log-probabilities at the places the policy wrote, 0 elsewhere."""
    recorded = iter([p for step, _ in trajectory.steps if step.tokens for p in step.tokens.logprobs])
    return [next(recorded, 0.0) if by_policy else 0.0 for by_policy in written]


def _is_finite(trajectory: Trajectory) -> bool:
    """Whether weights that are numbers drew it; no others can be kept."""
    return all(math.isfinite(p) for step, _ in trajectory.steps if step.tokens for p in step.tokens.logprobs)


def statistics(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """What our episodes know and TRL does not; those that the harness spoilt are counted and show nothing else.

    `entropy` is the mean of -log pi over all that was written, whether it moves the policy or not: what was written
    was drawn from pi, so this is an unbiased estimate.

    Raises:
        SpoiltStepError: the harness spoilt them all.
    """
    lived = [t for t in trajectories if t.outcome.reward is not None]
    if not lived:
        raise SpoiltStepError(trajectories[0].outcome.detail)
    calls = [o for t in lived for step, o in t.steps if step.kind == "tool" and o is not None]
    answered = [bool(t.steps) and t.steps[-1][0].kind == "answer" for t in lived]
    logprobs = [p for t in lived for step, _ in t.steps if step.tokens for p in step.tokens.logprobs]
    return {
        "infra_errors": len(trajectories) - len(lived),
        "truncated_frac": 1 - sum(answered) / len(lived),
        "turns_mean": sum(len(t.steps) for t in lived) / len(lived),
        "tool_call_frequency": len(calls) / len(lived),
        "tool_error_rate": sum(o.status != "ok" for o in calls) / max(len(calls), 1),
        "entropy": -sum(logprobs) / max(len(logprobs), 1),
        "completion_tokens_mean": len(logprobs) / len(lived),
    }


def _frozen_copy(model: PreTrainedModel) -> PreTrainedModel:
    import copy

    return copy.deepcopy(model).eval().requires_grad_(False)


def divergence(
    start: PreTrainedModel, contexts: Sequence[Transcript], logprobs: Sequence[list[float]], rows: int
) -> float:
    """Mean over written tokens of log pi - log pi_start, on at least `rows` rollouts spread evenly, if there are."""
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
