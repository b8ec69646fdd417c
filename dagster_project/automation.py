"""What Dagster's daemon does of itself: target what a diagnosis found weak."""

from collections.abc import Iterator

import dagster as dg

from assets.partitions import RANGE_END, RANGE_START, targeted


@dg.sensor(
    target="targeted_tasks",
    minimum_interval_seconds=30,
    description="Materialises the targeted keys of each round diagnosed since; leave off while a run is going.",
)
def targeted_by_diagnosis(context: dg.SensorEvaluationContext) -> Iterator[dg.RunRequest]:
    """Ask for the targeted keys of every round whose diagnosis is newer than one of them, all in one run.

    Off until it is switched on, since `agent-world run` materialises these keys itself: with both at work on a lake
    each would do the round's targeting, of which the lake keeps one. A diagnosis is asked for once, even if that fails.
    """
    diagnosed, made = (_newest(context.instance, name) for name in ("diagnosis", "targeted_tasks"))
    known = context.instance.get_dynamic_partitions(targeted.name)
    for round, diagnosis in sorted(diagnosed.items()):
        keys = [key for key in known if key.startswith(f"{round}|")]
        if any(made.get(key, -1) < diagnosis for key in keys):
            yield dg.RunRequest(run_key=f"{round}@{diagnosis}", tags={RANGE_START: keys[0], RANGE_END: keys[-1]})


def _newest(instance: dg.DagsterInstance, asset: str) -> dict[str, int]:
    """Partition to the place in Dagster's log of its last materialisation."""
    kind = dg.DagsterEventType.ASSET_MATERIALIZATION
    return dict(instance.get_latest_storage_id_by_partition(dg.AssetKey(asset), kind))
