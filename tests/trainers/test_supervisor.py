"""Jobs in their own process, over a real lake."""

import json
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace

import psutil
import pytest

from agent_world import world
from agent_world.codec import encode
from tests.toy_lake import save_toy
from tests.trainers import jobs
from trainers.supervisor import TrainingFailedError, output_folder, supervise


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """The toy world in a lake: environment, two tasks, two trajectories; and an `init` job over them."""
    uri = str(tmp_path_factory.mktemp("lake") / "lake")
    home = world.open(uri, create=True)
    with home.begin("toy", derivation="toy") as batch:
        environment, _ = save_toy(batch, jobs.ENVIRONMENT)
        trajectories = []
        for task, steps in ((jobs.READING, jobs.little.EPISODE), (jobs.WRITING, jobs.LOANS)):
            version = world.save_task(batch, replace(task, environments=(environment,)))
            played = replace(jobs.trajectory(task, steps), task=version, environment=environment)
            trajectories.append(world.save_trajectory(batch, played, purpose="solver", round=0))
    return uri, jobs.changed(jobs.job(), lake=uri, environments=(environment,), trajectories=tuple(trajectories))


def test_a_job_runs_in_its_own_process_and_a_finished_one_is_returned_at_once(lake, tmp_path):
    _, job = lake
    result = supervise(job, tmp_path)
    assert result.status == "succeeded"
    assert output_folder(job, tmp_path).name == job.job_hash[:16]
    before = jobs.fingerprint(output_folder(job, tmp_path) / "checkpoint")
    moved = jobs.changed(job, lake="/nowhere")
    assert supervise(moved, tmp_path) == result
    assert jobs.fingerprint(output_folder(job, tmp_path) / "checkpoint") == before


def long_job(job, tmp_path):
    """A job of fine-tuning that would take minutes, over a base laid into the same lake."""
    from pathlib import Path

    init = supervise(job, tmp_path)
    with world.open(job.lake).begin("checkpoint", derivation=init.digest) as batch:
        files = {path.name: path.read_bytes() for path in Path(init.checkpoint).iterdir()}
        base = batch.create("checkpoint", "untrained", {"digest": init.digest}, files=files, blob_in_identity=False)
    options = {"report_every": 1, "batch_tokens": 256, "splicing": 0.0}
    return jobs.changed(job, method="sft", base=base, options=options, hyper=replace(job.hyper, steps=5000))


def test_a_job_past_its_deadline_is_stopped_and_its_metrics_were_followed(lake, tmp_path):
    _, job = lake
    rows = []
    slow = long_job(job, tmp_path)
    with pytest.raises(TrainingFailedError, match="deadline of 60 s"):
        supervise(slow, tmp_path, deadline_s=60, on_metrics=rows.append)
    assert [row["step"] for row in rows] == list(range(1, len(rows) + 1))
    assert len(rows) > 2
    assert not (output_folder(slow, tmp_path) / "checkpoint").exists()


def test_a_job_that_cannot_be_done_says_why_in_one_line(lake, tmp_path):
    _, job = lake
    with pytest.raises(TrainingFailedError, match="names no trajectories") as caught:
        supervise(jobs.changed(job, trajectories=()), tmp_path)
    assert "\n" not in str(caught.value)


def workers_below(pid=None):
    """The warm process and its job, below this process or another."""
    found = []
    for child in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # ended since, or a zombie
            if "trainers.warm" in child.cmdline():
                found.append(child)
    return found


def test_jobs_share_a_process_that_has_imported_the_libraries(lake, tmp_path):
    _, job = lake
    supervise(job, tmp_path / "first")
    (warm,) = workers_below()
    supervise(job, tmp_path / "second")
    assert workers_below() == [warm]


def test_a_job_that_is_killed_is_told_and_the_next_one_is_done(lake, tmp_path):
    _, job = lake
    slow = long_job(job, tmp_path)

    def kill(row):
        for process in reversed(workers_below()):
            process.kill()

    with pytest.raises(TrainingFailedError, match="ended with status -9"):
        supervise(slow, tmp_path, on_metrics=kill)
    assert supervise(job, tmp_path / "again").status == "succeeded"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_child_never_outlives_its_supervisor(lake, tmp_path, number):
    _, job = lake
    slow = long_job(job, tmp_path)
    folder = output_folder(slow, tmp_path)
    (tmp_path / "slow.json").write_text(json.dumps(encode(slow)))
    code = (
        "import json, sys; from pathlib import Path; from agent_world.codec import decode;"
        "from trainers.job import TrainJob; from trainers.supervisor import supervise;"
        "job = decode(TrainJob, json.loads(Path(sys.argv[1]).read_text())); supervise(job, Path(sys.argv[2]))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "slow.json"), str(tmp_path)]
    supervisor = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    _wait(lambda: (folder / "metrics.jsonl").exists())
    children = workers_below(supervisor.pid)
    assert len(children) == 2
    supervisor.send_signal(number)
    assert supervisor.wait(60) != 0
    psutil.wait_procs(children, 60)
    assert not any(child.is_running() for child in children)
    assert not (folder / "result.json").exists()


def _wait(happened):
    for _ in range(1200):
        if happened():
            return
        time.sleep(0.1)
    raise AssertionError("it never happened")
