"""The back-end `nemo_aligner`: renders a GRPO job as the command line of NeMo-Aligner's GRPO branch; runs nothing.

No release of NeMo-Aligner has GRPO. The public branch `llama-nemotron-dev` does, for models of the llama family and for
tasks of one turn; the project was archived in May 2025. The keys below were composed against that branch's
``conf/gpt_grpo.yaml`` in Hydra's struct mode. Rendered and checked, never executed: that needs GPUs and NVIDIA's image.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from agent_world.errors import BadInputError
from trainers.job import TrainJob
from trainers.options import settings

BRANCH = "llama-nemotron-dev"
COMMIT = "8c31926"
IMAGE = "nvcr.io/nvidia/nemo:24.12"
FOLDER = "/opt/NeMo-Aligner/examples/nlp/gpt"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignerOptions:
    """What a launch needs beyond the job's hyper-parameters, from `TrainJob.options`.

    Paths are those inside the container. `base_architecture` is the family of the base checkpoint, `reward_*` where our
    verifiers listen for ``/math_grader``, `data_parallel` follows from nodes, devices and model parallelism.
    """

    base_file: str
    base_architecture: str
    train_data: str
    validation_data: str
    log_dir: str
    nodes: int = 1
    devices: int = 8
    tensor_parallel: int = 8
    pipeline_parallel: int = 1
    rollout_micro_batch: int = 8
    prompt_micro_batch: int = 1
    validation_prompts: int = 64
    validation_prompt_micro_batch: int = 8
    validation_samples: int = 1
    validate_every: int = 10
    save_every: int = 10
    warm_up_steps: int = 10
    constant_steps: int = 1000
    final_learning_rate_share: float = 0.1
    engine: Literal["trt_llm", "trt_llm_pytorch", "sglang", "vllm"] = "vllm"
    engine_host: str = "localhost"
    engine_port: int = 4321
    reward_host: str = "localhost"
    reward_port: int = 3141
    mlflow_uri: str = ""
    mlflow_run: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A launch: one process per GPU runs `argv` in `folder` of `image`, with `checkout` mounted over the library."""

    argv: tuple[str, ...]
    folder: str
    image: str
    checkout: str
    files: Mapping[str, str]


def render(job: TrainJob) -> Rendered:
    """The command line of a GRPO job.

    Raises:
        BadInputError: a job that this back-end cannot do, or numbers that do not divide as it asserts at its start.
    """
    _check_possible(job)
    options = settings(AlignerOptions, job.options)
    _check_base(options)
    data_parallel = _data_parallel(options)
    _check_divisible(job, options, data_parallel)
    argv = ("python", "train_gpt_grpo.py", *(f"{key}={_hydra(value)}" for key, value in _overrides(job, options)))
    return Rendered(
        argv=argv,
        folder=FOLDER,
        image=IMAGE,
        checkout=f"NeMo-Aligner@{COMMIT} ({BRANCH})",
        files={"launch.sh": _launch_script(argv, options)},
    )


def _check_possible(job: TrainJob) -> None:
    where = "the training job"
    if job.backend != "nemo_aligner" or job.method != "grpo":
        why = f"it asks {job.backend} for {job.method}, but this renders GRPO for nemo_aligner"
        raise BadInputError(where, why, "use the back-end trl for init and sft")
    if job.base is None or job.task_set is None:
        raise BadInputError(where, "GRPO needs a base checkpoint and a task set", "name both")
    if job.hyper.max_turns != 1:
        why = f"its episodes have up to {job.hyper.max_turns} turns, and this back-end generates once and scores"
        raise BadInputError(where, why, "use trl for tasks with tools, or set max_turns to 1")
    if job.hyper.max_generation_tokens >= job.hyper.max_trajectory_tokens:
        why = "max_generation_tokens leaves no room for a prompt within max_trajectory_tokens"
        raise BadInputError(where, why, "lower max_generation_tokens")


