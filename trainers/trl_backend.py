"""The back-end `trl`: makes the tiny policy, fine-tunes and trains any Hugging Face causal model in this process."""

from __future__ import annotations

from pathlib import Path

from agent_world.identity import seed_of
from agent_world.models.local import device
from agent_world.models.renderer import renderer_for
from agent_world.models.tiny import make_model, make_tokenizer, save, vocabulary_texts
from trainers.data import Source, demonstrations_of, lay_down_base, tasks_of
from trainers.grpo import Trained, train_grpo
from trainers.job import TrainJob
from trainers.metrics import ROLLOUTS, MetricsFile
from trainers.settings import grpo_options, sft_options, tiny_size
from trainers.sft import train_sft


def train(job: TrainJob, source: Source, out: Path, metrics: Path) -> Trained:
    """Do the job and save the model and its tokenizer below `out`.

    Raises:
        BadInputError: an option that does not exist, or data that does not fit the job.
    """
    _prepare_torch(job)
    return _init(job, source, out) if job.method == "init" else _train_base(job, source, out, metrics)


def version() -> str:
    """The versions of what trains."""
    from importlib.metadata import version

    return " ".join(f"{name}={version(name)}" for name in ("trl", "transformers", "torch"))


def _prepare_torch(job: TrainJob) -> None:
    """Thread count, seeds and algorithms: what makes the same job give the same weights on the same processor."""
    import torch
    import transformers

    torch.set_num_threads(job.hyper.threads)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(seed_of("torch", job.seed))
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


def _init(job: TrainJob, source: Source, out: Path) -> Trained:
    """Tokenizer and random weights: the trajectories give the vocabulary, the environments their tags."""
    size = tiny_size(job)
    demonstrations = demonstrations_of(job, source)
    texts = (text for turn, steps in demonstrations for text in vocabulary_texts(turn.instruction, steps))
    tokenizer = make_tokenizer(texts, [turn.environment for turn, _ in demonstrations], size)
    save(out, make_model(tokenizer, size, seed_of("init", job.seed)), tokenizer)
    return Trained(0)


def _train_base(job: TrainJob, source: Source, out: Path, metrics: Path) -> Trained:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    base = lay_down_base(job, source, out.with_name("base"))
    model = AutoModelForCausalLM.from_pretrained(base, local_files_only=True, dtype="auto").to(device())
    tokenizer = AutoTokenizer.from_pretrained(base, local_files_only=True)
    renderer = renderer_for(tokenizer)
    with MetricsFile(metrics) as file:
        if job.method == "sft":
            demonstrations = demonstrations_of(job, source)
            steps = train_sft(model, renderer, demonstrations, sft_options(job), seed=job.seed, metrics=file)
            trained = Trained(steps)
        else:
            trained = train_grpo(
                model,
                tokenizer,
                renderer,
                tasks_of(job, source),
                grpo_options(job),
                seed=job.seed,
                metrics=file,
                scratch=out.with_name("trl"),
                version=job.base or "",
                kept=out.with_name(ROLLOUTS),
            )
    save(out, model, tokenizer)
    return trained
