"""The version of the code that makes artifacts: a digest of its sources, the same on every machine."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from agent_world.identity import Digest, canonical_json, sha256

_PACKAGES = ("agent_world", "lake_schemas", "trainers")
_SUFFIXES = {".py", ".md", ".json", ".jsonl", ".yaml", ".txt"}


@cache
def code_version() -> Digest:
    """Digest over path and content of every source and data file that can change an artifact."""
    root = Path(__file__).resolve().parent.parent
    listing = {
        path.relative_to(root).as_posix(): sha256(path.read_bytes())
        for package in _PACKAGES
        for path in sorted((root / package).rglob("*"))
        if path.suffix in _SUFFIXES and path.is_file() and "__pycache__" not in path.parts
    }
    return sha256(canonical_json(listing))
