"""Runs a training job in a process of its own: follows its metrics, keeps its deadline, returns what it left.

The job's hash names the output folder. A finished result is returned at once; anything else starts from the job's
start. One supervisor works on a job at a time, and a child never outlives it.
"""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from agent_world.codec import decode, encode
from agent_world.errors import AgentWorldError
from agent_world.lake import faults
from trainers.job import TrainJob, TrainResult
from trainers.metrics import read_metrics
from trainers.run import METRICS, RESULT
from trainers.warm import JOB, LOG

_POLL_S = 0.1

OnMetrics = Callable[[dict[str, Any]], None]


class TrainingFailedError(AgentWorldError):
    """The process ended without a result; `tail` is the end of its log."""

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
    (out / JOB).write_text(json.dumps(encode(job), indent=1), "utf-8")
    (out / LOG).write_bytes(b"")
    worker = _warm_worker(out / LOG)
    with _forwarding_signals(worker):
        why = _follow(worker, out, deadline_s, on_metrics)
    if why or not (out / RESULT).exists():
        tail = (out / LOG).read_text("utf-8", errors="replace")[-4000:]
        raise TrainingFailedError(job.job_hash, why or "left no result", str(out / LOG), tail)


_idle: list[subprocess.Popen[str]] = []
"""Warm processes of this one that wait for a job: one, unless jobs ran at the same time."""


def prepare() -> None:
    """Have a warm process begin with its imports, so that the first job need not wait for them."""
    if not _idle:
        _idle.append(_new_worker(Path(os.devnull)))  # should it die, the job's own says why


def _warm_worker(log: Path) -> subprocess.Popen[str]:
    """One that waits, or a new one."""
    while _idle:
        worker = _idle.pop()
        if worker.poll() is None:
            return worker
    return _new_worker(log)


def _new_worker(log: Path) -> subprocess.Popen[str]:
    """A new one, which writes into `log` what goes wrong before it has a job."""
    command = [sys.executable, "-m", "trainers.warm", str(os.getpid())]
    pipe, environment = subprocess.PIPE, {**os.environ, **_ENVIRONMENT}
    with log.open("wb") as file:
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=file, env=environment, text=True)


@atexit.register
def _end_idle() -> None:
    for worker in _idle:
        _stop(worker)


def _follow(worker: subprocess.Popen[str], out: Path, deadline_s: float | None, on_metrics: OnMetrics) -> str:
    """Have the job in `out` done, handing on its metrics; says what went wrong, or nothing."""
    assert worker.stdin and worker.stdout
    started, told = time.monotonic(), 0
    status: str | None = None
    try:
        with suppress(BrokenPipeError):  # a worker that is dead says so below
            print(json.dumps(str(out.resolve())), file=worker.stdin, flush=True)
        while True:
            ended, _, _ = select.select([worker.stdout], [], [], _POLL_S)
            if ended:  # asked first, so that the last rows are not missed
                status = worker.stdout.readline().strip() or str(worker.wait())
            rows = list(read_metrics(out / METRICS))
            for row in rows[told:]:
                faults.reach("training")
                on_metrics(row)
            told = len(rows)
            if status is not None:
                return "" if status == "0" else f"ended with status {status}"
            if deadline_s is not None and time.monotonic() - started > deadline_s:
                return f"was stopped after its deadline of {deadline_s:g} s"
    finally:
        if status is None:
            _stop(worker)
        else:
            _idle.append(worker)


def _stop(worker: subprocess.Popen[str]) -> None:
    """End a warm process; the kernel ends its job with it, and what they write to ends when both have."""
    worker.kill()
    with suppress(BrokenPipeError):
        worker.communicate()


@contextmanager
def _forwarding_signals(worker: subprocess.Popen[str]) -> Iterator[None]:
    """Pass SIGTERM on to the worker; its job then ends, and so does this one. Only the main thread may set handlers."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda number, frame: worker.send_signal(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


_ENVIRONMENT = {
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    "HF_HUB_OFFLINE": "1",
    "TRL_EXPERIMENTAL_SILENCE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTHONHASHSEED": "0",
}
"""What must stand before the libraries of training are imported."""
