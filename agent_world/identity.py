"""Identity of artifacts: canonical JSON, content hashes, derivations, keys and seeds (design.md 4.2).

Nothing here reads a clock, a host name, a path or an unseeded random source, so that the same content
has the same id on every machine.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, NewType

VersionId = NewType("VersionId", str)
"""``artifact_id@content_hash[:32]``: one exact version of one artifact."""

Digest = NewType("Digest", str)
"""A full lower-case sha256 in hex."""

_HASH_CHARACTERS = 32


def canonical_json(value: Any) -> str:
    """The one JSON text of `value`: sorted keys, no spaces, UTF-8 kept, no NaN.

    Raises:
        ValueError: a NaN or an infinity, which JSON cannot carry.
        TypeError: a value that is not JSON, or a key that is not a string.
    """
    _check_json(value)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def sha256(data: bytes | str) -> Digest:
    """The sha256 of bytes, or of the UTF-8 form of a text."""
    return Digest(hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest())


def content_hash(kind: str, payload: Mapping[str, Any], blob_root: str | None = None) -> Digest:
    """What an artifact *is*: kind, payload and the root of its blobs; never run, time, host or path."""
    return sha256(canonical_json({"kind": kind, "payload": payload, "blob_root": blob_root}))


def version_id(artifact_id: str, content: Digest) -> VersionId:
    """The exact version of `artifact_id` that has this content."""
    return VersionId(f"{artifact_id}@{content[:_HASH_CHARACTERS]}")


def artifact_id_of(version: VersionId) -> str:
    """The artifact that `version` is a version of."""
    return version.rpartition("@")[0]


def derivation_hash(code_version: str, parameters: Mapping[str, Any], parents: Iterable[str]) -> Digest:
    """How an artifact was *made*: the cache key, and the alarm when one derivation gives two contents."""
    return sha256(canonical_json({"code": code_version, "parameters": parameters, "parents": sorted(parents)}))


def slug(text: str, length: int = 40) -> str:
    """`text` as ``[a-z0-9-]``; empty when nothing of it is ASCII."""
    folded = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", folded).strip("-")[:length].strip("-")


def partition_key(text: str) -> str:
    """A key that is safe wherever keys go: a slug for people, a short hash against collisions."""
    return f"{slug(text) or 'x'}-{sha256(text)[:6]}"


def seed_of(*parts: str | int) -> int:
    """A 63-bit seed that depends on all parts and on nothing else."""
    return int(sha256(canonical_json(list(parts)))[:16], 16) >> 1


def rng(*parts: str | int) -> random.Random:
    """A private random source seeded by `parts`."""
    return random.Random(seed_of(*parts))


def _check_json(value: Any) -> None:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"a JSON key must be a string, not {key!r}")
            _check_json(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _check_json(item)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} has no JSON form")
