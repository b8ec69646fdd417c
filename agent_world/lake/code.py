"""Which code is running, as one text: the released version and a digest of the sources that make artifacts."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

_PACKAGES = ("agent_world", "assets", "expectations", "lake_schemas", "trainers")


@cache
def code_version() -> str:
    """Such as ``0.1.0+3f9c2a71b5d8``: equal exactly when release and sources are."""
    digest = hashlib.sha256()
    for package in _PACKAGES:
        found = find_spec(package)
        for place in sorted(found.submodule_search_locations or ()) if found else ():
            for path in sorted(Path(place).rglob("*.py")):
                digest.update(f"{package}/{path.relative_to(place).as_posix()}\0".encode())
                digest.update(path.read_bytes())
    try:
        release = version("agent-world")
    except PackageNotFoundError:
        release = "0"
    return f"{release}+{digest.hexdigest()[:12]}"
