import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import pytest

import agent_world.errors
from agent_world import sandbox
from agent_world.sandbox import (
    BACKENDS,
    ProbeResult,
    SandboxUnavailableError,
    attacks,
    misconduct,
    seccomp,
    selftest,
    verdict,
)
from agent_world.sandbox.bwrap import BwrapSandbox
from agent_world.sandbox.guest_code import PYTHON
from agent_world.sandbox.process import BwrapProcessSandbox


@pytest.fixture(scope="module")
def results(backend):
    return selftest(backend)


def test_every_attack_is_held(results):
    assert [result for result in results if result.contained is False] == []


def test_every_attack_works_where_nothing_stops_it(results):
    assert [result for result in results if not result.control] == []


def test_there_are_many_attacks_and_no_name_twice(results):
    names = [result.name for result in results if result.contained]
    assert len(names) == len(set(names)) >= 110


def test_what_a_back_end_permits_is_said_and_is_no_attack_on_it(backend, results):
    permitted = {result.name for result in results if result.contained is None}
    assert permitted == BACKENDS[backend].permits
    assert {result.detail for result in results if result.contained is None} <= {"permitted by design"}


class WithoutFilter(BwrapSandbox):
    backend = "without-filter"

    def __init__(self, limits=None):
        allow_everything = struct.pack("<HBBI", 0x06, 0, 0, 0x7FFF0000)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(seccomp, "session_filter", lambda: allow_everything)
            super().__init__(limits)


def only(monkeypatch, module: str) -> None:
    """Leave one module of attacks: enough where one of them must be noticed."""
    monkeypatch.setattr(attacks, "_MODULES", (module,))
    monkeypatch.setattr(misconduct, "try_all", lambda sandbox: [])


def test_a_back_end_that_leaks_is_refused_by_name_of_the_attack_and_stays_refused(tmp_path, monkeypatch):
    only(monkeypatch, "kernel")
    with pytest.raises(SandboxUnavailableError, match=r"without-filter.*makes_an_anonymous_file"):
        verdict.require(WithoutFilter, tmp_path)
    monkeypatch.setattr(verdict, "selftest", lambda sandbox: pytest.fail("the verdict was kept"))
    with pytest.raises(SandboxUnavailableError, match=r"without-filter.*makes_an_anonymous_file"):
        verdict.require(WithoutFilter, tmp_path)


def test_a_kept_verdict_does_not_outlive_the_code_it_is_about(tmp_path, monkeypatch):
    tried = []
    monkeypatch.setattr(verdict, "selftest", lambda sandbox: tried.append(1) or [])
    verdict.require(BwrapSandbox, tmp_path)
    verdict.require(BwrapSandbox, tmp_path)
    assert len(tried) == 1
    changed = tmp_path / "changed.py"
    changed.write_text("x = 1")
    monkeypatch.setattr(verdict, "_own_code", lambda: [changed])
    verdict.require(BwrapSandbox, tmp_path)
    assert len(tried) == 2


class WithoutPermission(BwrapProcessSandbox):
    backend = "without-permission"
    permits = BwrapProcessSandbox.permits - {"forks"}


def test_what_is_not_declared_is_an_attack(tmp_path, monkeypatch):
    only(monkeypatch, "processes")
    with pytest.raises(SandboxUnavailableError, match=r"without-permission.*it does not hold forks;"):
        verdict.require(WithoutPermission, tmp_path)


def test_an_unknown_back_end_is_refused(monkeypatch):
    with pytest.raises(SandboxUnavailableError, match=r"no such back-end.*bwrap"):
        sandbox.open_sandbox("nothing")
    monkeypatch.setenv("AGENT_WORLD_SANDBOX", "no-such-thing")
    with pytest.raises(SandboxUnavailableError, match=r"no-such-thing.*no such back-end"):
        sandbox.open_sandbox()


def test_the_environment_chooses_the_back_end_and_an_argument_overrides_it(monkeypatch):
    monkeypatch.setattr(verdict, "require", lambda kind: None)
    monkeypatch.setenv("AGENT_WORLD_SANDBOX", "bwrap-process")
    with sandbox.open_sandbox() as chosen, sandbox.open_sandbox("bwrap") as named:
        assert (chosen.backend, named.backend) == ("bwrap-process", "bwrap")
    monkeypatch.delenv("AGENT_WORLD_SANDBOX")
    with sandbox.open_sandbox() as usual:
        assert usual.backend == "bwrap"


def _result(name: str, contained: bool | None) -> ProbeResult:
    return ProbeResult(name=name, contained=contained, control=True, detail="d")


def test_the_command_line_fails_by_name_of_what_escaped_and_counts_what_is_permitted(monkeypatch):
    from click.testing import CliRunner

    from dagster_project.cli.sandbox import command

    results = [_result("one", True), _result("two", None)]
    monkeypatch.setattr(sandbox, "selftest", lambda backend: results)
    printed = CliRunner().invoke(command, ["selftest", "--backend", "b"])
    assert printed.exit_code == 0
    assert "1 attacks held by b; 0 of them do not work here anyway.\n1 more are permitted by design." in printed.output
    results.append(_result("three", False))
    failed = CliRunner().invoke(command, ["selftest", "--backend", "b"])
    assert failed.exit_code != 0
    assert str(failed.exception) == "the sandbox b does not hold three; do not run generated code here"


def test_the_command_line_prints_the_results_as_rows(results, monkeypatch):
    from click.testing import CliRunner

    from dagster_project.cli.sandbox import command

    monkeypatch.setattr(sandbox, "selftest", lambda backend: results)
    printed = CliRunner().invoke(command, ["selftest", "--format", "json"])
    assert printed.exit_code == 0
    assert json.loads(printed.output) == [asdict(result) for result in results]
    assert set(json.loads(printed.output)[0]) == {"name", "contained", "control", "detail"}


@pytest.mark.parametrize(("module", "kind"), [("bwrap", "BwrapSandbox"), ("process", "BwrapProcessSandbox")])
def test_an_ordinary_user_needs_no_rights(module, kind):
    """The package alone, laid where everybody may read, started by somebody who owns nothing."""
    source = Path(agent_world.errors.__file__).parent
    script = (
        f"from agent_world.sandbox.{module} import {kind}\n"
        "from agent_world.sandbox.verdict import selftest\n"
        f"with {kind}() as box:\n"
        "    print([r.name for r in selftest(box) if r.contained is False])\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        package = Path(folder) / "agent_world"
        package.mkdir()
        (package / "__init__.py").touch()
        shutil.copy(source / "errors.py", package)
        shutil.copytree(source / "sandbox", package / "sandbox")
        as_nobody = {"user": 12345, "group": 12345, "extra_groups": []} if os.geteuid() == 0 else {}
        done = subprocess.run(
            [PYTHON, "-B", "-c", script],
            cwd=folder,
            env={"PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            check=False,
            **as_nobody,
        )
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_machine_without_the_tool_gets_a_cure(monkeypatch):
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent / "nowhere"))
    with pytest.raises(SandboxUnavailableError, match="apt-get install bubblewrap"):
        BwrapSandbox()
