"""The deployment of compose.yaml, without its containers: the same commands as processes of this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import pytest
import yaml

from agent_world import world
from assets.partitions import environments
from dagster_project.instance import instance_of
from tests.dagster_project.postgres_server import PASSWORD, postgres_server
from tests.dagster_project.servers import free_port
from tests.lake.s3_server import BUCKET, s3_server
from tests.toy import toy_environment
from tests.toy_lake import save_toy

pytestmark = pytest.mark.long

COMPOSE = yaml.safe_load((Path(__file__).parent.parent.parent / "compose.yaml").read_text("utf-8"))
LISTENING = ("mlflow", "code", "webserver")
LAUNCH = """mutation launch($parameters: ExecutionParams!) {
  launchRun(executionParams: $parameters) {
    __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message }
  }
}"""
STATUS = "query status($run: ID!) { runOrError(runId: $run) { ... on Run { status } } }"


@pytest.mark.timeout(1800)
def test_a_run_asked_for_on_the_page_is_queued_started_and_kept_in_the_services(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    ports = {name: free_port() for name in LISTENING}
    for folder in ("postgres", "s3"):
        (tmp_path / folder).mkdir()
    with ExitStack() as running:
        database = running.enter_context(postgres_server(tmp_path / "postgres"))
        variables = running.enter_context(s3_server(tmp_path / "s3")) | {
            "AGENT_WORLD_LAKE": f"s3://{BUCKET}/deployed",
            "AGENT_WORLD_POSTGRES_URL": database.url_without_password,
            "PGPASSWORD": PASSWORD,
            "AGENT_WORLD_PROFILE": "smoke",
        }
        assert variables.keys() >= COMPOSE["x-ours"]["environment"].keys()
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        lake = world.open(variables["AGENT_WORLD_LAKE"], create=True)
        with lake.begin("toy", derivation="d0") as batch:
            save_toy(batch, toy_environment())
        with instance_of(lake.uri) as instance:
            instance.add_dynamic_partitions(environments.name, [lake.environments()[0].environment_id])
        for name in (*LISTENING, "daemon"):
            running.enter_context(_served(name, ports, tmp_path / f"{name}.log"))
        page = f"http://127.0.0.1:{ports['webserver']}/graphql"
        where = "{ repositoriesOrError { ... on RepositoryConnection { nodes { name location { name } } } } }"
        (found,) = _asked(page, where)["repositoriesOrError"]["nodes"]
        selector = {
            "repositoryName": found["name"], "repositoryLocationName": found["location"]["name"],
            "jobName": "__ASSET_JOB", "assetSelection": [{"path": ["report"]}],
        }  # fmt: skip
        launched = _asked(page, LAUNCH, parameters={"selector": selector, "mode": "default"})["launchRun"]
        run, status = launched["run"]["runId"], "QUEUED"
        deadline = time.monotonic() + 600
        while status not in ("SUCCESS", "FAILURE", "CANCELED") and time.monotonic() < deadline:
            time.sleep(2)
            status = _asked(page, STATUS, run=run)["runOrError"]["status"]
        assert status == "SUCCESS", "".join(log.read_text()[-2000:] for log in tmp_path.glob("*.log"))
        api = f"http://127.0.0.1:{ports['mlflow']}/api/2.0/mlflow"
        (logged,) = httpx.post(f"{api}/runs/search", json={"experiment_ids": ["1"]}, timeout=120).json()["runs"]
        assert logged["info"]["status"] == "FINISHED"


def _asked(page: str, query: str, **variables: object) -> dict:
    return httpx.post(page, json={"query": query, "variables": variables}, timeout=120).json()["data"]


@contextmanager
def _served(name: str, ports: dict[str, int], log: Path) -> Iterator[None]:
    """One service of compose.yaml, from when its own health check holds."""
    service, at = COMPOSE["services"][name], ["--port", str(ports[name])] if name in ports else []
    there = {"0.0.0.0": "127.0.0.1", "code:4000": f"127.0.0.1:{ports['code']}"}

    def here(command: list[str]) -> list[str]:
        return [sys.executable, "-m", "dagster_project.cli", *(there.get(word, word) for word in command[1:]), *at]

    with log.open("w") as file:
        process = subprocess.Popen(here(service["command"]), stdout=file, stderr=file, start_new_session=True)
    try:
        deadline = time.monotonic() + 300
        while subprocess.run(here(service["healthcheck"]["test"][1:]), capture_output=True).returncode:
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(1)
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=120)
