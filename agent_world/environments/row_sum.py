"""A digest of the rows of a table that can follow changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import shake_256

from agent_world.environments.database import Row
from agent_world.identity import sha256

_BYTES = 256
_MODULUS = 1 << (8 * _BYTES)


@dataclass(frozen=True, slots=True)
class RowSum:
    """The digest of a multiset of typed rows: how many, and the sum of their hashes modulo 2^2048.

    Rows count in any order; adding a row and taking it away again leaves no trace. A sum modulo 2^256 could be forged
    (generalised birthday); 2048 bits put that out of reach.
    """

    count: int = 0
    total: int = 0

    def changed(self, removed: Iterable[Row], added: Iterable[Row]) -> RowSum:
        """The digest after these rows are gone and those have come."""
        gone, come = [_hash(row) for row in removed], [_hash(row) for row in added]
        return RowSum(self.count - len(gone) + len(come), (self.total - sum(gone) + sum(come)) % _MODULUS)

    def as_json(self) -> list[int | str]:
        """The count, and the sha256 of the sum."""
        return [self.count, sha256(self.total.to_bytes(_BYTES, "big"))]


def _hash(row: Row) -> int:
    parts = []
    for value in row:
        if value is None:
            parts.append("n")
        elif isinstance(value, str):
            parts.append(f"s{len(value)}:{value}")
        elif isinstance(value, bytes):
            parts.append(f"b{value.hex()}")
        elif isinstance(value, int):
            parts.append(f"i{value}")
        else:
            parts.append(f"f{value!r}")
    return int.from_bytes(shake_256("|".join(parts).encode()).digest(_BYTES), "big")
