"""Files that the supervisor reads too: what a session keeps."""

from __future__ import annotations

import os


class Log:
    """A file to append to; an append that fails leaves nothing behind."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def size(self) -> int:
        """Bytes in it now."""
        return os.fstat(self._descriptor).st_size

    def append(self, data: bytes) -> int:
        """Append all of `data`; gives the length before, for `cut`.

        Raises:
            OSError: there is no room for it.
        """
        start = place = self.size()
        view = memoryview(data)
        try:
            while view:
                written = os.pwrite(self._descriptor, view, place)
                place, view = place + written, view[written:]
        except BaseException:
            self.cut(start)
            raise
        return start

    def end_line(self) -> None:
        """Put a newline over the last byte: needs no room, so it cannot fail, and is there or not."""
        os.pwrite(self._descriptor, b"\n", self.size() - 1)

    def cut(self, size: int) -> None:
        """Take away what was appended."""
        os.ftruncate(self._descriptor, size)