def _check_base(options: AlignerOptions) -> None:
    if options.base_architecture.lower() != "llama":
        why = (
            f"its base is of the family {options.base_architecture}, and weights reach the engines by llama names only"
        )
        raise BadInputError("the training job", why, "use a llama base, or trl for Qwen and others")
    if not options.base_file.endswith(".nemo"):
        why = "this back-end restores .nemo files"
        raise BadInputError(f"base {options.base_file}", why, "convert the checkpoint with NeMo's converter first")


def _data_parallel(options: AlignerOptions) -> int:
    gpus = options.nodes * options.devices
    _check_divides(
        gpus, options.tensor_parallel * options.pipeline_parallel, "nodes x devices", "the model parallel size"
    )
    return gpus // (options.tensor_parallel * options.pipeline_parallel)


def _check_divisible(job: TrainJob, options: AlignerOptions, data_parallel: int) -> None:
    """What the trainer asserts at its start, said before a cluster is waited for."""
    hyper = job.hyper
    groups = _check_divides(
        options.rollout_micro_batch, options.prompt_micro_batch, "rollout_micro_batch", "prompt_micro_batch"
    )
    _check_divides(hyper.rollouts_per_task, groups, "rollouts_per_task", "rollout_micro_batch / prompt_micro_batch")
    groups = _check_divides(
        options.rollout_micro_batch,
        options.validation_prompt_micro_batch,
        "rollout_micro_batch",
        "validation_prompt_micro_batch",
    )
    _check_divides(
        options.validation_samples,
        groups,
        "validation_samples",
        "rollout_micro_batch / validation_prompt_micro_batch",
    )
    share = f"data parallel size ({data_parallel}) x "
    _check_divides(
        hyper.tasks_per_step, data_parallel * options.prompt_micro_batch, "tasks_per_step", share + "prompt_micro_batch"
    )
    _check_divides(
        options.validation_prompts,
        data_parallel * options.validation_prompt_micro_batch,
        "validation_prompts",
        share + "validation_prompt_micro_batch",
    )


def _check_divides(number: int, divisor: int, name: str, by: str) -> int:
    if divisor < 1 or number % divisor:
        raise BadInputError("the training job", f"{name} = {number} is no multiple of {by} = {divisor}", "change one")
    return number // divisor


