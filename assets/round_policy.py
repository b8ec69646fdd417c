"""The training of a round: targeted demonstrations first, then GRPO on the targeted set; and its control."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import dagster as dg

from agent_world.engine import Engine
from agent_world.identity import VersionId, rng
from agent_world.reporting import plots
from agent_world.reporting.figures import GRPO_CURVES, curves
from agent_world.tasks.model import Purpose
from agent_world.world import World
from assets.checks import check_specs, prove_all
from assets.environments import built
from assets.partitions import IN_ONE_RUN, round_key, round_number, rounds
from assets.recipes import GRPO_OPTIONS, GRPO_TASKS, ROUND_SFT_OPTIONS, demonstration_hyper, grpo_hyper
from assets.resources import EngineResource, LakeResource, RunResource, TrackerResource
from assets.screening import learnable
from assets.settings import Settings
from assets.stage import report
from assets.targeted import set_name
from assets.tasks import order_for, produce_all
from assets.training import checkpoint, demonstrations, job_of, task_set, tracked, train
from trainers.job import TrainJob

WRITTEN = ("tasks", "trajectories", "gate_verdicts", "task_sets", "checkpoints", "training_metrics")
"""The tables that have rules and that a round's training may write."""

_REHEARSED = 3
"""So many demonstrations of before at most beside each new one."""

_CANDIDATES = 1.6
"""Candidates for each demonstration that the control wants."""


@dg.asset(
    group_name="training", kinds={"delta", "torch"}, deps=["targeted_tasks", "base_policy"], partitions_def=rounds,
    backfill_policy=IN_ONE_RUN, check_specs=check_specs("round_policy", *WRITTEN),
)  # fmt: skip
def round_policy(
    context: dg.AssetExecutionContext, lake: LakeResource, run: RunResource, tracker: TrackerResource,
    engine: EngineResource,
) -> dg.MaterializeResult:  # fmt: skip
    """pi(r) from pi(r-1): rejection-sampled demonstrations of the diagnosed abilities, then GRPO on the targeted set.

    Old demonstrations are rehearsed and general tasks tried beside the targeted ones, so that what is known stays. In
    profile `full` a control gets as many new demonstrations and steps, over all environments and without a guideline. A
    round without a weak environment trains on the general set.
    """
    world, settings = lake.open(), run.settings
    made = []
    for key in context.partition_keys:
        course = _Course(context, world, engine.engine, tracker, settings, round_number(key))
        shown, general = demonstrations(world, "practice", round=course.round), task_set(world, "training")
        made += course.follow("pi", "practice", shown, [*course.targeted(), general])
        if settings.control:
            made += course.follow("control", "control", course.untargeted(len(shown)), [general])
    lines = ("pi", "control") if settings.control else ("pi",)
    numbers = [round_number(key) for key in context.partition_keys]
    runs = tracked(world, [f"{line}{n}{step}" for line in lines for n in numbers for step in ("-demonstrations", "")])
    drawn = {"training": plots.curves(curves(world, GRPO_CURVES, runs))}
    return report(world, {"checkpoints": len(made), "mlflow/runs": runs}, made, prove_all(world, *WRITTEN), plots=drawn)


@dataclass(frozen=True, slots=True)
class _Course:
    """The training of one round, for a line of policies at a time: pi(1), pi(2), ... or control(1), control(2), ..."""

    context: dg.AssetExecutionContext
    world: World
    engine: Engine
    tracker: TrackerResource
    settings: Settings
    round: int

    def follow(
        self, line: str, purpose: Purpose, shown: Sequence[VersionId], sets: Sequence[dict[str, Any]]
    ) -> list[VersionId]:
        """Both steps of a line from where it stands: imitate what is shown, then GRPO on what the `sets` can teach.

        `purpose` is what the line's demonstrations of rounds are made for: those of earlier rounds are known to it.
        """
        name, hyper = f"{line}{self.round}", demonstration_hyper(self.settings)
        base = checkpoint(self.world, f"{line}{self.round - 1}" if self.round > 1 else "pi0")
        rehearsed = self._rehearsed(name, purpose, len(shown))
        job = job_of(
            self.world, self.settings, method="sft", base=base, hyper=hyper,
            trajectories=(*shown, *rehearsed), options=ROUND_SFT_OPTIONS,
        )  # fmt: skip
        first = self._train(f"{name}-demonstrations", job)
        chosen = learnable(
            self.context, self.world, self.engine, self.settings, policy=first, name=name, round=self.round, sets=sets,
            groups=self.settings.round_grpo_steps * GRPO_TASKS,
        )  # fmt: skip
        hyper = grpo_hyper(self.settings, tasks=chosen["size"], round=self.round)
        job = job_of(
            self.world, self.settings, method="grpo", base=first, tasks=chosen, hyper=hyper, options=GRPO_OPTIONS
        )
        return [first, self._train(name, job)]

    def targeted(self) -> list[dict[str, Any]]:
        """The targeted set of the round, if there is one."""
        rows = self.world.read("task_sets", where={"name": set_name(self.round), "state": "created"})
        return [rows[-1]] if rows and rows[-1]["size"] else []

    def untargeted(self, wanted: int) -> tuple[VersionId, ...]:
        """So many new demonstrations at most, over all environments alike."""
        keys = sorted(built(self.world, through=0))
        count = ceil(_CANDIDATES * wanted / len(keys))
        orders = [
            order_for(self.world, self.settings, key, count=count, purpose="control", round=self.round) for key in keys
        ]
        produce_all(self.context, self.world, self.engine, self.settings, f"control/{round_key(self.round)}", orders)
        found = demonstrations(self.world, "control", round=self.round)
        return tuple(rng("control", self.settings.seed, self.round).sample(found, min(wanted, len(found))))

    def _rehearsed(self, name: str, purpose: Purpose, fresh: int) -> list[VersionId]:
        """Of what the line was shown before; all of it when there is nothing new."""
        known = list(demonstrations(self.world, "practice"))
        for round in range(1, self.round):
            known += demonstrations(self.world, purpose, round=round)
        few = min(len(known), _REHEARSED * fresh) if fresh else len(known)
        return rng("rehearsal", self.settings.seed, name).sample(known, few)

    def _train(self, name: str, job: TrainJob) -> VersionId:
        return train(self.context, self.world, self.tracker, self.settings, name=name, round=self.round, job=job)
