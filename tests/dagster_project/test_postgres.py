"""The stack on a real PostgreSQL server: what Dagster and MLflow remember lies there, and only there."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from unittest import mock
from urllib.parse import parse_qs, quote, urlsplit

import httpx
import psutil
import pytest
from sqlalchemy import create_engine, text

from agent_world import world
from agent_world.home import service_home
from agent_world.stores import (
    POSTGRES_URL,
    PostgresAddressError,
    PostgresMissingError,
    PostgresRefusedError,
    SchemaRefusedError,
    schema_address,
    tracking_store,
)
from assets.settings import settings_for
from assets.tracking import EXPERIMENT
from dagster_project.instance import dagster_environment, instance_of
from dagster_project.loop import run_loop
from dagster_project.stages import Stages
from tests.command import agent_world
from tests.dagster_project.postgres_server import DATABASE, PASSWORD, ROLE, postgres_server
from tests.dagster_project.servers import serving
from tests.toy import toy_environment
from tests.toy_lake import save_toy

SECRETS = (PASSWORD, quote(PASSWORD), quote(PASSWORD, safe=""))


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    with postgres_server(tmp_path_factory.mktemp("postgres")) as found:
        yield found


@pytest.fixture
def environment():
    """This process's variables, put back afterwards: an instance leaves its own in them."""
    with mock.patch.dict(os.environ):
        os.environ.pop(POSTGRES_URL, None)
        yield os.environ


def schema_of(service, lake):
    (options,) = parse_qs(urlsplit(schema_address(service, str(lake))).query)["options"]
    return options.rpartition("search_path=")[2]


@pytest.mark.timeout(900)
def test_a_stage_is_seen_in_the_database_and_on_the_pages_and_the_password_nowhere(database, tmp_path, environment):
    lake = world.open(tmp_path / "lake", create=True)
    with lake.begin("toy", derivation="d0") as batch:
        save_toy(batch, toy_environment())
    environment[POSTGRES_URL] = database.url
    with instance_of(lake.uri) as instance:
        Stages(instance, lake.uri, settings_for("smoke")).run("Report", ["report"])
        (run,) = instance.get_runs()
        shown = instance.info_str()
    dagster, mlflow = (schema_of(service, lake.uri) for service in ("dagster", "mlflow"))
    kept = f"FROM {dagster}.event_logs WHERE dagster_event_type = 'ASSET_MATERIALIZATION'"
    assert database.rows(f"SELECT run_id, asset_key {kept}") == [(run.run_id, '["report"]')]
    assert database.rows(f"SELECT asset_key FROM {dagster}.asset_keys") == [('["report"]',)]
    ((loop, status),) = database.rows(f"SELECT run_uuid, status FROM {mlflow}.runs")
    assert status == "FINISHED"
    home, log = service_home(lake.uri), tmp_path / "log"
    assert not [*home.rglob("*.db")]

    with serving(Path(lake.uri), log, "--profile", "postgres") as servers:
        asked = '{ assetOrError(assetKey: {path: ["report"]}) { ... on Asset { assetMaterializations { runId } } } }'
        answer = httpx.post(f"{servers.dagster}/graphql", json={"query": asked}, timeout=120).json()
        assert answer["data"]["assetOrError"]["assetMaterializations"] == [{"runId": run.run_id}]
        config = httpx.post(f"{servers.dagster}/graphql", json={"query": "{ instance { info } }"}, timeout=120).text
        api = f"{servers.mlflow}/api/2.0/mlflow"
        experiment = httpx.get(f"{api}/experiments/get-by-name", params={"experiment_name": EXPERIMENT}, timeout=120)
        ids = [experiment.json()["experiment"]["experiment_id"]]
        runs = httpx.post(f"{api}/runs/search", json={"experiment_ids": ids}, timeout=120).json()["runs"]
        assert [found["info"]["run_id"] for found in runs] == [loop]
        typed = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
        assert any("mlflow" in line and str(tmp_path) in line for line in typed)
    written = [path.read_text(errors="replace") for path in [log, *home.rglob("*")] if path.is_file()]
    assert "local_artifact_storage" in config
    for secret in SECRETS:
        assert not [where for where in (shown, config, *typed, *written) if secret in where]


