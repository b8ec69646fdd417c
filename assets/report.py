"""The report of the run: one self-contained page beside the lake."""

import dagster as dg

from agent_world.home import service_home
from agent_world.identity import sha256
from agent_world.lake import snapshots
from agent_world.reporting.report import write_report
from assets.resources import LakeResource, TrackerResource


@dg.asset(group_name="reporting", kinds={"html"}, deps=["evaluation", "targeted_tasks", "diagnosis_score"])
def report(lake: LakeResource, tracker: TrackerResource) -> dg.MaterializeResult:
    """Tables and plots of everything: policies, arena, validity ladder, environments, tasks."""
    world = lake.open()
    path = service_home(world.uri) / "report.html"
    page = write_report(world)
    path.write_text(page, encoding="utf-8")
    log = tracker.open()
    run = log.loop_run({}, {"lake": world.uri})
    log.client.log_artifact(run, str(path))
    if log.is_open(run):
        tags = {"lake/events_version": str(world.events_version()), "lake/snapshot": snapshots.create(world)}
        log.finish(run, tags)
    return dg.MaterializeResult(
        metadata={"page": dg.MetadataValue.path(str(path)), "mlflow/run": run},
        data_version=dg.DataVersion(sha256(page)),
    )
