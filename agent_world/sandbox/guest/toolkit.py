"""What the source of a tool, a solution or a verifier may import beside the standard library."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import math
import os
import sqlite3
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import pins
from logs import Log

_ID_SPACE, _ID_BASE = 9000, 1000


class Refused(Exception):
    """A business rule says no: `code` is snake_case, `message` tells the caller what to do."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code, self.message = str(code), str(message)


class World:
    """The state that a tool reads and writes: a database, documents, a clock, and ids.

    Everything a call did is kept when the tool returns and undone when it raises.
    """

    def __init__(self, db: sqlite3.Connection, documents: Documents, seed: int) -> None:
        self.db = db
        self._documents = documents
        # Neighbouring seeds must not give neighbouring ids.
        self._seed = int.from_bytes(hashlib.sha256(str(seed).encode()).digest()[:8], "big")
        self._minted: dict[str, int] = {}

    @contextlib.contextmanager
    def transaction(self, *, writes: bool = True) -> Iterator[None]:
        """Keep all that happens inside, or nothing when it raises; a change moves the clock on by a minute.

        Every call of a tool is one; a call made inside a call is one in the other.

        Raises:
            PermissionError: something was changed, and `writes` is off.
            sqlite3.OperationalError: what ran inside ended the transaction itself.
        """
        minted, changes, pending = dict(self._minted), self.db.total_changes, dict(self._documents.pending)
        schema = None if writes else self._schema()
        outermost, logged = not self.db.in_transaction, None
        self.db.execute("SAVEPOINT call")
        try:
            yield
            changed = self.db.total_changes != changes or self._documents.pending != pending
            if not writes and (changed or self._schema() != schema):
                raise PermissionError("the tool is declared read-only, but it changed the state")
            if outermost:
                logged = self._documents.log()
            self.db.execute("RELEASE call")
        except BaseException:
            if logged is not None:
                self._documents.cut(logged)
            self._minted, self._documents.pending = minted, pending
            self._undo()
            raise
        if outermost:
            self._documents.commit()
        if changed:
            pins.tick()

    def _schema(self) -> int:
        """A number that every change of the schema moves on; `total_changes` does not count those."""
        return self.db.execute("PRAGMA schema_version").fetchone()[0]

    def _undo(self) -> None:
        try:
            self.db.execute("ROLLBACK TO call")
            self.db.execute("RELEASE call")
        except sqlite3.OperationalError:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")

    def today(self) -> str:
        """The date of the virtual clock, ISO 8601."""
        return self.now()[:10]

    def now(self) -> str:
        """The virtual clock, ISO 8601 to the second; a call that changed something moves it on by a minute."""
        moment = datetime.datetime.fromtimestamp(pins.now(), datetime.UTC)
        return moment.replace(tzinfo=None).isoformat(timespec="seconds")

    def new_id(self, prefix: str) -> str:
        """An id that no earlier call of this session got, such as ``BK4821``; it follows from the session's seed."""
        count = self._minted.get(prefix, 0)
        self._minted[prefix] = count + 1
        step = 7 + 30 * ((self._seed // _ID_SPACE) % 290)  # coprime to the space: ids repeat only after all were given
        turn, place = divmod(count, _ID_SPACE)
        number = _ID_BASE + (self._seed + step * place) % _ID_SPACE
        return f"{prefix}{number}" if turn == 0 else f"{prefix}{turn}{number}"

    def documents(self) -> list[str]:
        """The paths of all documents, sorted."""
        return self._documents.paths()

    def read_document(self, path: str) -> str:
        """The text of a document.

        Raises:
            Refused: there is none of that path (`not_found`).
        """
        return self._documents.read(path)

    def write_document(self, path: str, text: str) -> None:
        """Write a new document, or another text in place of an old one.

        Raises:
            ValueError: the path is not a plain relative one, or one of the two holds what no file can.
        """
        self._documents.write(path, text)


class Documents:
    """The documents of `D` (a sealed descriptor and an index into it) under the writes of this session.

    The log has a line for each call that wrote some: ``[bytes, {path: text, ...}]``. It is written before the records
    are committed, its newline after that: whoever finds a line without one sees by the log of pages, which had so many
    bytes before, whether the commit came. So a call is kept whole or not at all, wherever its session is killed.
    """

    def __init__(self, descriptor: int, index: Mapping[str, Sequence[int]], log: Log, pages: Log) -> None:
        self._descriptor, self._index, self._log, self._pages = descriptor, index, log, pages
        self._written: dict[str, str] = {}
        self.pending: dict[str, str] = {}

    def paths(self) -> list[str]:
        """All paths, sorted."""
        return sorted({*self._index, *self._written, *self.pending})

    def read(self, path: str) -> str:
        """The text as the session left it."""
        for written in (self.pending, self._written):
            if path in written:
                return written[path]
        if path not in self._index:
            raise Refused("not_found", f"There is no document {path}.")
        offset, size = self._index[path]
        return os.pread(self._descriptor, size, offset).decode()

    def write(self, path: str, text: str) -> None:
        """Note a text; `commit` keeps it."""
        if not isinstance(path, str) or not isinstance(text, str):
            raise TypeError("a document has a path and a text, both strings")
        if not path or path.startswith("/") or any(part in ("", ".", "..") for part in path.split("/")):
            raise ValueError(f"{path!r} is not a plain relative path")
        for each in (path, text):
            each.encode()  # a lone surrogate is no text
        self.pending[path] = text

    def log(self) -> int | None:
        """Log the pending writes but for the newline; gives the log's length before, for `cut`; None without any."""
        if not self.pending:
            return None
        return self._log.append(json.dumps([self._pages.size(), self.pending]).encode() + b" ")

    def cut(self, size: int) -> None:
        """Take from the log what `log` put there."""
        self._log.cut(size)

    def commit(self) -> None:
        """Keep the pending writes."""
        if self.pending:
            self._log.end_line()
            self._written.update(self.pending)
            self.pending = {}


class Judged(Protocol):
    """The final state as a verifier gets it: `changes` is its difference from the initial one."""

    changes: dict[str, dict[str, list[Any]]]


def changes(_initial: object, final: Judged) -> dict[str, dict[str, list[Any]]]:
    """What the episode changed, as the supervisor found it (agent_world/environments/state.py, `normalised`).

    ``{table: {"added": [row], "removed": [row], "changed": [{"key", "before", "after"}]}}``; {} when nothing changed.
    Ids that the episode made are ``$1``, ``$2``, ...
    """
    return final.changes


def escape_like(text: str) -> str:
    r"""`text` with its wildcards escaped, for ``LIKE ? ESCAPE '\'``."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def paged(rows: Sequence[Any], page: int, page_size: int) -> dict[str, Any]:
    """One page of `rows` (mappings), pages counted from 1; a page past the end has no items."""
    start = (page - 1) * page_size
    return {
        "items": [dict(row) for row in rows[start : start + page_size]],
        "total": len(rows),
        "page": page,
        "pages": max(1, math.ceil(len(rows) / page_size)),
    }


def fold(text: Any) -> Any:
    """`text` without accents and case; anything that is no text, unchanged. SQL knows it as ``fold(x)``."""
    if not isinstance(text, str):
        return text
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(character for character in decomposed if not unicodedata.combining(character)).casefold()
