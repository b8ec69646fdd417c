"""`agent-world ui`: both servers come up over one lake, their pages show the run, and nothing is left of them."""

from __future__ import annotations

import psutil
import pytest
from playwright.sync_api import expect

from agent_world.home import service_home
from assets.tracking import EXPERIMENT
from tests.dagster_project.servers import serving

PATIENCE_MS = 60_000


@pytest.fixture(scope="module")
def servers(ran, tmp_path_factory):
    with serving(ran[0], tmp_path_factory.mktemp("ui") / "log") as found:
        yield found
    assert len(found.processes) >= 2
    _, left = psutil.wait_procs(found.processes, timeout=10)
    assert not left


@pytest.fixture
def page(browser):
    page = browser.new_page(viewport={"width": 1600, "height": 1100})
    page.set_default_timeout(PATIENCE_MS)
    yield page
    page.close()


def shows(page, *texts):
    for text in texts:
        expect(page.get_by_text(text).first).to_be_visible(timeout=PATIENCE_MS)


@pytest.mark.timeout(900)
def test_the_asset_graph_holds_every_group(servers, page):
    page.goto(f"{servers.dagster}/asset-groups")
    shows(page, "environments", "tasks", "training", "arena", "reporting")


def test_an_asset_shows_its_metadata_its_partitions_and_its_checks(servers, page, lake):
    page.goto(f"{servers.dagster}/assets/environments")
    shows(page, "lake/events_version", "tool_graphs", "Latest check results")
    page.goto(f"{servers.dagster}/assets/environments?view=partitions")
    shows(page, f"Materialized ({len(lake.environments())})")
    page.goto(f"{servers.dagster}/assets/environments?view=checks")
    shows(page, "environments_keep_their_rules", "blocking asset check", "Passed")


def test_mlflow_shows_the_loop_its_rounds_and_its_policies(servers, page):
    page.goto(f"{servers.mlflow}/#/models/agent-world-policy")
    shows(page, "agent-world-policy", "Version 1")
    named = f"experiments/get-by-name?experiment_name={EXPERIMENT}"
    experiment = page.request.get(f"{servers.mlflow}/ajax-api/2.0/mlflow/{named}").json()["experiment"]["experiment_id"]
    page.goto(f"{servers.mlflow}/#/experiments/{experiment}/runs")
    loop = page.get_by_role("gridcell").filter(has=page.get_by_role("link", name="loop-"))
    expect(loop).to_be_visible(timeout=PATIENCE_MS)
    loop.get_by_role("button").click()  # rounds are folded under their loop
    for round in ("r00", "r01"):
        expect(page.get_by_role("link", name=round, exact=True)).to_be_visible(timeout=PATIENCE_MS)


def test_the_report_draws_its_plots_and_says_nothing_on_the_console(ran, page):
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.goto((service_home(str(ran[0])) / "report.html").as_uri())
    plots = page.locator("svg").all()
    assert plots
    assert all(min(plot.bounding_box()["width"], plot.bounding_box()["height"]) > 100 for plot in plots)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), (
        "the page is wider than its window"
    )
    assert not said
