"""What all commands share: one line for an error, the trace for --debug, a lake that is there, hints that work."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from agent_world import world
from agent_world.home import service_home
from agent_world.lake import NotALakeError
from assets.settings import settings_for
from dagster_project import cli
from dagster_project.cli.common import NoLakeError, typed
from dagster_project.cli.ui import PortError
from dagster_project.loop import NothingLeftError, run_loop
from dagster_project.runs import last_run, mark


@pytest.fixture
def lake(tmp_path, monkeypatch) -> world.World:
    monkeypatch.setenv("DAGSTER_HOME", "")  # the loop sets it; this puts it back
    return world.open(tmp_path / "lake", create=True)


def main(monkeypatch, capsys, *arguments: str) -> tuple[int, str]:
    """The exit status of the command line and what it said on stderr."""
    monkeypatch.setattr(sys, "argv", ["agent-world", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code, capsys.readouterr().err


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def leaves(command: click.Command, *names: str) -> list[tuple[str, ...]]:
    if not isinstance(command, click.Group):
        return [names]
    context = click.Context(command)
    return [
        leaf
        for name in command.list_commands(context)
        for leaf in leaves(command.get_command(context, name), *names, name)
    ]


@pytest.mark.parametrize("names", leaves(cli.cli), ids=" ".join)
def test_every_command_takes_a_lake_and_debug(names):
    shown = CliRunner().invoke(cli.cli, [*names, "--help"]).stdout
    assert "--lake URI" in shown and "--debug" in shown
    assert "\\b" not in shown


def test_an_unexpected_error_is_one_line_and_its_trace_comes_with_debug(monkeypatch, capsys, lake):
    def broken(*_):
        raise ValueError("boom\nand more")

    monkeypatch.setattr("agent_world.lake.status.status", broken)
    said = main(monkeypatch, capsys, "status", "--lake", lake.uri)
    assert said == (1, "Error: ValueError: boom; run again with --debug for the trace\n")
    for arguments in (("status", "--debug"), ("--debug", "status")):
        monkeypatch.setattr(sys, "argv", ["agent-world", *arguments, "--lake", lake.uri])
        with pytest.raises(ValueError, match="boom"):
            cli.main()


def test_a_file_that_the_system_refuses_is_named(monkeypatch, capsys, tmp_path):
    file = tmp_path / "nowhere" / "key"
    code, said = main(monkeypatch, capsys, "snapshot", "keygen", str(file))
    assert code == 1 and said.startswith(f"Error: {file}: No such file or directory;") and "Errno" not in said


@pytest.mark.parametrize("status", [0, 1])
def test_the_exit_code_of_a_command_is_that_of_the_program(monkeypatch, capsys, lake, status):
    monkeypatch.setattr("agent_world.lake.status.status", lambda _: click.get_current_context().exit(status))
    assert main(monkeypatch, capsys, "status", "--lake", lake.uri) == (status, "")


def test_a_snapshot_that_is_not_there_points_at_the_list_of_snapshots(monkeypatch, capsys, lake):
    code, said = main(monkeypatch, capsys, "snapshot", "verify", "1234567", "--lake", lake.uri)
    assert code == 1 and said.endswith("see `agent-world snapshot list`\n")


@pytest.mark.parametrize("arguments", [("status",), ("env", "list"), ("lineage", "why", "x"), ("ui",)], ids=" ".join)
def test_a_place_without_a_lake_is_told_with_what_to_do_and_left_alone(arguments, tmp_path):
    result = CliRunner().invoke(cli.cli, [*arguments, "--lake", str(tmp_path / "typo")])
    assert isinstance(result.exception, NoLakeError)
    assert "there is nothing; name the right place with --lake" in str(result.exception)
    assert str(result.exception).endswith("agent-world run --lake DIR")
    assert list(tmp_path.iterdir()) == []


def test_a_run_leaves_a_directory_alone_that_is_no_lake(tmp_path):
    place = tmp_path / "photos"
    place.mkdir()
    (place / "cat.jpg").write_bytes(b"")
    with pytest.raises(NotALakeError, match=r"holds cat\.jpg"):
        run_loop(str(place), {})
    assert [path.name for path in tmp_path.rglob("*")] == ["photos", "cat.jpg"]


def test_a_run_of_which_nothing_comes_fails_and_is_over(monkeypatch, lake):
    monkeypatch.setattr("dagster_project.stages.Stages.run", lambda *_: None)
    with pytest.raises(NothingLeftError, match="no database came of it"):
        run_loop(lake.uri, {"profile": "smoke"})
    assert [row["status"] for row in lake.read("runs")] == ["started", "failed"]


def test_a_killed_run_is_taken_up_with_its_own_options(monkeypatch, lake):
    begun = settings_for("smoke", seed=3, rounds=2)
    mark(lake, begun, "started")
    seen = []
    monkeypatch.setattr("dagster_project.loop._materialise", lambda lake, opened, settings: seen.append(settings))
    monkeypatch.setattr("dagster_project.summary.print_summary", lambda lake: None)
    assert CliRunner().invoke(cli.cli, ["run", "--resume", "--lake", lake.uri]).exit_code == 0
    assert seen == [begun]
    found = last_run(lake)
    assert found is not None and found.ended


def test_the_defaults_of_a_run_are_shown():
    shown = " ".join(CliRunner().invoke(cli.cli, ["run", "--help"]).stdout.split())
    for default in ("(default)", "(7)", "(2, smoke: 1)", "(14, smoke: 3)", "(2)"):
        assert f"[default: {default}" in shown


@pytest.mark.parametrize("option", ["--dagster-port", "--mlflow-port"])
def test_a_taken_port_is_named_with_its_option_before_anything_is_made(lake, option):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = dict.fromkeys(("--dagster-port", "--mlflow-port"), free_port()) | {option: taken.getsockname()[1]}
        arguments = [text for name, port in ports.items() for text in (name, str(port))]
        result = CliRunner().invoke(cli.cli, ["ui", *arguments, "--lake", lake.uri])
    assert isinstance(result.exception, PortError) and str(result.exception).endswith(f"choose another with {option}")
    assert not Path(f"{lake.uri}.services").exists()


def test_the_page_materialises_with_the_settings_of_the_last_run(monkeypatch, lake):
    from dagster_project import definitions
    from dagster_project.cli import ui

    begun = settings_for("smoke", seed=3)
    mark(lake, begun, "started")
    started = []

    def start(command, *, env, **_):
        started.append(env)
        raise KeyboardInterrupt

    monkeypatch.setattr(ui.subprocess, "Popen", start)
    monkeypatch.setattr(ui, "check_ports", lambda ports: None)
    CliRunner().invoke(ui.command, ["--lake", lake.uri])
    [environment] = started
    monkeypatch.setenv("AGENT_WORLD_SETTINGS", environment["AGENT_WORLD_SETTINGS"])
    assert definitions.settings() == begun
    assert environment["AGENT_WORLD_LAKE"] == lake.uri
    assert service_home(lake.uri).exists()


def test_a_hint_works_where_it_is_typed(monkeypatch, tmp_path):
    program = Path(sys.executable).with_name("agent-world")
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.chdir(program.parent.parent.parent)
    assert typed("status", "--lake", "my lake") == ".venv/bin/agent-world status --lake 'my lake'"
    monkeypatch.chdir(tmp_path)
    assert typed("status") == f"{program} status"
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    assert typed("status") == "agent-world status"


_CLEARING = """
import os, signal, sys, time
from dagster_project import cli

class Clearing:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)

def work(**_):
    Clearing()  # cleared away at once, and the signal with it
    time.sleep(30)
    print("was not interrupted")

cli.cli.main = work
cli.main()
"""


def test_a_ctrl_c_that_comes_while_an_object_is_cleared_away_is_not_lost():
    done = subprocess.run([sys.executable, "-c", _CLEARING], capture_output=True, text=True, timeout=25, check=False)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.strip() == "Interrupted; nothing is lost."
