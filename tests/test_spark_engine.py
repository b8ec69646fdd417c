"""The engine on Spark: what the local pool gives, in the same order, written once; lost executors cost nothing."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from agent_world.engine import Engine, open_engine
from agent_world.errors import BadInputError
from agent_world.lake import open_lake
from agent_world.spark_engine import SparkEngine
from tests.test_engine import process, square

ITEMS = list(range(40))


def outcomes(engine, function, items):
    return [(done.item, done.result, done.failure and done.failure.error) for done in engine.map(function, items)]


def test_results_failures_and_their_order_are_those_of_the_local_pool(spark_jvm):
    with Engine(2) as local, open_engine("local[2]") as spark:
        assert isinstance(spark, SparkEngine)
        assert outcomes(spark, square, ITEMS) == outcomes(local, square, ITEMS)
        assert outcomes(spark, square, []) == []
        seen = {done.result for done in spark.map(process, ITEMS[:8])}
        assert os.getpid() not in seen
    assert spark_jvm.range(3).count() == 3  # what others use stays


def test_an_engine_that_is_none_is_refused():
    with pytest.raises(BadInputError, match="AGENT_WORLD_ENGINE: 'yarn' is no engine; give `local`"):
        open_engine("yarn")


def test_the_command_line_hands_the_place_on(monkeypatch, tmp_path):
    from assets.settings import Settings
    from dagster_project.resources import resources_for

    monkeypatch.setenv("AGENT_WORLD_ENGINE", "spark://127.0.0.1:7077")
    engine = resources_for(str(tmp_path), Settings())["engine"].engine
    assert isinstance(engine, SparkEngine)
    assert engine.where == "spark://127.0.0.1:7077"
    monkeypatch.delenv("AGENT_WORLD_ENGINE")
    assert type(resources_for(str(tmp_path), Settings())["engine"].engine) is Engine


@pytest.mark.long
def test_a_connect_server_does_the_work_of_a_client_without_java(spark_jvm, tmp_path):
    address = f"sc://127.0.0.1:{spark_jvm.conf.get('spark.connect.grpc.binding.port')}"
    code = f"from tests.test_spark_engine import tell_connect; tell_connect({address!r})"
    ran = run(code, os.environ | {"PATH": str(tmp_path)})
    assert ran.returncode == 0, ran.stderr
    with Engine(1) as local:
        assert ran.stdout.strip() == str(outcomes(local, square, ITEMS))


def tell_connect(address: str) -> None:
    with open_engine(address) as spark:
        print(outcomes(spark, square, ITEMS))


@pytest.mark.long
def test_an_executor_that_is_killed_loses_no_work_and_nothing_is_written_twice(tmp_path):
    """A real standalone cluster: a master and two workers, one executor each, one of which is killed at work."""
    with cluster(tmp_path) as (master, folder):
        code = f"from tests.test_spark_engine import write_slowly; write_slowly({master!r}, {str(tmp_path)!r})"
        driver = subprocess.Popen([sys.executable, "-c", code], env=environment(), stderr=subprocess.PIPE, text=True)
        lost = kill_an_executor(folder, tmp_path, driver)
        _, told = driver.communicate(timeout=600)
        assert driver.returncode == 0, told
    lake = open_lake(tmp_path / "lake")
    assert [row["artifact_id"] for row in lake.read("themes")] == [
        f"theme-{n:02}" for n in ITEMS
    ]  # in order, each once
    assert [row["title"] for row in lake.read("themes")] == [str(n * n) for n in ITEMS]
    assert not psutil.pid_exists(lost)
    assert len(list(tmp_path.glob("done-*"))) > len(ITEMS)  # some of it was done again


def write_slowly(master: str, folder: str) -> None:
    """Work in the executors, commits in this process: one batch an item, as stages do it."""
    lake = open_lake(Path(folder) / "lake")
    with open_engine(master) as engine:
        for done in engine.map(SlowSquare(folder), ITEMS):
            assert done.failure is None, done.failure
            with lake.begin("squares", str(done.item), derivation="d") as batch:
                batch.create("theme", f"theme-{done.item:02}", {"title": str(done.result)})


class SlowSquare:
    """Leaves a mark when it begins, and takes its time."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    def __call__(self, number: int) -> int:
        (self.folder / f"done-{number}-{time.monotonic_ns()}").touch()
        time.sleep(0.5)
        return number * number


def run(code: str, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, timeout=280)


def environment() -> dict[str, str]:
    """For the daemons and the driver: little memory each."""
    return os.environ | {
        "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m", "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": "--executor-memory 512m --conf spark.executor.cores=1 pyspark-shell",
    }  # fmt: skip


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, Path]]:
    """A standalone master with two workers on loopback; gives its address and the folder that workers work in."""
    import pyspark

    program = Path(pyspark.__file__).parent / "bin" / "spark-class"
    port, *pages = free_ports(4)
    master, work = f"spark://127.0.0.1:{port}", folder / "work"
    deploy = "org.apache.spark.deploy"
    commands = [
        [f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(pages[0])],
        *(
            [f"{deploy}.worker.Worker", master, "--host", "127.0.0.1", "--cores", "1", "--memory", "600m",
             "--webui-port", str(page), "--work-dir", str(work)]
            for page in pages[1:]
        ),
    ]  # fmt: skip
    with ExitStack() as ends:
        for number, command in enumerate(commands):
            log = ends.enter_context((folder / f"daemon-{number}.log").open("w"))
            daemon = subprocess.Popen([program, *command], env=environment(), stdout=log, stderr=log)
            ends.callback(daemon.wait)
            ends.callback(daemon.kill)
        yield master, work


def kill_an_executor(work: Path, folder: Path, driver: subprocess.Popen[str]) -> int:
    """Kill one of the two executors when both are at work; gives its pid."""
    deadline = time.monotonic() + 900
    while time.monotonic() < deadline and driver.poll() is None:
        executors = [found.pid for found in psutil.process_iter() if is_executor(found, work)]
        if len(executors) == 2 and len(list(folder.glob("done-*"))) >= 6:
            psutil.Process(executors[0]).kill()
            return executors[0]
        time.sleep(0.1)
    driver.kill()
    raise AssertionError(f"no two executors at work: {driver.communicate()[1]}")


def is_executor(found: psutil.Process, work: Path) -> bool:
    try:
        return Path(found.cwd()).is_relative_to(work) and "java" in found.name()
    except psutil.Error:
        return False


def free_ports(count: int) -> list[int]:
    with ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
