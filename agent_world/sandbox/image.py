"""The image of the docker back-end: the host's Debian Python as one layer, made without a hub.

The same packages give the same bytes: entries are sorted, owned by root, and dated as the packages date their files,
which compiled modules are checked against.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from agent_world.sandbox.guest_code import PYTHON

_LIBRARY = Path("/usr/lib/python3.11")
_LINKS = {"bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64"}
_FOLDERS = ("agent-world", "dev", "etc", "proc", "root", "sys")
_LEFT_OUT = re.compile(r"/config-3\.11-|\.a$")  # what only compilers read
_LIBRARY_LINE = re.compile(r"(/\S+) \(0x")
_REPOSITORY = "agent-world-guest"


@cache
def image_name() -> str:
    """The image's name and tag, which follows from what is in it."""
    return f"{_REPOSITORY}:{hashlib.sha256(layer()).hexdigest()[:32]}"


def archive() -> bytes:
    """The image as ``docker load`` takes it."""
    packed = layer()
    config = _canonical(
        {
            "architecture": "amd64",
            "os": "linux",
            "created": "1970-01-01T00:00:00Z",
            "config": {},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(packed).hexdigest()}"]},
            "history": [{"created": "1970-01-01T00:00:00Z", "created_by": _REPOSITORY}],
        }
    )
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = _canonical([{"Config": name, "RepoTags": [image_name()], "Layers": ["layer.tar"]}])
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as file:
        for path, content in ((name, config), ("layer.tar", packed), ("manifest.json", manifest)):
            _add(file, path, content)
    return data.getvalue()


def layer() -> bytes:
    """The files of the image, as a tar."""
    sources = _sources()
    folders = {*_FOLDERS, *(str(parent) for path in sources for parent in Path(path).parents if parent.name)}
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.GNU_FORMAT) as file:
        for path in sorted(folders):
            _add(file, path, kind=tarfile.DIRTYPE)
        for path, target in sorted(_LINKS.items()):
            _add(file, path, kind=tarfile.SYMTYPE, target=target)
        for path, source in sorted(sources.items()):
            _add(file, path, source.read_bytes(), modified=int(source.stat().st_mtime))
    return data.getvalue()


def _sources() -> Mapping[str, Path]:
    """Path in the image -> file of the host: Python, its library, and the libraries that these need."""
    library = [Path(PYTHON), *_files(_LIBRARY)]
    binaries = [str(path) for path in library if path.suffix == ".so" or path == Path(PYTHON)]
    needed = subprocess.run(["ldd", *binaries], capture_output=True, text=True, check=True, env={}).stdout
    found = {*library, *(Path(path) for path in _LIBRARY_LINE.findall(needed))}
    # Debian's /lib is /usr/lib, and ldd names both.
    return {re.sub(r"^/(usr/)?", "usr/", str(path)): path.resolve() for path in found}


def _files(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            if path.is_file() and not _LEFT_OUT.search(str(path)):
                yield path


def _add(
    file: tarfile.TarFile,
    path: str,
    content: bytes = b"",
    *,
    kind: bytes = tarfile.REGTYPE,
    target: str = "",
    modified: int = 0,
) -> None:
    entry = tarfile.TarInfo(path)
    entry.type, entry.linkname, entry.size, entry.mtime, entry.mode = kind, target, len(content), modified, 0o755
    file.addfile(entry, io.BytesIO(content))


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
