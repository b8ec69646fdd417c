"""Diagnosis of a round: the weak environments, what each should practise, and their partition keys (method.md 7)."""

from collections import defaultdict

import dagster as dg

from agent_world.arena.diagnosis import Attempt, Shape, diagnose
from agent_world.arena.model import Diagnosis
from agent_world.codec import decode, encode
from agent_world.identity import VersionId
from agent_world.lake.batch import Batch
from agent_world.world import World, rejected_trajectories
from assets.arena import categories
from assets.checks import check_specs, prove_all
from assets.partitions import IN_ONE_RUN, round_key, round_number, rounds, targeted, targeted_key
from assets.resources import LakeResource, RunResource
from assets.stage import commit, derive, report
from assets.training import checkpoint, task_set


@dg.asset(
    group_name="arena", kinds={"delta"}, deps=["arena"], partitions_def=rounds, backfill_policy=IN_ONE_RUN,
    check_specs=check_specs("diagnosis", "diagnoses"),
)  # fmt: skip
def diagnosis(context: dg.AssetExecutionContext, lake: LakeResource, run: RunResource) -> dg.MaterializeResult:
    """The ranked weak set, a guideline for each member, and one targeted partition for each."""
    world, settings = lake.open(), run.settings
    made, weak = [], {}
    for key in context.partition_keys:
        round = round_number(key)
        version = checkpoint(world, f"pi{round - 1}")
        names = replayed_attempts(world, round, version)
        training = task_set(world, "training")
        derivation = derive(settings, [], [version, training["version_id"], *names])

        def fill(batch: Batch, round=round, version=version, names=names, training=training) -> None:
            found = _diagnose(world, round, version, names, training["tasks"])
            parents = [(version, "policy"), (VersionId(training["version_id"]), "task_set")]
            parents += [(VersionId(name), "attempt") for name in names]
            batch.create("diagnosis", f"diagnosis-{round_key(round)}", encode(found), parents=parents)

        (found,) = commit(context, world, "diagnosis", key, derivation, fill).versions
        ranked = decode(Diagnosis, world.payload(found)).weak
        keys = [targeted_key(round, weakness.environment) for weakness in ranked[: settings.weakest]]
        _set_keys(context, round, keys)
        made.append(found)
        weak[key] = keys
    return report(world, {"weak": weak}, made, prove_all(world, "diagnoses"))


def replayed_attempts(world: World, round: int, policy: VersionId) -> list[str]:
    """The policy's attempts in the arena of a round, less those whose replay showed something else."""
    unlike = rejected_trajectories(world)
    where = {"purpose": "arena", "round": round, "policy_version": policy}
    names = [row["version_id"] for row in world.read("trajectories", where=where, columns=["version_id"])]
    return [name for name in names if name not in unlike]


def diagnosis_of(world: World, round: int) -> tuple[VersionId, Diagnosis]:
    """The current diagnosis of a round.

    Raises:
        NotFoundError: the round was not diagnosed.
    """
    version = world.resolve("diagnosis", f"diagnosis-{round_key(round)}")
    return version, decode(Diagnosis, world.payload(version))


def _diagnose(world: World, round: int, policy: VersionId, names: list[str], training: list[str]) -> Diagnosis:
    attempts, environments = [], {}
    for name in names:
        trajectory = world.trajectory(VersionId(name))
        bound = world.task(trajectory.task)
        key = bound.environment.environment_id
        environments[key] = bound.environment
        attempts.append(Attempt(trajectory=trajectory, task=bound.task, environment=key))
    shapes: dict[str, list[Shape]] = defaultdict(list)
    for task in training:
        bound = world.task(task)
        shapes[bound.environment.environment_id].append(bound.task.shape)
    return diagnose(
        attempts,
        round=round,
        policy_version=policy,
        environments=environments,
        categories=categories(world, round),
        training_shapes=shapes,
    )


def _set_keys(context: dg.AssetExecutionContext, round: int, keys: list[str]) -> None:
    """Add a round's keys together, so that they are contiguous, in the place of what it and later rounds had before.

    They had other ones where this round was diagnosed before by other code, or when a crash came between two keys.
    """
    before = [key for key in context.instance.get_dynamic_partitions(targeted.name) if round_number(key) >= round]
    if [key for key in before if round_number(key) == round] == keys:
        return
    for key in before:
        context.instance.delete_dynamic_partition(targeted.name, key)
    if keys:
        context.instance.add_dynamic_partitions(targeted.name, keys)