def test_lakes_in_one_database_never_meet_and_what_an_address_asks_for_stays(database, tmp_path, environment):
    environment["PGPASSWORD"] = PASSWORD
    asked = "-cstatement_timeout=54321 -capplication_name=ours"
    environment[POSTGRES_URL] = f"{database.url_without_password}?options={quote(asked)}&connect_timeout=7"
    schemas = {schema_of(service, tmp_path / lake) for lake in "ab" for service in ("dagster", "mlflow")}
    assert len(schemas) == 4
    there = "SELECT nspname FROM pg_namespace WHERE nspname = ANY(%s)"
    assert {name for (name,) in database.rows(there, list(schemas))} == schemas
    ((meaning,),) = database.rows(
        "SELECT obj_description(oid) FROM pg_namespace WHERE nspname = %s", schema_of("dagster", tmp_path / "a")
    )
    assert str(tmp_path / "a") in meaning
    engine = create_engine(tracking_store(str(tmp_path / "a")))
    with engine.connect() as connection:
        here = connection.execute(text("SELECT current_schema(), current_setting('statement_timeout')")).one()
    engine.dispose()
    assert tuple(here) == (schema_of("mlflow", tmp_path / "a"), "54321ms")


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("", "is not set"),
        ("postgresql:builder", "is no address"),
        (f"postgresql://builder:{PASSWORD}@host:many/base", "is no address"),
        ("mysql://host/base", "begins with mysql:"),
        ("postgresql://host:5432", "names no database"),
    ],
)
def test_an_address_that_is_none_is_told_without_showing_it(address, says, tmp_path, environment):
    environment[POSTGRES_URL] = address
    with pytest.raises(PostgresAddressError, match=says) as told:
        schema_address("dagster", str(tmp_path / "lake"))
    assert "set it to postgresql://ROLE@HOST:PORT/DATABASE" in str(told.value)
    assert not any(secret in str(told.value) for secret in SECRETS)


def test_a_server_that_refuses_is_told_with_where_and_why(database, tmp_path, environment):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = f"postgresql://{ROLE}:{quote(PASSWORD)}@127.0.0.1:{closed.getsockname()[1]}/{DATABASE}"
        for address, says in (
            (nobody, "Connection refused"),
            (database.url.replace(quote(PASSWORD, safe=""), "wrong"), "password authentication failed"),
            (database.url.replace(f"/{DATABASE}", "/missing"), 'database "missing" does not exist'),
        ):
            environment[POSTGRES_URL] = address
            with pytest.raises(PostgresRefusedError, match=says) as told:
                dagster_environment(str(tmp_path / "lake"))
            assert f"127.0.0.1:{urlsplit(address).port}" in str(told.value)
            assert "\n" not in str(told.value)
            assert not any(secret in str(told.value) for secret in (*SECRETS, "wrong"))
    environment[POSTGRES_URL] = database.url.replace(f"/{DATABASE}", "/postgres")
    with pytest.raises(SchemaRefusedError, match=f'GRANT CREATE ON DATABASE "postgres" TO "{ROLE}"'):
        dagster_environment(str(tmp_path / "lake"))


def test_a_run_whose_database_is_out_of_reach_does_not_begin(tmp_path, environment):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        environment[POSTGRES_URL] = f"postgresql://{ROLE}@127.0.0.1:{closed.getsockname()[1]}/{DATABASE}"
        with pytest.raises(PostgresRefusedError):
            run_loop(str(tmp_path / "lake"), {"profile": "smoke"})
    assert world.open(tmp_path / "lake").read("runs") == []


@pytest.mark.parametrize("package", ["psycopg2", "dagster_postgres"])
def test_without_the_extra_the_error_names_it(package, tmp_path, environment, monkeypatch):
    environment[POSTGRES_URL] = "postgresql://builder@127.0.0.1:1/base"
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(PostgresMissingError, match=rf"{package.replace('_', '-')} .*agent-world\[postgres\]"):
        dagster_environment(str(tmp_path / "lake"))


def test_the_profile_postgres_without_an_address_is_one_line(tmp_path, environment):
    world.open(tmp_path / "lake", create=True)
    done = agent_world("ui", "--profile", "postgres", lake=tmp_path / "lake")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [f"Error: {PostgresAddressError('is not set')}"]
