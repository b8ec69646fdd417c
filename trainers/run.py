"""One training job in a process of its own: ``python -m trainers.run JOB.json --out DIR``.

Writes ``metrics.jsonl`` while it works, the checkpoint into a folder that appears complete or not at all, and
``result.json`` last. A job that is started again starts from its start.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from agent_world.codec import decode, encode
from agent_world.errors import AgentWorldError, BadInputError
from trainers.checkpoint import checkpoint_digest, is_finite
from trainers.data import Source
from trainers.job import TrainJob, TrainResult
from trainers.metrics import ROLLOUTS

RESULT = "result.json"
METRICS = "metrics.jsonl"
CHECKPOINT = "checkpoint"

FAILED = 2
"""Exit status of a job that was understood and cannot be done; its reason is the last line of standard error."""


def run_job(job: TrainJob, source: Source, out: Path) -> TrainResult:
    """Do the job in this process, below the folder `out`, of which only a finished result is kept.

    Raises:
        BadInputError: a job that this process cannot do, or data that does not fit it.
    """
    if job.backend != "trl":
        why = "it trains in a container of its own, not in this process"
        raise BadInputError(f"back-end {job.backend}", why, "launch what its `render` gives")
    from trainers import trl_backend

    out.mkdir(parents=True, exist_ok=True)
    for name in (RESULT, METRICS, ROLLOUTS, CHECKPOINT, "partial", "base", "trl"):
        path = out / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    trained = trl_backend.train(job, source, out / "partial", out / METRICS)
    digest = checkpoint_digest(out / "partial")
    (out / "partial").rename(out / CHECKPOINT)
    for name in ("base", "trl"):
        shutil.rmtree(out / name, ignore_errors=True)
    result = TrainResult(
        status="rolled_back" if trained.reason else "succeeded",
        checkpoint=str(out / CHECKPOINT),
        digest=digest,
        steps_done=trained.steps,
        metrics_file=str(out / METRICS),
        rollouts_file=str(out / ROLLOUTS) if (out / ROLLOUTS).exists() else "",
        backend=job.backend,
        backend_version=trl_backend.version(),
        finite=is_finite(out / CHECKPOINT),
        reason=trained.reason,
    )
    written = out / f"{RESULT}.new"
    written.write_text(json.dumps(encode(result)), "utf-8")
    written.replace(out / RESULT)
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the subprocess."""
    parser = argparse.ArgumentParser(prog="python -m trainers.run", description=__doc__)
    parser.add_argument("job", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--parent", type=int, help="process id of the supervisor, without which the job must not go on")
    given = parser.parse_args(arguments)
    if given.parent is not None:
        die_with(given.parent)
    try:
        from agent_world import world

        job = decode(TrainJob, json.loads(given.job.read_text("utf-8")))
        run_job(job, world.open(job.lake), given.out)
    except AgentWorldError as error:
        print(error, file=sys.stderr)
        return FAILED
    return 0


def die_with(parent: int) -> None:
    """Ask the kernel to kill this process when the supervisor is gone, however it went; it may be gone already."""
    set_death_signal = 1
    ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
