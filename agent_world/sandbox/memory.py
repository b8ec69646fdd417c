"""Anonymous files that cross into a sandbox by descriptor: sealed ones to read, logs to append to."""

from __future__ import annotations

import fcntl
import os
from types import TracebackType
from typing import Self

_SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


class MemoryFile:
    """An anonymous file in memory; leaving the `with` block, or dropping the object, frees it."""

    __slots__ = ("fd",)

    def __init__(self, data: bytes | None = None) -> None:
        """With `data`: these bytes, which nobody can change any more, whatever rights he has. Without: empty."""
        self.fd = os.memfd_create("agent-world", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        if data is not None:
            view = memoryview(data)
            while view:
                view = view[os.write(self.fd, view) :]
            os.lseek(self.fd, 0, os.SEEK_SET)
            fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, _SEALS)

    def size(self) -> int:
        """Bytes in it now."""
        return os.fstat(self.fd).st_size

    def read(self, limit: int) -> bytes:
        """All bytes, at most `limit`.

        Raises:
            ValueError: the file is longer.
        """
        size = self.size()
        if size > limit:
            raise ValueError(f"{size} bytes where at most {limit} are allowed")
        return os.pread(self.fd, size, 0) if size else b""

    def close(self) -> None:
        """Free it; again is harmless."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()
