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
from agent_world.sandbox import SandboxUnavailableError, attacks, seccomp, selftest
from agent_world.sandbox.bwrap import PYTHON, BwrapSandbox


@pytest.fixture(scope="module")
def results():
    return selftest("bwrap")


def test_every_attack_is_held(results):
    assert [result for result in results if not result.contained] == []


def test_every_attack_works_where_nothing_stops_it(results):
    assert [result for result in results if not result.control] == []


def test_there_are_many_attacks_and_no_name_twice(results):
    names = [result.name for result in results]
    assert len(names) == len(set(names)) >= 40


class WithoutFilter(BwrapSandbox):
    backend = "without-filter"

    def __init__(self, limits=None):
        allow_everything = struct.pack("<HBBI", 0x06, 0, 0, 0x7FFF0000)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(seccomp, "session_filter", lambda: allow_everything)
            super().__init__(limits)


def test_a_back_end_that_leaks_is_refused_by_name_of_the_attack_and_stays_refused(tmp_path, monkeypatch):
    with pytest.raises(SandboxUnavailableError, match=r"without-filter.*makes_an_anonymous_file"):
        attacks.require(WithoutFilter, tmp_path)
    monkeypatch.setattr(attacks, "selftest", lambda sandbox: pytest.fail("the verdict was kept"))
    with pytest.raises(SandboxUnavailableError, match=r"without-filter.*makes_an_anonymous_file"):
        attacks.require(WithoutFilter, tmp_path)


def test_a_kept_verdict_does_not_outlive_the_code_it_is_about(tmp_path, monkeypatch):
    tried = []
    monkeypatch.setattr(attacks, "selftest", lambda sandbox: tried.append(1) or [])
    attacks.require(BwrapSandbox, tmp_path)
    attacks.require(BwrapSandbox, tmp_path)
    assert len(tried) == 1
    changed = tmp_path / "changed.py"
    changed.write_text("x = 1")
    monkeypatch.setattr(attacks, "_own_code", lambda: [changed])
    attacks.require(BwrapSandbox, tmp_path)
    assert len(tried) == 2


def test_an_unknown_back_end_is_refused():
    with pytest.raises(SandboxUnavailableError, match=r"no such back-end.*bwrap"):
        sandbox.open_sandbox("nothing")


def test_the_command_line_prints_the_results_as_rows(results, monkeypatch):
    from click.testing import CliRunner

    from dagster_project.cli.sandbox import command

    monkeypatch.setattr(sandbox, "selftest", lambda backend: results)
    printed = CliRunner().invoke(command, ["selftest", "--format", "json"])
    assert printed.exit_code == 0
    assert json.loads(printed.output) == [asdict(result) for result in results]
    assert set(json.loads(printed.output)[0]) == {"name", "contained", "control", "detail"}


def test_an_ordinary_user_needs_no_rights():
    """The package alone, laid where everybody may read, started by somebody who owns nothing."""
    source = Path(agent_world.errors.__file__).parent
    script = (
        "from agent_world.sandbox.bwrap import BwrapSandbox\n"
        "from agent_world.sandbox.attacks import selftest\n"
        "with BwrapSandbox() as box:\n"
        "    print([r.name for r in selftest(box) if not r.contained])\n"
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
