"""What every back-end must do, and that none can be told from another by what comes out of it."""

import os
import signal
import subprocess
import sys
import textwrap
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import docker
import psutil
import pytest

from agent_world.sandbox import BACKENDS, SandboxFailedError, SandboxUnavailableError, SessionFault
from agent_world.sandbox.container import LABEL, DockerSandbox, RunscSandbox
from agent_world.sandbox.process import BwrapProcessSandbox
from tests.sandbox.conftest import EVERY_BACKEND
from tests.sandbox.engine import mounts_below
from tests.toy import toy_environment

ONE = {"m.py": "def run(x):\n    return x + 1\n"}
ENDED_WITHIN_S = 60.0

CALLS = (
    ("search_books", {"title": "winter"}),
    ("get_book", {"book_id": "ZZ"}),
    ("find_member", {"name": "Iris Novak"}),
    ("lend_book", {"book_id": "B3", "member_id": "M1"}),
    ("lend_book", {"book_id": "B2", "member_id": "M1"}),
    ("count_books_by_genre", {"genre": "novel"}),
)


def played(backend: str) -> list[object]:
    """Everything that an episode shows, and the states that it went through."""
    with BACKENDS[backend]() as box, toy_environment().session(seed=11, sandbox=box) as session:
        seen: list[object] = []
        for name, arguments in CALLS:
            seen += [session.call(name, arguments), session.digest()]
        session.stop()
        return [*seen, session.diff()]


def test_the_same_calls_give_the_same_observations_and_states_in_every_back_end(docker_engine):
    first, *others = (played(backend) for backend in EVERY_BACKEND)
    assert len({str(item) for item in first}) > len(CALLS)
    for other in others:
        assert other == first


def test_sessions_side_by_side_do_not_mix(box):
    with ExitStack() as stack:
        sessions = [stack.enter_context(box.open_code(ONE)) for _ in range(5)]
        answers = [
            session.request({"entry": "m:run", "arguments": {"x": number}}, 60.0)["ok"]
            for number, session in enumerate(sessions)
        ]
    assert answers == [1, 2, 3, 4, 5]


def test_a_killed_session_is_dead_and_the_next_one_lives(box):
    with box.open_code(ONE) as session:
        assert session.request({"entry": "m:run", "arguments": {"x": 1}}, 60.0)["ok"] == 2
        session.kill()
        with pytest.raises(SessionFault, match="crash"):
            session.request({"entry": "m:run", "arguments": {"x": 1}}, 60.0)
    assert box.run_code(ONE, "m:run", {"x": 1}, timeout_s=60).value == 2


def test_a_closed_back_end_opens_nothing_and_says_so(backend):
    box = BACKENDS[backend]()
    assert box.alive()
    box.close()
    box.close()
    assert not box.alive()
    with pytest.raises(SandboxFailedError):
        box.run_code(ONE, "m:run", {"x": 1})


def test_a_back_end_that_lost_its_host_knows_it(backend, docker_engine):
    with BACKENDS[backend]() as box, box.open_code(ONE) as session:
        assert session.request({"entry": "m:run", "arguments": {"x": 1}}, 60.0)["ok"] == 2
        if isinstance(box, DockerSandbox):
            with closing(docker.from_env()) as client:
                client.containers.get(box._container).kill()
        else:
            family = psutil.Process(box._process.pid).children(recursive=True)
            for process in family:
                with suppress(psutil.NoSuchProcess):  # the zygote's death is its sessions' as well
                    process.kill()
            box._process.kill()
            box._process.wait()
            assert psutil.wait_procs(family, timeout=ENDED_WITHIN_S)[1] == []
        for _ in range(2):
            with pytest.raises(SandboxFailedError, match="host is gone"):
                session.request({"entry": "m:run", "arguments": {"x": 1}}, 60.0)
        with pytest.raises(SandboxFailedError):
            box.run_code(ONE, "m:run", {"x": 1})
        assert not box.alive()


