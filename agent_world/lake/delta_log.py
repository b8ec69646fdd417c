"""The commit files of a Delta table one by one, for when delta-rs refuses the table and does not say which is wrong.

Nothing removes commit files (the tables keep their history), so every version from 0 on has one.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from agent_world.lake.errors import DamagedError
from agent_world.lake.storage import Storage

LAST_CHECKPOINT = "_delta_log/_last_checkpoint"

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(\.[0-9.]+)?\.parquet")
_AT_ONCE = 8
_TORN = "it is torn or changed: not the JSON of a commit"


class CommitFile(NamedTuple):
    """One commit file: its bytes, and its actions, None when they cannot be read; both None when there is no file."""

    version: int
    key: str
    data: bytes | None
    actions: list[dict[str, Any]] | None

    def why(self) -> str | None:
        """What is wrong with it; None when nothing is."""
        if self.data is None:
            return "the file is missing"
        return _TORN if self.actions is None else None

    def paths(self, action: str, *, new_rows: bool = False) -> list[str]:
        """Paths in the table of the files that it adds or removes; with `new_rows` only those that bring rows."""
        found = [entry[action] for entry in self.actions or () if action in entry]
        return [unquote(file["path"]) for file in found if file.get("dataChange", True) or not new_rows]


def log_key(folder: str, version: int) -> str:
    """The key of the commit file of `version`."""
    return f"{folder}/_delta_log/{version:020}.json"


def read_commit(storage: Storage, folder: str, version: int) -> CommitFile:
    """The commit file of `version`, whatever its state."""
    key = log_key(folder, version)
    try:
        data = storage.read(key)
    except FileNotFoundError:
        return CommitFile(version, key, None, None)
    return CommitFile(version, key, data, _actions(version, data))


def commit_files(storage: Storage, folder: str, through: int | None = None) -> Iterator[CommitFile]:
    """Every commit file from version 0 on, up to `through` or the newest there is; those that are missing too."""
    if through is None:
        names = [_COMMIT.fullmatch(item.key.rpartition("/")[2]) for item in storage.list(f"{folder}/_delta_log")]
        through = max((int(name[1]) for name in names if name), default=-1)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        yield from pool.map(partial(read_commit, storage, folder), range(through + 1))


def checkpoint_files(storage: Storage, folder: str) -> list[str]:
    """Keys of all checkpoints: caches of the commit files."""
    keys = [item.key for item in storage.list(f"{folder}/_delta_log")]
    return [key for key in keys if _CHECKPOINT.fullmatch(key.rpartition("/")[2])]


def checkpoint_damage(storage: Storage, folder: str) -> dict[str, str]:
    """What is wrong with the checkpoints and the file that names the last one, by key."""
    keys = checkpoint_files(storage, folder)
    found = {key: why for key in keys if (why := _unreadable(storage.read(key)))}
    last = f"{folder}/{LAST_CHECKPOINT}"
    try:
        named = int(json.loads(storage.read(last))["version"])
    except FileNotFoundError:
        return found
    except (ValueError, KeyError, TypeError):
        return found | {last: "it cannot be read"}
    good = {int(key.rpartition("/")[2][:20]) for key in keys if key not in found}
    return found if named in good else found | {last: f"it names a checkpoint at {named} that cannot be read"}


def blame(storage: Storage, folder: str) -> DamagedError | None:
    """The first file that keeps a table from being opened; None when none of them is to blame."""
    newest = -1
    for commit in commit_files(storage, folder):
        if why := commit.why():
            return DamagedError(commit.key, why)
        newest = commit.version
    for key, why in checkpoint_damage(storage, folder).items():
        return DamagedError(key, why)
    # JSON, but not what Delta expects: the first version that cannot be opened.
    first = bisect_left(range(newest + 1), True, key=lambda version: not _opens(storage, folder, version))
    return DamagedError(log_key(folder, first), "it does not say what a commit must say") if first <= newest else None


def _opens(storage: Storage, folder: str, version: int) -> bool:
    try:
        with storage.discreet():
            DeltaTable(storage.table_uri(folder), version=version, storage_options=storage.options)
    except DeltaError:
        return False
    return True


def _actions(version: int, data: bytes) -> list[dict[str, Any]] | None:
    try:
        actions = [json.loads(line) for line in data.splitlines() if line.strip()]
        for entry in actions:
            for file in (entry[name] for name in ("add", "remove") if name in entry):
                if not isinstance(file["path"], str):
                    return None
                json.loads(file.get("stats") or "{}")
    except (ValueError, TypeError, KeyError):
        return None
    whole = {"protocol", "metaData"} <= {name for entry in actions for name in entry} if version == 0 else actions
    return actions if whole else None


def _unreadable(data: bytes) -> str | None:
    try:
        with pq.ParquetFile(pa.BufferReader(data), pre_buffer=False) as file:
            file.read(use_threads=False)
    except (OSError, pa.ArrowException) as error:
        return f"it cannot be read ({str(error).splitlines()[0]})"
    return None
