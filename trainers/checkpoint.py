"""What a checkpoint is: the digest of its tensors, configuration, tokenizer and chat template, never of paths."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from agent_world.errors import BadInputError
from agent_world.identity import Digest, canonical_json, sha256

_NOT_CONTENT = frozenset(
    {
        "_name_or_path", "is_local", "local_files_only", "name_or_path", "special_tokens_map_file", "tokenizer_file",
        "transformers_version", "vocab_file",
    }
)  # fmt: skip
"""Where a model was read from and what wrote it, which says nothing of what it is."""


def checkpoint_digest(directory: str | Path) -> Digest:
    """The identity of the policy in a Hugging Face model directory.

    Raises:
        BadInputError: it holds no configuration, no tokenizer or no safetensors file.
    """
    from safetensors import safe_open

    folder = Path(directory)
    weights = sorted(folder.glob("*.safetensors"))
    for name, there in (("config.json", False), ("tokenizer.json", False), ("*.safetensors", bool(weights))):
        if not there and not (folder / name).is_file():
            raise BadInputError(str(folder), f"it holds no {name}", "give a Hugging Face model directory")
    tensors: dict[str, str] = {}
    for path in weights:
        with safe_open(path, framework="pt") as file:
            for name in file.keys():
                tensor = file.get_tensor(name).contiguous()
                raw = tensor.flatten().view(_bytes()).numpy().tobytes()
                shape = f"{tensor.dtype}{list(tensor.shape)}"
                tensors[name] = hashlib.sha256(shape.encode() + raw).hexdigest()
    template = folder / "chat_template.jinja"
    content = {
        "tensors": tensors,
        "config": _content(folder / "config.json"),
        "tokenizer": sha256((folder / "tokenizer.json").read_bytes()),
        "tokenizer_config": _content(folder / "tokenizer_config.json"),
        "chat_template": sha256(template.read_bytes()) if template.is_file() else None,
    }
    return sha256(canonical_json(content))


def is_finite(directory: str | Path) -> bool:
    """Whether every weight of a Hugging Face model directory is a number."""
    from safetensors import safe_open

    for path in sorted(Path(directory).glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            if not all(bool(file.get_tensor(name).isfinite().all()) for name in file.keys()):
                return False
    return True


def _content(path: Path) -> dict[str, Any] | None:
    """What a JSON file says of the model; None without one."""
    if not path.is_file():
        return None
    return {key: value for key, value in json.loads(path.read_text("utf-8")).items() if key not in _NOT_CONTENT}


def _bytes() -> object:
    import torch

    return torch.uint8
