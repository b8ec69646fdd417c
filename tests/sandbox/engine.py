"""A Docker engine of the tests' own: Debian's docker.io on a private socket and folder, gone afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import docker
from docker.errors import DockerException

STARTED_WITHIN_S = 60.0
STOPPED_WITHIN_S = 60.0


class NoEngineError(Exception):
    """No engine can be started here; the message says why."""


@contextmanager
def engine() -> Iterator[str]:
    """Start one; gives the value for DOCKER_HOST.

    Raises:
        NoEngineError: it is not installed, may not be started by this user, or did not start.
    """
    program = shutil.which("dockerd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if program is None:
        raise NoEngineError("dockerd is not installed (Debian: docker.io)")
    if os.geteuid() != 0:
        raise NoEngineError("dockerd must be started by root")
    folder = Path(tempfile.mkdtemp(prefix="engine-"))
    host = f"unix://{folder}/docker.sock"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                program,
                *("--data-root", str(folder / "data"), "--exec-root", str(folder / "exec"), "-H", host),
                *("--pidfile", str(folder / "pid"), "--storage-driver=overlay2", "--log-level=warn"),
                *("--iptables=false", "--ip6tables=false", "--bridge=none", "--add-runtime=second=runc"),
            ],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        _await(process, host, folder)
        yield host
    finally:
        _stop(process, host, folder)


def _await(process: subprocess.Popen[bytes], host: str, folder: Path) -> None:
    deadline = time.monotonic() + STARTED_WITHIN_S
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(DockerException), closing(docker.DockerClient(base_url=host)) as client:
            client.ping()
            return
        time.sleep(0.1)
    said = (folder / "log").read_text(errors="replace").strip().splitlines()
    raise NoEngineError(said[-1] if said else "dockerd did not start")


def _stop(process: subprocess.Popen[bytes], host: str, folder: Path) -> None:
    with suppress(DockerException), closing(docker.DockerClient(base_url=host)) as client:
        for container in client.containers.list(all=True):
            container.remove(force=True)
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOPPED_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for place in mounts_below(folder):
        subprocess.run(["umount", "--lazy", place], check=False)
    shutil.rmtree(folder, ignore_errors=True)


def mounts_below(folder: Path) -> list[str]:
    """What is mounted in this folder, the innermost first."""
    places = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return sorted((place for place in places if place.startswith(f"{folder}/")), reverse=True)
