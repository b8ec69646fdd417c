"""What can go wrong with a lake, each with one clear sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from errno import EDQUOT, ENOSPC

from agent_world.errors import AgentWorldError


class LakeError(AgentWorldError):
    """Anything that is wrong with a lake or with what is asked of it."""


class NotALakeError(LakeError):
    """`uri` holds no lake: `why` says what is there instead."""

    def __init__(self, uri: str, why: str) -> None:
        super().__init__(uri, why)
        self.uri, self.why = uri, why

    def __str__(self) -> str:
        return f"{self.uri} is not a lake: {self.why}; name an empty place or an existing lake with --lake"


class LakeFromNewerVersionError(LakeError):
    """The lake was written in a newer `format` than this code reads."""

    def __init__(self, uri: str, found: int, known: int) -> None:
        super().__init__(uri, found, known)
        self.uri, self.found, self.known = uri, found, known

    def __str__(self) -> str:
        return f"{self.uri} has lake format {self.found}, this version reads up to {self.known}; upgrade agent-world"


class DiskFullError(LakeError):
    """No space was left while `what` was written; nothing of it became visible."""

    def __init__(self, uri: str, what: str) -> None:
        super().__init__(uri, what)
        self.uri, self.what = uri, what

    def __str__(self) -> str:
        return f"no space left on {self.uri} while writing {self.what}; nothing of it is visible, free space and resume"


class NotFoundError(LakeError):
    """Nothing of this `kind` is called `ref`; `near` are names that look alike."""

    def __init__(self, kind: str, ref: str, near: Sequence[str] = (), why: str = "") -> None:
        super().__init__(kind, ref, tuple(near), why)
        self.kind, self.ref, self.near, self.why = kind, ref, tuple(near), why

    def __str__(self) -> str:
        reason = self.why or f"there is no {self.kind} {self.ref!r}"
        return f"{reason}; did you mean {', '.join(self.near)}?" if self.near else f"{reason}; see `agent-world status`"


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
        return f"{self.what} is damaged: {self.why}; restore it from an export (`agent-world snapshot import`)"


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


def is_disk_full(error: BaseException) -> bool:
    """Whether the cause is a full disk; delta-rs and Arrow tell it in their text only."""
    if isinstance(error, OSError) and error.errno in (ENOSPC, EDQUOT):
        return True
    text = str(error)
    return any(sign in text for sign in ("No space left on device", "Disk quota exceeded", "os error 28"))


@contextmanager
def blame_full_disk(uri: str, what: str) -> Iterator[None]:
    """Turn any engine's way of saying that the disk is full into one `DiskFullError`."""
    try:
        yield
    except DiskFullError:
        raise
    except Exception as error:
        if is_disk_full(error):
            raise DiskFullError(uri, what) from error
        raise
