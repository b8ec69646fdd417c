"""What the daemon asks for after a diagnosis, over stages that do no work."""

from types import SimpleNamespace

import dagster as dg
import pytest

from assets.partitions import IN_ONE_RUN, rounds, targeted
from dagster_project.automation import targeted_by_diagnosis


@pytest.fixture
def stages():
    """A code location with the two stages that the sensor looks at; `played` is what each run of the second covered."""
    played = []

    @dg.asset(partitions_def=rounds)
    def diagnosis() -> None: ...

    @dg.asset(partitions_def=targeted, backfill_policy=IN_ONE_RUN, deps=[diagnosis])
    def targeted_tasks(context: dg.AssetExecutionContext) -> None:
        played.append(context.partition_keys)

    defs = dg.Definitions(assets=[diagnosis, targeted_tasks], sensors=[targeted_by_diagnosis])
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions(rounds.name, ["r00", "r01", "r02"])
        yield SimpleNamespace(instance=instance, defs=defs, played=played)


def diagnosed(stages, round, *environments):
    """A diagnosis of `round` adds its keys and is materialised."""
    if environments:
        stages.instance.add_dynamic_partitions(targeted.name, [f"{round}|{name}" for name in environments])
    stages.instance.report_runless_asset_event(dg.AssetMaterialization("diagnosis", partition=round))


def asked(stages):
    """What the sensor asks for when it looks."""
    context = dg.build_sensor_context(instance=stages.instance, definitions=stages.defs)
    return targeted_by_diagnosis.evaluate_tick(context).run_requests


def test_the_keys_that_a_diagnosis_added_are_materialised_in_one_run_and_then_left_alone(stages):
    assert asked(stages) == []
    diagnosed(stages, "r01", "weak", "frail")
    (request,) = asked(stages)
    (job,) = (job for job in stages.defs.get_repository_def().get_all_jobs() if targeted_by_diagnosis.name in job.name)
    assert job.execute_in_process(instance=stages.instance, tags=request.tags).success
    assert stages.played == [["r01|weak", "r01|frail"]]
    assert asked(stages) == []


def test_a_round_is_targeted_again_when_it_is_diagnosed_again_and_no_other_with_it(stages):
    for round in ("r01", "r02"):
        diagnosed(stages, round, "weak")
        stages.instance.report_runless_asset_event(dg.AssetMaterialization("targeted_tasks", partition=f"{round}|weak"))
    assert asked(stages) == []
    diagnosed(stages, "r02")
    (again,) = asked(stages)
    assert set(again.tags.values()) >= {"r02|weak"} and "r01|weak" not in again.tags.values()
    assert again.run_key == asked(stages)[0].run_key  # so that the daemon starts it once
    diagnosed(stages, "r02")
    assert asked(stages)[0].run_key != again.run_key


def test_a_round_without_weak_environments_asks_for_nothing(stages):
    diagnosed(stages, "r01")
    assert asked(stages) == []