def _overrides(job: TrainJob, options: AlignerOptions) -> list[tuple[str, object]]:
    """Every key with its value, in the order of the branch's configuration; ``+`` adds a key that it lacks."""
    hyper = job.hyper
    overrides: list[tuple[str, object]] = [
        ("trainer.num_nodes", options.nodes),
        ("trainer.devices", options.devices),
        ("trainer.grpo.max_epochs", hyper.epochs),
        ("trainer.grpo.max_steps", hyper.steps),
        ("trainer.grpo.val_check_interval", options.validate_every),
        ("trainer.grpo.save_interval", options.save_every),
        ("trainer.grpo.initial_policy_kl_penalty", hyper.kl_beta),
        ("trainer.grpo.use_leave_one_out_baseline", False),
        ("trainer.grpo.normalize_rewards", True),
        ("trainer.grpo.generation_rollout_mbs", options.rollout_micro_batch),
        ("trainer.grpo.prompt_micro_batch_size", options.prompt_micro_batch),
        ("trainer.grpo.num_prompts_per_grpo_step", hyper.tasks_per_step),
        ("trainer.grpo.samples_per_prompt", hyper.rollouts_per_task),
        ("trainer.grpo.val_prompt_micro_batch_size", options.validation_prompt_micro_batch),
        ("trainer.grpo.val_num_prompts_per_grpo_step", options.validation_prompts),
        ("trainer.grpo.val_samples_per_prompt", options.validation_samples),
        ("trainer.grpo.generation_save_dir", f"{options.log_dir}/generations"),
        ("trainer.grpo.environments.math.servers.math_grader.ip", options.reward_host),
        ("trainer.grpo.environments.math.servers.math_grader.port", options.reward_port),
        ("trainer.grpo.inference_backend.type", options.engine),
    ]
    if options.engine == "vllm":
        overrides += [
            ("trainer.grpo.inference_backend.config.vllm.enable", True),
            ("trainer.grpo.inference_backend.config.vllm.ip", options.engine_host),
            ("trainer.grpo.inference_backend.config.vllm.port", options.engine_port),
            ("trainer.grpo.inference_backend.config.trt_llm.enable", False),
        ]
    overrides += [
        ("exp_manager.explicit_log_dir", options.log_dir),
        ("exp_manager.resume_if_exists", True),
        ("exp_manager.checkpoint_callback_params.save_nemo_on_train_end", True),
    ]
    if options.mlflow_uri:
        logger = {
            "experiment_name": "agent-world",
            "tracking_uri": options.mlflow_uri,
            "run_id": options.mlflow_run or None,
        }
        overrides += [
            ("+exp_manager.create_mlflow_logger", True),
            ("+exp_manager.mlflow_logger_kwargs", logger),
        ]
    return [
        *overrides,
        ("pretrained_checkpoint.restore_from_path", options.base_file),
        # Without `clip_higher` the branch silently clips both sides by `ratio_eps`.
        ("model.grpo.dapo.clip_higher", True),
        ("model.grpo.ratio_eps_low", hyper.clip_low),
        ("model.grpo.ratio_eps_high", hyper.clip_high),
        # A mean over each sequence, as in the paper; it needs a micro batch of one.
        ("model.grpo.dapo.token_loss", False),
        ("model.grpo.sampling_params.temperature", hyper.temperature),
        ("model.grpo.sampling_params.top_p", hyper.top_p),
        ("model.grpo.length_params.max_length", hyper.max_generation_tokens),
        ("+model.tensor_model_parallel_size", options.tensor_parallel),
        ("+model.pipeline_model_parallel_size", options.pipeline_parallel),
        ("model.micro_batch_size", 1),
        ("model.global_batch_size", hyper.tasks_per_step * hyper.rollouts_per_task),
        ("model.encoder_seq_length", hyper.max_trajectory_tokens),
        ("model.seed", job.seed % 2**31),
        ("model.optim.lr", hyper.learning_rate),
        ("model.optim.sched.warmup_steps", options.warm_up_steps),
        ("model.optim.sched.constant_steps", options.constant_steps),
        ("model.optim.sched.min_lr", hyper.learning_rate * options.final_learning_rate_share),
        (
            "model.data.data_prefix",
            {
                "train": [options.train_data],
                "validation": [options.validation_data],
                "test": [options.validation_data],
            },
        ),
    ]


def _hydra(value: object) -> str:
    """A value in the grammar of Hydra's overrides."""
    if isinstance(value, bool):
        return str(value)
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_hydra(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_hydra, value)) + "]"
    if isinstance(value, str):
        plain = value.replace("/", "").replace(".", "").replace("_", "").replace("-", "").isalnum()
        return value if plain else json.dumps(value)
    return repr(value)


def _launch_script(argv: tuple[str, ...], options: AlignerOptions) -> str:
    """The Slurm step: one task a GPU, in the image, with the checkout of the branch over the library."""
    return "\n".join(
        [
            "#!/bin/bash",
            f"# NeMo-Aligner, branch {BRANCH}, commit {COMMIT}; patch NeMo by experimental/grpo/NeMo-diff.patch",
            "set -euo pipefail",
            f"srun --nodes={options.nodes} --ntasks-per-node={options.devices} --mpi=pmix \\",
            f'  --container-image={IMAGE} --container-mounts="$ALIGNER_CHECKOUT":/opt/NeMo-Aligner \\',
            f"  --container-workdir={FOLDER} \\",
            f"  {shlex.join(argv)}",
            "",
        ]
    )
