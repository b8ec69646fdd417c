"""What a checkpoint is: the digest of its tensors, configuration and tokenizer, never of files that hold paths."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from agent_world.errors import BadInputError
from agent_world.identity import Digest, canonical_json, sha256

_NOT_CONTENT = ("transformers_version", "_name_or_path")


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
    config = json.loads((folder / "config.json").read_text("utf-8"))
    content = {
        "tensors": tensors,
        "config": {key: value for key, value in config.items() if key not in _NOT_CONTENT},
        "tokenizer": sha256((folder / "tokenizer.json").read_bytes()),
    }
    return sha256(canonical_json(content))


def _bytes() -> object:
    import torch

    return torch.uint8
