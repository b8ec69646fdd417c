"""The files of the deployment fit together: what can be said of them without an engine and a registry."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

from dagster_project.cli import cli
from tests.dagster_project.servers import free_port

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "compose.yaml").read_text("utf-8")
EXAMPLE = (ROOT / ".env.example").read_text("utf-8")
SERVICES = yaml.safe_load(TEXT)["services"]
OURS = {name: service for name, service in SERVICES.items() if "build" in service}
VARIABLE = re.compile(r"\$\{(\w+)(:[-?])([^}]*)\}")


def test_every_variable_is_asked_for_or_has_the_default_that_the_example_shows():
    assert TEXT.count("$") == len(VARIABLE.findall(TEXT))
    asked = {f"{name}=" if how == ":?" else f"# {name}={default}" for name, how, default in VARIABLE.findall(TEXT)}
    shown = {line for line in EXAMPLE.splitlines() if re.fullmatch(r"(# )?\w+=.*", line)}
    assert shown == asked


def test_secrets_come_from_a_file_that_is_never_committed():
    secret = re.compile("PASSWORD|SECRET|ACCESS_KEY")
    given = [pair for service in SERVICES.values() for pair in service["environment"].items()]
    secrets = [value for name, value in given if secret.search(name)]
    assert len(secrets) > len(SERVICES)
    assert all(re.fullmatch(r"\$\{\w+:\?[^}]+\}", value) for value in secrets)
    kept = subprocess.run(["git", "check-ignore", ".env", ".env.example"], cwd=ROOT, capture_output=True, text=True)
    assert kept.stdout.splitlines() == [".env"]
    assert ".env" in (ROOT / ".dockerignore").read_text("utf-8").splitlines()


def test_every_image_is_named_by_a_variable_without_host_or_digest():
    for name, service in SERVICES.items():
        variable, _, default = VARIABLE.fullmatch(service["image"]).groups()
        assert variable.endswith("_IMAGE"), name
        assert re.fullmatch(r"([a-z][a-z0-9-]*/)?[a-z][a-z0-9-]*(:[\w.]+)?", default), name
    base = SERVICES["code"]["build"]["args"]["BASE_IMAGE"]
    text = (ROOT / "Dockerfile").read_text("utf-8")
    assert re.findall(r"^FROM (.*)$", text, re.MULTILINE) == ["${BASE_IMAGE}"]
    assert re.findall(r"^ARG BASE_IMAGE=(.*)$", text, re.MULTILINE) == [VARIABLE.fullmatch(base)[3]]


def test_each_service_waits_for_healthy_others_and_is_reached_from_this_machine_alone():
    waits = {name: service.get("depends_on", {}) for name, service in SERVICES.items()}
    assert set(TopologicalSorter(waits).static_order()) == {"postgres", "s3", "mlflow", "code", "webserver", "daemon"}
    for name, service in SERVICES.items():
        assert service["healthcheck"]["test"][0] == "CMD", name
        assert all(wait == {"condition": "service_healthy"} for wait in waits[name].values()), name
        assert all(port.startswith("${LISTEN_ADDRESS:-127.0.0.1}:") for port in service.get("ports", [])), name
        named = {volume.partition(":")[0] for volume in service.get("volumes", [])}
        assert named <= set(yaml.safe_load(TEXT)["volumes"]), name
    assert not {"postgres", "code", "daemon"} & {name for name, service in SERVICES.items() if "ports" in service}


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("asked", ["command", "healthcheck"])
def test_our_commands_are_understood_by_the_command_line(name, asked):
    program, *arguments = OURS[name]["command"] if asked == "command" else OURS[name]["healthcheck"]["test"][1:]
    assert program == "agent-world"
    context, command = click.Context(cli), cli
    while isinstance(command, click.Group):
        command = command.get_command(context, arguments.pop(0))
    understood = command.make_context(name, arguments).params
    assert understood["check"] is (asked == "healthcheck")
    if asked == "command" and "code" in understood:
        assert understood["code"] == ("code", 4000)


def test_a_health_check_fails_where_nobody_answers():
    for name, path in (("webserver", "server_info"), ("mlflow", "health")):
        port = str(free_port())
        done = CliRunner().invoke(cli, ["service", name, "--check", "--host", "0.0.0.0", "--port", port])
        assert (done.exit_code, f"http://127.0.0.1:{port}/{path} does not answer" in done.output) == (1, True)


@pytest.mark.parametrize("address", ["code", "code:", ":4000", "code:65536", "code:x"])
def test_an_address_of_a_code_server_needs_host_and_port(address):
    done = CliRunner().invoke(cli, ["service", "daemon", "--code", address])
    assert (done.exit_code, f"'{address}' is not HOST:PORT" in done.output) == (2, True)


def test_ports_are_those_that_our_servers_listen_on():
    for name in ("mlflow", "webserver"):
        (port,) = OURS[name]["ports"]
        service = cli.get_command(click.Context(cli), "service")
        command = service.get_command(click.Context(service), name)
        assert str(command.make_context(name, []).params["port"]) == port.rpartition(":")[2]


def test_the_programs_of_others_know_their_options():
    weed = Path(sys.executable).with_name("weed")
    known = subprocess.run([weed, "help", "server"], capture_output=True, text=True)
    flags = set(re.findall(r"^  (-[\w.]+)", known.stdout + known.stderr, re.MULTILINE))
    given = {option.partition("=")[0] for option in SERVICES["s3"]["command"] if option.startswith("-")}
    assert SERVICES["s3"]["command"][0] == "server"
    assert {"-s3", "-dir"} < given <= flags
    (ready,) = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_isready"))[-1:]
    options = re.findall(r" (-\w)\b", subprocess.run([ready, "--help"], capture_output=True, text=True).stdout)
    assert {option for option in SERVICES["postgres"]["healthcheck"]["test"] if option[0] == "-"} <= set(options)


def test_the_image_copies_what_is_there():
    text = (ROOT / "Dockerfile").read_text("utf-8")
    copied = re.findall(r"^COPY (\S+) ", text, re.MULTILINE)
    assert copied
    assert all((ROOT / name).exists() for name in copied)


def test_compose_itself_takes_the_file(tmp_path):
    """Where the plugin is there; it asks no engine for this."""
    docker = shutil.which("docker")
    if not docker or subprocess.run([docker, "compose", "version"], capture_output=True).returncode:
        pytest.skip("no docker compose here")
    command = [docker, "compose", "-f", ROOT / "compose.yaml", "--env-file", tmp_path / "env", "config", "--quiet"]
    (tmp_path / "env").write_text(EXAMPLE)
    refused = subprocess.run(command, capture_output=True, text=True)
    assert "fill in .env" in refused.stderr
    (tmp_path / "env").write_text(re.sub(r"^(\w+)=$", r"\1=x", EXAMPLE, flags=re.MULTILINE))
    taken = subprocess.run(command, capture_output=True, text=True)
    assert taken.returncode == 0, taken.stderr
