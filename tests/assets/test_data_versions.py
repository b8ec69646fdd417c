"""What Dagster takes for the version of an asset is what the asset made."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from agent_world import world
from agent_world.identity import canonical_json, sha256
from assets.partitions import environments
from assets.report import report
from assets.resources import LakeResource, RunResource, TrackerResource
from assets.settings import Settings
from assets.tasks import tool_graphs
from tests.toy import toy_environment
from tests.toy_lake import save_toy


@pytest.fixture
def lake(tmp_path):
    opened = world.open(tmp_path / "lake", create=True)
    with opened.begin("toy", derivation="d0") as batch:
        save_toy(batch, toy_environment())
    return LakeResource(uri=opened.uri)


def test_a_report_is_versioned_by_its_page(lake):
    made = report(lake=lake, tracker=TrackerResource(lake_uri=lake.uri, settings_json="{}"))
    page = Path(made.metadata["page"].value).read_bytes()
    assert made.data_version == dg.DataVersion(sha256(page))


def test_tool_graphs_are_versioned_by_their_environments(lake):
    (environment,) = lake.open().environments()
    key = environment.environment_id
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions(environments.name, [key])
        context = dg.build_asset_context(partition_key=key, instance=instance)
        made = tool_graphs(context, lake=lake, run=RunResource.of(Settings()))
    assert made.data_version == dg.DataVersion(sha256(canonical_json([environment.version])))
