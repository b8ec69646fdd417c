import shlex
from pathlib import Path

import pytest

from agent_world.errors import BadInputError
from trainers.job import Hyper, TrainJob
from trainers.nemo_aligner import render

GOLDEN = Path(__file__).parent / "golden"

OPTIONS = {
    "base_file": "/models/llama-3.1-8b.nemo",
    "base_architecture": "llama",
    "train_data": "/data/train.jsonl",
    "validation_data": "/data/validation.jsonl",
    "log_dir": "/results/r01",
    "nodes": 8,
}


def paper_job(options=None, **changes):
    """The paper's values; single-turn, since that is all this back-end can do."""
    hyper = {"max_turns": 1, "kl_beta": 0.001, **changes.pop("hyper", {})}
    fields = {
        "method": "grpo",
        "backend": "nemo_aligner",
        "lake": "lake",
        "base": "checkpoint@1",
        "task_set": "set@1",
        "environments": (),
        "seed": 7,
    }
    return TrainJob(hyper=Hyper(**hyper), options={**OPTIONS, **(options or {})}, **{**fields, **changes})


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("vllm", {}),
        ("trt_llm", {"engine": "trt_llm", "mlflow_uri": "http://tracker:5000", "mlflow_run": "abc"}),
    ],
)
def test_the_papers_job_is_rendered_key_by_key(name, options):
    rendered = render(paper_job(options))
    assert rendered.argv == tuple((GOLDEN / f"aligner_{name}.txt").read_text("utf-8").splitlines())


def test_rendering_is_pure_and_the_script_runs_the_same_command():
    rendered = render(paper_job())
    assert rendered == render(paper_job())
    last = rendered.files["launch.sh"].splitlines()[-1]
    assert tuple(shlex.split(last)) == rendered.argv


def test_the_asymmetric_clip_is_switched_on():
    keys = dict(argument.split("=", 1) for argument in render(paper_job()).argv[2:])
    assert keys["model.grpo.dapo.clip_higher"] == "True"
    assert (keys["model.grpo.ratio_eps_low"], keys["model.grpo.ratio_eps_high"]) == ("0.2", "0.28")
    assert keys["model.global_batch_size"] == "256"


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"options": {"base_architecture": "qwen3"}}, "use a llama base, or trl for Qwen"),
        ({"options": {"base_file": "/models/hf"}}, "convert the checkpoint"),
        ({"hyper": {"max_turns": 40}}, "generates once and scores"),
        ({"hyper": {"max_generation_tokens": 81920}}, "no room for a prompt"),
        ({"method": "sft"}, "use the back-end trl"),
        ({"task_set": None}, "name both"),
        ({"hyper": {"rollouts_per_task": 6}}, "rollouts_per_task = 6 is no multiple of"),
        ({"hyper": {"tasks_per_step": 30}}, "tasks_per_step = 30 is no multiple of"),
        ({"options": {"tensor_parallel": 7}}, "nodes x devices = 64 is no multiple of"),
        (
            {"options": {"validation_samples": 0, "validation_prompt_micro_batch": 3}},
            "validation_prompt_micro_batch = 3",
        ),
        ({"options": {"validation_prompts": 100}}, "validation_prompts = 100"),
        ({"options": {"engines": "vllm"}}, "there is no such option here"),
        ({"options": {"engine": "tgi"}}, "'tgi' is no"),
        ({"options": {"nodes": "8"}}, "'8' is no"),
    ],
)
def test_what_the_branch_cannot_do_is_refused_before_a_cluster_is_waited_for(change, complaint):
    with pytest.raises(BadInputError, match=complaint):
        render(paper_job(**change))


def test_a_missing_option_is_named():
    job = paper_job()
    with pytest.raises(BadInputError, match="missing: base_architecture, base_file, log_dir"):
        render(
            TrainJob(
                **{f: getattr(job, f) for f in job.__dataclass_fields__ if f != "options"},
                options={"nodes": 1, "train_data": "a", "validation_data": "b"},
            )
        )
