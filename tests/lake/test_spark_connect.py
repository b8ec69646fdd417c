"""A server that clients without Java reach, what the documentation shows of it, and its end by Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from agent_world.lake import open_lake, spark
from agent_world.lake.spark.connect import published, served
from lake_schemas import TABLES
from lake_schemas.views import VIEWS
from tests.lake.populated import populate

DOCS = Path(__file__).parents[2] / "docs"
BLOCKS = re.findall(r"```python\n(.*?)```", (DOCS / "sql.md").read_text("utf-8"), re.DOTALL)
CELLS = [
    "".join(cell["source"])
    for cell in json.loads((DOCS / "spark.ipynb").read_text("utf-8"))["cells"]
    if cell["cell_type"] == "code"
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a lake called `lake`."""
    folder = tmp_path_factory.mktemp("connect")
    populate(open_lake(folder / "lake"))
    return folder


def run_client(code: str, address: str, folder: Path) -> str:
    """Run `code` in a process that finds no Java; gives what it printed."""
    environment = os.environ | {"SPARK_REMOTE": address, "PATH": str(folder), "JAVA_HOME": str(folder)}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=folder, capture_output=True, text=True, timeout=240
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_a_client_without_java_finds_every_table_and_view_and_what_is_documented_runs(place: Path, spark_jvm: Any):
    (client,) = (block for block in BLOCKS if ".remote(" in block)
    listed = "print(sorted(table.name for table in remote.catalog.listTables()))\nremote.stop()"
    with published(spark_jvm, open_lake(place / "lake")):
        address = f"sc://127.0.0.1:{spark_jvm.conf.get('spark.connect.grpc.binding.port')}"
        told = run_client("\n".join([client, listed, *CELLS]), address, place)
    assert "library-1" in told
    assert str(sorted([*TABLES, "events", *VIEWS])) in told
    assert "demonstration" in told  # the notebook, to its end
    assert "place of the gate in the pipeline" in told
    assert spark_jvm.newSession().catalog.listTables() == []


def test_the_documented_python_runs(place: Path, spark_jvm: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any):
    monkeypatch.chdir(place)
    for block in BLOCKS:
        if ".remote(" not in block:
            exec(block, {})
    assert "rubric" in capsys.readouterr().out


def test_a_server_wants_a_process_of_its_own(place: Path, spark_jvm: Any):
    with (
        pytest.raises(spark.SparkUnavailableError, match="in a process of its own"),
        served(open_lake(place / "lake"), port=1),
    ):
        pass


@pytest.mark.long
def test_the_server_shows_an_older_state_and_ends_with_ctrl_c_and_leaves_nothing(place: Path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "dagster_project.cli", "spark", "connect", "--port", str(port), "--at", "1"]
    server = subprocess.Popen([*command, "--lake", "lake"], cwd=place, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        assert server.stdout.readline().split() == ["Spark", "Connect", f"sc://127.0.0.1:{port}"]
        children = psutil.Process(server.pid).children(recursive=True)
        assert any("java" in child.name() for child in children)
        count = (
            "from pyspark.sql import SparkSession as S; print(S.builder.getOrCreate().table('environments').count())"
        )
        assert run_client(count, f"sc://127.0.0.1:{port}", place).split() == ["1"]
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=120) == 0
        assert psutil.wait_procs(children, timeout=60)[1] == []
    finally:
        server.kill()
        server.wait()
