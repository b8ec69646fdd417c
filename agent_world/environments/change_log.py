"""What a session changed, as the supervisor reads it: SQLite's write-ahead log, and the log of written documents.

Both are files of the kernel that the session appends to and the supervisor holds by descriptor; nothing in them is a
reply, and nothing a session says elsewhere alters them.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from agent_world.environments.errors import CorruptStateError
from agent_world.sandbox import strict_json

_HEADER_BYTES, _FRAME_BYTES = 32, 24
_FRAME = struct.Struct(">II8s")
_MAGIC = (0x377F0682, 0x377F0683)


@dataclass(frozen=True, slots=True)
class Changes:
    """Pages that were committed (`count` pages in the file now), and documents with their new text."""

    pages: Mapping[int, bytes]
    count: int
    documents: Mapping[str, str]

    def __bool__(self) -> bool:
        return bool(self.pages or self.documents)


def read_changes(pages_log: bytes, documents_log: bytes, page_size: int) -> Changes:
    """The committed changes in these logs.

    Frames after the last commit are of a transaction that was rolled back. Check sums are not looked at: whatever lies
    in the log *is* the state, and a session that writes nonsense there has a nonsense state.

    Raises:
        CorruptStateError: a log that SQLite or the guest would not have written.
    """
    pages, count, end = _committed(pages_log, page_size)
    return Changes(pages, count, _documents(documents_log, end))


def _committed(log: bytes, page_size: int) -> tuple[dict[int, bytes], int, int]:
    """The committed pages, the number of pages in the file, and where in the log the last commit ends."""
    if not log:
        return {}, 0, 0
    if len(log) < _HEADER_BYTES or int.from_bytes(log[:4], "big") not in _MAGIC:
        raise CorruptStateError("the write-ahead log has no header")
    if int.from_bytes(log[8:12], "big") != page_size:
        raise CorruptStateError("the write-ahead log has pages of another size")
    salt, step = log[16:24], _FRAME_BYTES + page_size
    pages: dict[int, bytes] = {}
    pending: dict[int, bytes] = {}
    count = end = 0
    for at in range(_HEADER_BYTES, len(log) - step + 1, step):
        number, committed, frame_salt = _FRAME.unpack_from(log, at)
        if frame_salt != salt:
            break
        pending[number] = log[at + _FRAME_BYTES : at + step]
        if committed:
            pages |= pending
            pending, count, end = {}, committed, at + step
    return {number: page for number, page in pages.items() if number <= count}, count, end


def _documents(log: bytes, committed: int) -> dict[str, str]:
    """The texts of all calls that came to their end; `committed` bytes of the log of pages are.

    The last line has no newline when its session was killed over it (guest/toolkit.py: `Documents`). If it is whole and
    the log of pages has grown since, its call was committed; if not, nothing of that call was.
    """
    documents: dict[str, str] = {}
    *lines, last = log.split(b"\n")
    for line in lines:
        documents |= _written(line)[1]
    with suppress(CorruptStateError):
        before, texts = _written(last)
        if committed > before:
            documents |= texts
    return documents


def _written(line: bytes) -> tuple[int, dict[str, str]]:
    """The length of the log of pages before a call, and the texts that the call wrote."""
    try:
        before, texts = strict_json.loads(line)
    except (ValueError, TypeError) as error:
        raise CorruptStateError(f"the log of documents: {error}") from None
    if not isinstance(before, int) or not isinstance(texts, dict):
        raise CorruptStateError("the log of documents has a line that is none")
    if not all(isinstance(text, str) and _is_plain(path) for path, text in texts.items()):
        raise CorruptStateError("the log of documents names no plain path")
    return before, texts


def _is_plain(path: str) -> bool:
    return bool(path) and all(part not in ("", ".", "..") for part in path.split("/"))
