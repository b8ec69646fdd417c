"""Jobs and an in-memory source over the toy world."""

from dataclasses import replace

from agent_world.identity import sha256
from agent_world.rollouts.model import Outcome, Trajectory
from agent_world.world import BoundTask
from tests.models import little
from tests.toy import toy_environment, toy_tasks
from trainers.job import Hyper, TrainJob

SMALL = {
    "width": 64,
    "layers": 2,
    "heads": 2,
    "key_value_heads": 1,
    "feed_forward": 128,
    "vocabulary": 400,
    "context": 512,
}

ENVIRONMENT = toy_environment()
READING, WRITING = toy_tasks()

LOANS = (
    (
        little.call("search_books", title="Nordic Light"),
        little.ok(items=[{"book_id": "B5", "title": "Nordic Light"}], total=1),
    ),
    (little.call("find_member", name="Tom Okafor"), little.ok(member_id="M2", name="Tom Okafor")),
    (little.call("lend_book", book_id="B5", member_id="M2"), little.ok(loan_id="LN3171", status="out")),
    (little.answer(status="out"), None),
)


def bound(task, version=None):
    return BoundTask(version=version or f"{task.task_id}@0", task=task, environment=ENVIRONMENT)


def trajectory(task, steps, status="pass"):
    return Trajectory(
        trajectory_id=f"trajectory-{task.task_id}-{status}",
        task=f"{task.task_id}@0",
        environment=ENVIRONMENT.version,
        policy="gold",
        policy_version="1",
        sample=0,
        seed=0,
        steps=steps,
        outcome=Outcome(status=status),
        final_digest=None,
    )


class Memory:
    """A source of training data that is no lake."""

    def __init__(self):
        self.tasks = {f"{task.task_id}@0": bound(task) for task in (READING, WRITING)}
        self.trajectories = {
            "read@0": trajectory(READING, little.EPISODE),
            "write@0": trajectory(WRITING, LOANS),
            "failed@0": trajectory(READING, little.EPISODE, "fail"),
        }
        self.payloads = {"set@0": {"tasks": list(self.tasks)}}
        self.checkpoints = {}

    def task(self, ref):
        return self.tasks[ref]

    def trajectory(self, version):
        return self.trajectories[version]

    def payload(self, version):
        return self.payloads[version]

    def files(self, version):
        return self.checkpoints[version]

    def keep(self, result):
        """Keep the checkpoint of a result, as the pipeline would; its version."""
        from pathlib import Path

        version = f"checkpoint@{result.digest[:32]}"
        folder = Path(result.checkpoint)
        self.checkpoints[version] = {path.name: path.read_bytes() for path in folder.iterdir()}
        return version


def job(method="init", base=None, options=None, **hyper):
    defaults = {
        "threads": 1,
        "max_trajectory_tokens": 400,
        "max_generation_tokens": 60,
        "learning_rate": 1e-2,
        "steps": 5,
    }
    return TrainJob(
        method=method,
        backend="trl",
        lake="none",
        base=base,
        task_set="set@0" if method == "grpo" else None,
        environments=(ENVIRONMENT.version,),
        hyper=Hyper(**{**defaults, **hyper}),
        seed=5,
        trajectories=() if method == "grpo" else ("read@0", "write@0"),
        options=SMALL if options is None else options,
    )


def changed(job, **fields):
    return replace(job, **fields)


def fingerprint(folder):
    """All bytes below a folder."""
    return sha256("".join(f"{p.name}{sha256(p.read_bytes())}" for p in sorted(folder.iterdir())))
