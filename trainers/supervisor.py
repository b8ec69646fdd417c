"""Runs a training job in a subprocess: follows its metrics, keeps its deadline, returns what it left.

The job's hash names the output folder. A finished result is returned at once; anything else starts from the job's
start. One supervisor works on a job at a time, and a child never outlives it.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agent_world.codec import decode, encode
from agent_world.errors import AgentWorldError
from agent_world.lake import faults
from trainers.job import TrainJob, TrainResult
from trainers.metrics import read_metrics
from trainers.run import METRICS, RESULT

_POLL_S = 0.1
_GRACE_S = 10.0

OnMetrics = Callable[[dict[str, Any]], None]


class TrainingFailedError(AgentWorldError):
    """The subprocess ended without a result; `tail` is the end of its log."""

    def __init__(self, job: str, why: str, log: str, tail: str) -> None:
        super().__init__(job, why, log, tail)
        self.job, self.why, self.log, self.tail = job, why, log, tail

    def __str__(self) -> str:
        last = self.tail.strip().splitlines()[-1] if self.tail.strip() else "no output"
        return f"training job {self.job[:12]} {self.why}: {last}; the whole log is {self.log}"


def output_folder(job: TrainJob, root: Path) -> Path:
    """Where the job's results lie below `root`."""
    return root / job.job_hash[:16]


def supervise(
    job: TrainJob, root: Path, *, deadline_s: float | None = None, on_metrics: OnMetrics = lambda row: None
) -> TrainResult:
    """Run the job, or return what an earlier run of the same job finished.

    `on_metrics` gets each row of ``metrics.jsonl`` as it is written (all at once for a finished job).

    Raises:
        TrainingFailedError: the job cannot be done, died, or took longer than `deadline_s`.
    """
    out = output_folder(job, root)
    out.mkdir(parents=True, exist_ok=True)
    with _alone(out):
        if not (out / RESULT).exists():
            _run(job, out, deadline_s, on_metrics)
        else:
            for row in read_metrics(out / METRICS):
                on_metrics(row)
        return decode(TrainResult, json.loads((out / RESULT).read_text("utf-8")))


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Wait until no other supervisor, nor a child it left, works in `out`."""
    with (out / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(job: TrainJob, out: Path, deadline_s: float | None, on_metrics: OnMetrics) -> None:
    (out / METRICS).unlink(missing_ok=True)
    (out / "job.json").write_text(json.dumps(encode(job), indent=1), "utf-8")
    log = out / "log.txt"
    parent = str(os.getpid())
    command = [sys.executable, "-m", "trainers.run", str(out / "job.json"), "--out", str(out), "--parent", parent]
    with log.open("wb") as file:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, env=_environment(job)
        )
        with _forwarding_signals(child):
            why = _follow(child, out / METRICS, deadline_s, on_metrics)
    if why or not (out / RESULT).exists():
        tail = log.read_text("utf-8", errors="replace")[-4000:]
        raise TrainingFailedError(job.job_hash, why or "left no result", str(log), tail)


def _follow(child: subprocess.Popen[bytes], metrics: Path, deadline_s: float | None, on_metrics: OnMetrics) -> str:
    """Hand on metrics until the child has ended; says what went wrong, or nothing."""
    started, told = time.monotonic(), 0
    try:
        while True:
            ended = child.poll() is not None  # asked first, so that the last rows are not missed
            rows = list(read_metrics(metrics))
            for row in rows[told:]:
                faults.reach("training")
                on_metrics(row)
            told = len(rows)
            if ended:
                return "" if child.returncode == 0 else f"ended with status {child.returncode}"
            if deadline_s is not None and time.monotonic() - started > deadline_s:
                return f"was stopped after its deadline of {deadline_s:g} s"
            time.sleep(_POLL_S)
    finally:
        _stop(child)


def _stop(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


@contextmanager
def _forwarding_signals(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Pass SIGTERM on to the child; it then ends, and so does this job. Only the main thread may set handlers."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda number, frame: child.send_signal(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _environment(job: TrainJob) -> dict[str, str]:
    """The child's environment: thread counts pinned before torch reads them, no network, idle threads asleep."""
    pinned = {
        "OMP_NUM_THREADS": str(job.hyper.threads),
        "OMP_WAIT_POLICY": "PASSIVE",  # spinning threads starve each other as soon as a core is shared
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        "HF_HUB_OFFLINE": "1",
        "TRL_EXPERIMENTAL_SILENCE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONHASHSEED": "0",
    }
    return {**os.environ, **pinned}
