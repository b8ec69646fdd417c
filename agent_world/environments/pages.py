"""Reads the rows of a SQLite file that lie on given pages, without SQLite.

A session's change log names the pages it changed. What differs between two states can only be on those pages, so that
reading them alone finds every changed row at a cost that follows the change and not the size of `D`. Format:
https://www.sqlite.org/fileformat2.html sections 1.5 to 2.1.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agent_world.environments.errors import CorruptStateError

Value = None | int | float | str | bytes

_HEADER_BYTES = 100  # page 1 starts with the header of the file
_INNER_KINDS, _LEAF_KINDS, _TABLE_LEAF = (2, 5), (10, 13), 13
_REAL = struct.Struct(">d")
_INTEGER_BYTES = (0, 1, 2, 3, 4, 6, 8)


@dataclass(frozen=True, slots=True)
class Tree:
    """The pages of one b-tree by their numbers."""

    inner: frozenset[int]
    leaves: frozenset[int]


class PageFile:
    """A database file as pages: the bytes of a snapshot, some pages replaced. Pages count from 1."""

    def __init__(self, base: bytes, changed: Mapping[int, bytes], count: int) -> None:
        self._base, self.changed = memoryview(base), changed
        self.count = count
        self.page_size = page_size(base)
        self._usable = self.page_size - base[20]

    def page(self, number: int) -> bytes | memoryview:
        """One page.

        Raises:
            CorruptStateError: the file has no such page.
        """
        if not 1 <= number <= self.count:
            raise CorruptStateError(f"page {number} of {self.count}")
        changed = self.changed.get(number)
        return self._base[(number - 1) * self.page_size : number * self.page_size] if changed is None else changed

    def tree(self, root: int) -> Tree:
        """The tree with this root; only inner pages and the first byte of leaves are read."""
        inner, leaves, waiting = set(), set(), [root]
        while waiting:
            number = waiting.pop()
            if number in inner or number in leaves:
                raise CorruptStateError(f"page {number} is twice in a tree")
            page, start = self.page(number), _start(number)
            if page[start] in _LEAF_KINDS:
                leaves.add(number)
            elif page[start] in _INNER_KINDS:
                inner.add(number)
                waiting.append(int.from_bytes(page[start + 8 : start + 12], "big"))
                waiting.extend(int.from_bytes(page[at : at + 4], "big") for at in self._cells(page, start, 12))
            else:
                raise CorruptStateError(f"page {number} is of no known kind")
        return Tree(frozenset(inner), frozenset(leaves))

    def records(self, leaves: Iterable[int]) -> dict[int, bytes]:
        """The records on these leaves of a table, by rowid."""
        records = {}
        for number in leaves:
            for _, size, rowid, at, page in self._leaf(number):
                local = self._local_bytes(size)
                record = bytes(page[at : at + local])
                if local < size:
                    first = int.from_bytes(page[at + local : at + local + 4], "big")
                    record += b"".join(content for _, content in self._chain(first, size - local))
                records[rowid] = record
        return records

    def overflow(self, leaf: int) -> Iterable[int]:
        """The overflow pages that belong to the cells of this table leaf."""
        for _, size, _, at, page in self._leaf(leaf):
            local = self._local_bytes(size)
            if local < size:
                first = int.from_bytes(page[at + local : at + local + 4], "big")
                yield from (number for number, _ in self._chain(first, size - local))

    def _leaf(self, number: int) -> Iterable[tuple[int, int, int, int, bytes | memoryview]]:
        page, start = self.page(number), _start(number)
        if page[start] != _TABLE_LEAF:
            raise CorruptStateError(f"page {number} is no leaf of a table")
        for cell in self._cells(page, start, 8):
            size, at = _varint(page, cell)
            rowid, at = _varint(page, at)
            yield cell, size, rowid, at, page

    def _cells(self, page: bytes | memoryview, start: int, header: int) -> tuple[int, ...]:
        count = int.from_bytes(page[start + 3 : start + 5], "big")
        return struct.unpack_from(f">{count}H", page, start + header)

    def _local_bytes(self, size: int) -> int:
        if size <= self._usable - 35:
            return size
        least = (self._usable - 12) * 32 // 255 - 23
        most = least + (size - least) % (self._usable - 4)
        return most if most <= self._usable - 35 else least

    def _chain(self, number: int, size: int) -> Iterable[tuple[int, bytes]]:
        for _ in range(self.count):
            page = self.page(number)
            yield number, bytes(page[4 : 4 + min(size, self._usable - 4)])
            size -= self._usable - 4
            if size <= 0:
                return
            number = int.from_bytes(page[:4], "big")
        raise CorruptStateError("an overflow chain without an end")


def page_size(base: bytes) -> int:
    """The page size that the header of a database file states."""
    size = int.from_bytes(base[16:18], "big")
    return 65536 if size == 1 else size


def decode(record: bytes) -> list[Value]:
    """The stored values of a record, in the order of the table's columns; trailing defaults may be missing."""
    end, at = _varint(record, 0)
    values, body = [], end
    while at < end:
        kind, at = _varint(record, at)
        if kind == 0:
            values.append(None)
        elif kind <= 6:
            size = _INTEGER_BYTES[kind]
            values.append(int.from_bytes(record[body : body + size], "big", signed=True))
            body += size
        elif kind == 7:
            values.append(_REAL.unpack_from(record, body)[0])
            body += 8
        elif kind <= 9:
            values.append(kind - 8)
        else:
            size = (kind - 12) >> 1
            content = record[body : body + size]
            values.append(content.decode() if kind & 1 else content)
            body += size
    if body > len(record):
        raise CorruptStateError("a record that is shorter than it says")
    return values


def _start(number: int) -> int:
    return _HEADER_BYTES if number == 1 else 0


def _varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    value = data[at]
    if value < 0x80:
        return value, at + 1
    value &= 0x7F
    for index in range(1, 8):
        byte = data[at + index]
        value = (value << 7) | (byte & 0x7F)
        if byte < 0x80:
            return value, at + index + 1
    value = (value << 8) | data[at + 8]
    return value - (1 << 64) if value >> 63 else value, at + 9
