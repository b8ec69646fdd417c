"""Dagster and MLflow over a lake, on free ports of loopback."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil


class Servers(NamedTuple):
    """Where they answer; when they have ended, the processes that were started for them."""

    dagster: str
    mlflow: str
    processes: list[psutil.Process]


@contextmanager
def serving(lake: Path, log: Path, *options: str) -> Iterator[Servers]:
    """`agent-world ui` over `lake` until both servers answer; asked to end on leaving."""
    dagster, mlflow = free_port(), free_port()
    ports = ["--dagster-port", str(dagster), "--mlflow-port", str(mlflow)]
    command = [sys.executable, "-m", "dagster_project.cli", "ui", "--lake", str(lake), *ports, *options]
    started: list[psutil.Process] = []
    with log.open("w") as file:
        ui = subprocess.Popen(command, stdout=file, stderr=file)
    try:
        waiting = [f"http://127.0.0.1:{dagster}/server_info", f"http://127.0.0.1:{mlflow}/health"]
        deadline = time.monotonic() + 240
        while waiting and time.monotonic() < deadline and ui.poll() is None:
            waiting = [url for url in waiting if not _answers(url)]
            time.sleep(0.5)
        assert not waiting, log.read_text()[-2000:]
        yield Servers(f"http://127.0.0.1:{dagster}", f"http://127.0.0.1:{mlflow}", started)
    finally:
        started += psutil.Process(ui.pid).children(recursive=True)
        ui.send_signal(signal.SIGTERM)
        ui.wait(timeout=60)


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return reply.status == 200
    except OSError:
        return False