def test_a_process_session_starts_programs_and_they_end_with_it():
    source = """
    import os, subprocess

    def run():
        subprocess.Popen(["sleep", "600"])
        shell = subprocess.run("printf 'b\\\\na\\\\n' | sort; pwd; ls -A /", shell=True, capture_output=True, text=True)
        return [shell.stdout.split(), shell.stderr, dict(os.environ)]
    """
    with BwrapProcessSandbox() as box:
        keeper = psutil.Process(box._process.pid)
        with box.open_code({"m.py": textwrap.dedent(source)}) as session:
            reply = session.request({"entry": "m:run", "arguments": None}, 60.0)
            family = keeper.children(recursive=True)
            assert "sleep" in {process.name() for process in family}
            session.kill()
        _, alive = psutil.wait_procs(family, timeout=ENDED_WITHIN_S)
    output, complaints, environment = reply["ok"]
    assert output == ["a", "b", "/work", "bin", "dev", "guest", "lib", "lib64", "proc", "usr", "work"]
    assert (complaints, environment, alive) == ("", {}, [])


def test_a_process_session_that_forks_without_end_is_alone_with_it():
    bomb = "import os, time\n\n\ndef run():\n    while True:\n        try:\n            os.fork()\n"
    bomb += "        except OSError:\n            time.sleep(0.01)\n"
    with BwrapProcessSandbox() as box:
        assert box.run_code({"m.py": bomb}, "m:run", timeout_s=0.5).status in ("timeout", "protocol_error")
        assert box.run_code(ONE, "m:run", {"x": 1}, timeout_s=60).value == 2


@pytest.mark.parametrize("name", EVERY_BACKEND)
def test_nothing_outlives_a_supervisor_that_is_killed(name, request):
    host = request.getfixturevalue("docker_engine") if name == "docker" else ""
    script = f"""
    import time
    from agent_world.sandbox import BACKENDS

    box = BACKENDS[{name!r}]()
    live = [box.open_code({{"m.py": "def run():\\\\n    return 1"}}) for _ in range(3)]
    for session in live:
        session.request({{"entry": "m:run", "arguments": None}}, 60)
    print("open", flush=True)
    time.sleep(600)
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as supervisor:
        assert supervisor.stdout is not None
        assert supervisor.stdout.readline() == b"open\n"
        family = psutil.Process(supervisor.pid).children(recursive=True)
        if host:
            with closing(docker.DockerClient(base_url=host)) as client:
                (container,) = client.containers.list(filters={"label": f"{LABEL}={supervisor.pid}"})
                supervisor.send_signal(signal.SIGKILL)
                assert _is_gone(container)
        else:
            assert len(family) >= 4
            supervisor.send_signal(signal.SIGKILL)
    assert psutil.wait_procs(family, timeout=ENDED_WITHIN_S)[1] == []


def _is_gone(container) -> bool:
    try:
        container.wait(condition="removed", timeout=ENDED_WITHIN_S)
    except docker.errors.NotFound:
        pass
    return True


def test_a_container_is_as_narrow_as_it_should_be_and_leaves_nothing(docker_engine, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with closing(docker.from_env()) as client:
        with DockerSandbox() as box:
            found = client.containers.get(box._container).attrs
            assert list(tmp_path.iterdir()) == []
        host = found["HostConfig"]
        assert (host["NetworkMode"], host["IpcMode"], host["ReadonlyRootfs"]) == ("none", "none", True)
        assert (host["CapDrop"], host["Privileged"], found["Config"]["User"]) == (["ALL"], False, "64001:64001")
        assert "no-new-privileges" in host["SecurityOpt"]
        assert client.containers.list(all=True, filters={"id": box._container}) == []


def test_the_engine_starts_the_container_with_the_runtime_that_is_asked_for(docker_engine):
    class Second(DockerSandbox):
        backend, runtime = "docker-second", "second"

    with Second() as box, closing(docker.from_env()) as client:
        assert client.containers.get(box._container).attrs["HostConfig"]["Runtime"] == "second"
        assert box.run_code(ONE, "m:run", {"x": 1}, timeout_s=60).value == 2


def test_a_runtime_that_the_engine_lacks_is_named(docker_engine):
    with closing(docker.from_env()) as client:
        if "runsc" in client.info()["Runtimes"]:
            pytest.skip("this engine has runsc")
    with pytest.raises(SandboxUnavailableError, match=r"docker-runsc.*no runtime runsc.*gVisor"):
        RunscSandbox()


def test_without_an_engine_the_back_end_is_unavailable_and_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody-listens")
    with pytest.raises(SandboxUnavailableError, match=r"docker cannot be used.*DOCKER_HOST"):
        DockerSandbox()


def test_an_engine_leaves_no_mounts(docker_engine):
    folder = Path(docker_engine.removeprefix("unix://")).parent
    with DockerSandbox():
        assert mounts_below(folder)
    assert os.path.isdir(folder)
