"""What can go wrong with a lake, each with one clear sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from errno import EDQUOT, ENOSPC, EROFS

from agent_world.errors import AgentWorldError


class LakeError(AgentWorldError):
    """Anything that is wrong with a lake or with what is asked of it."""


class NotALakeError(LakeError):
    """`uri` holds no lake: `why` says what is there instead."""

    def __init__(self, uri: str, why: str) -> None:
        super().__init__(uri, why)
        self.uri, self.why = uri, why

    def __str__(self) -> str:
        return f"{self.uri} is not a lake: {self.why}; name a lake, or an empty place where one may be made"


class LakeFromNewerVersionError(LakeError):
    """The lake was written with a newer version of `what` than this code reads; `needs` is a release that reads it."""

    def __init__(self, uri: str, found: int, known: int, what: str = "lake format", needs: str | None = None) -> None:
        super().__init__(uri, found, known, what, needs)
        self.uri, self.found, self.known, self.what, self.needs = uri, found, known, what, needs

    def __str__(self) -> str:
        cure = f"upgrade agent-world to {self.needs} or newer" if self.needs else "upgrade agent-world"
        return f"{self.uri} has {self.what} {self.found}, this version reads up to {self.known}; {cure}"


class DiskFullError(LakeError):
    """No space was left while `what` was written; nothing of it became visible."""

    def __init__(self, uri: str, what: str) -> None:
        super().__init__(uri, what)
        self.uri, self.what = uri, what

    def __str__(self) -> str:
        return f"no space left on {self.uri} while writing {self.what}; nothing of it is visible, free space and resume"


class ReadOnlyError(LakeError):
    """The file system that the lake lies on takes no writes."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self.uri = uri

    def __str__(self) -> str:
        return f"{self.uri} cannot be written: the file system is read-only; mount it for writing"


class NotFoundError(LakeError):
    """Nothing of this `kind` is called `ref`; `near` are names that look alike."""

    def __init__(self, kind: str, ref: str, near: Sequence[str] = (), why: str = "") -> None:
        super().__init__(kind, ref, tuple(near), why)
        self.kind, self.ref, self.near, self.why = kind, ref, tuple(near), why

    def __str__(self) -> str:
        reason = self.why or f"there is no {self.kind} {self.ref!r}"
        lists = "snapshot list" if self.kind == "snapshot" else "status"
        return f"{reason}; " + (f"did you mean {', '.join(self.near)}?" if self.near else f"see `agent-world {lists}`")


class BadRowError(LakeError):
    """A value that does not fit its column."""

    def __init__(self, table: str, column: str, why: str) -> None:
        super().__init__(table, column, why)
        self.table, self.column, self.why = table, column, why

    def __str__(self) -> str:
        return f"{self.table}.{self.column}: {self.why}; see lake_schemas/{self.table}.py"


class DamagedError(LakeError):
    """Stored bytes are missing or are not what their hash says."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(what, why)
        self.what, self.why = what, why

    def __str__(self) -> str:
        cure = "`agent-world lake repair` says what can still be read and what can be made anew"
        return f"{self.what} is damaged: {self.why}; {cure}"


class CommitError(LakeError):
    """A batch could not be committed after all attempts; nothing of it is visible."""

    def __init__(self, batch: str, attempts: int, why: str) -> None:
        super().__init__(batch, attempts, why)
        self.batch, self.attempts, self.why = batch, attempts, why

    def __str__(self) -> str:
        return f"batch {self.batch} was not committed after {self.attempts} attempts: {self.why}; run again to resume"


class DivergedError(LakeError):
    """The same batch was committed before with other content; `artifacts` differ."""

    def __init__(self, batch: str, artifacts: Sequence[str]) -> None:
        super().__init__(batch, tuple(artifacts))
        self.batch, self.artifacts = batch, tuple(artifacts)

    def __str__(self) -> str:
        return (
            f"batch {self.batch} was committed before with other content for {', '.join(self.artifacts[:3])}:"
            " what made it is not deterministic; see the 'diverged' events, then run again to go on from what is there"
        )


class ConflictError(LakeError):
    """A snapshot brings a batch that the lake at `uri` has already, with other content."""

    def __init__(self, uri: str, batch: str) -> None:
        super().__init__(uri, batch)
        self.uri, self.batch = uri, batch

    def __str__(self) -> str:
        return f"{self.uri} has batch {self.batch[:12]} already, with other content; import into an empty lake"


class LakeBusyError(LakeError):
    """Somebody else holds what is needed exclusively."""

    def __init__(self, uri: str, what: str) -> None:
        super().__init__(uri, what)
        self.uri, self.what = uri, what

    def __str__(self) -> str:
        return f"{self.uri}: {self.what}; wait for it and try again"


class StoreError(LakeError):
    """The store refused `action` on the lake at `uri`; `code` is its own word for it, if it answered."""

    def __init__(self, uri: str, action: str, why: str, code: str = "") -> None:
        super().__init__(uri, action, why, code)
        self.uri, self.action, self.why, self.code = uri, action, why, code

    def __str__(self) -> str:
        return f"{self.uri}: could not {self.action} ({self.why}); check AWS_ENDPOINT_URL, the keys and the bucket"


class StoreFailedError(StoreError):
    """The store did not answer, or said that it cannot now: the same may go well the next time."""


class UnsafeStoreError(LakeError):
    """The store lets two writers at once both believe that they won: `why` says how it showed."""

    def __init__(self, uri: str, why: str) -> None:
        super().__init__(uri, why)
        self.uri, self.why = uri, why

    def __str__(self) -> str:
        return (
            f"{self.uri} cannot hold a lake: {self.why}, so commits of one writer would overwrite another's;"
            " use a store with conditional writes (AWS S3, SeaweedFS from 4.48 on)"
        )


class QueryError(LakeError):
    """SQL that the engine refused."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        why = self.why.splitlines()[0] if self.why else "no reason given"
        return f"the query was refused: {why}; SHOW TABLES lists the tables, DESCRIBE a table its columns"


def near(ref: str, names: Sequence[str]) -> list[str]:
    """Up to three names that look like `ref`, best first."""
    contained = sorted((name for name in set(names) if ref and ref.lower() in name.lower()), key=lambda n: (len(n), n))
    return list(dict.fromkeys([*contained, *get_close_matches(ref, sorted(set(names)), n=3, cutoff=0.5)]))[:3]


def without_userinfo(uri: str) -> str:
    """`uri`, or a text that holds some, without the names and passwords in front of a host."""
    return re.sub(r"://[^/?#\s]*@", "://***@", uri)


def is_disk_full(error: BaseException) -> bool:
    """Whether the cause is a full disk; delta-rs and Arrow tell it in their text only."""
    if isinstance(error, OSError) and error.errno in (ENOSPC, EDQUOT):
        return True
    text = str(error)
    return any(sign in text for sign in ("No space left on device", "Disk quota exceeded", "os error 28"))


@contextmanager
def blame_full_disk(uri: str, what: str) -> Iterator[None]:
    """Turn any engine's way of saying that the disk is full into one `DiskFullError`; a read-only one is told, too."""
    try:
        yield
    except DiskFullError:
        raise
    except Exception as error:
        if is_disk_full(error):
            raise DiskFullError(uri, what) from error
        if isinstance(error, OSError) and error.errno == EROFS:
            raise ReadOnlyError(uri) from error
        raise
