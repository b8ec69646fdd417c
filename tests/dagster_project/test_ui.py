"""`agent-world ui`: both servers come up on loopback over one lake, and nothing is left of them."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request

from agent_world import world


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return reply.status == 200
    except OSError:
        return False


def children(of):
    """All processes below `of`, by /proc."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as stat:
                parents[int(name)] = int(stat.read().rpartition(")")[2].split()[1])
        except OSError:
            continue
    below = {of}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return below - {of}


def test_both_servers_answer_on_loopback_and_end_with_all_that_they_started(tmp_path):
    lake, ports = str(tmp_path / "lake"), (free_port(), free_port())
    world.open(lake, create=True)
    arguments = ["ui", "--lake", lake, "--dagster-port", str(ports[0]), "--mlflow-port", str(ports[1])]
    with (tmp_path / "log").open("w") as log:
        ui = subprocess.Popen([sys.executable, "-m", "dagster_project.cli", *arguments], stdout=log, stderr=log)
    try:
        waiting = [f"http://127.0.0.1:{ports[0]}/server_info", f"http://127.0.0.1:{ports[1]}/health"]
        deadline = time.monotonic() + 240
        while waiting and time.monotonic() < deadline and ui.poll() is None:
            waiting = [url for url in waiting if not answers(url)]
            time.sleep(0.5)
        assert not waiting, (tmp_path / "log").read_text()[-2000:]
        started = children(ui.pid)
        assert len(started) >= 2
    finally:
        ui.send_signal(signal.SIGTERM)
        ui.wait(timeout=60)
    left = [pid for pid in started if os.path.exists(f"/proc/{pid}")]
    deadline = time.monotonic() + 10
    while left and time.monotonic() < deadline:
        time.sleep(0.2)
        left = [pid for pid in left if os.path.exists(f"/proc/{pid}")]
    assert not left
