"""A lake in an S3 bucket: any store with conditional PUT."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from agent_world.lake import s3_leases
from agent_world.lake.errors import NotALakeError, StoreError, UnsafeStoreError
from agent_world.lake.pieces import PieceReader
from agent_world.lake.s3_access import Access
from agent_world.lake.s3_leases import Seen
from agent_world.lake.storage import Stored

T = TypeVar("T")

_REFUSED = ("PreconditionFailed", "412")
_CONFLICT = ("ConditionalRequestConflict", "409")
_FORBIDDEN = ("AccessDenied", "403")
_ATTEMPTS = 5
_OTHER_TAG = '"00000000000000000000000000000000"'
_safe: set[tuple[str, str]] = set()
"""Endpoints and buckets that were seen to keep conditional writes apart, by this process."""


class Bucket:
    """A lake below ``s3://bucket/prefix``. A PUT is atomic and durable when it returns."""

    def __init__(self, uri: str) -> None:
        self.bucket, _, prefix = uri.removeprefix("s3://").partition("/")
        if not self.bucket:
            raise NotALakeError(uri, "it names no bucket")
        self._prefix = prefix.strip("/")
        self.uri = f"s3://{self.bucket}/{self._prefix}".rstrip("/")
        self._access = Access(self.uri)

    @property
    def options(self) -> dict[str, str]:
        """What delta-rs needs to reach the same place with the same rights."""
        return self._access.options

    def table_uri(self, key: str) -> str:
        """The address of the Delta table at `key`."""
        return f"{self.uri}/{key}"

    def check(self) -> None:
        """See that of two writers at once only one can win here; asked once of a bucket in a process.

        Whoever may not write is not asked: he cannot lose anything either.

        Raises:
            UnsafeStoreError: the store ignores conditions.
        """
        with self._access.blame("reach", "it"):
            place = (self._access.client.meta.endpoint_url, self.bucket)
        if place in _safe:
            return
        probe = f".{secrets.token_hex(8)}.aside"
        try:
            self._put(probe, b"1", {"IfNoneMatch": "*"})
            ignored = [
                f"it ignores {name} when it writes"
                for name, condition in (("If-None-Match", {"IfNoneMatch": "*"}), ("If-Match", {"IfMatch": _OTHER_TAG}))
                if self._put(probe, b"2", condition) is not None
            ]
            self.delete(probe)
        except StoreError as error:
            if error.code in _FORBIDDEN:
                return
            if error.code == "NotImplemented":
                raise UnsafeStoreError(self.uri, f"it knows no conditional writes ({error.why})") from None
            raise
        if ignored:
            raise UnsafeStoreError(self.uri, " and ".join(ignored))
        _safe.add(place)

    def read(self, key: str) -> bytes:
        """All bytes of an object."""
        return self._get(key)["Body"]

    def read_range(self, key: str, offset: int, length: int) -> bytes:
        """`length` bytes from `offset`."""
        return self._get(key, Range=f"bytes={offset}-{offset + length - 1}")["Body"] if length else b""

    def write(self, key: str, data: bytes) -> None:
        """Write or replace an object."""
        self._access.ask("write", key, "put_object", Bucket=self.bucket, Key=self._key(key), Body=data)

    def write_from(self, key: str, parts: Iterable[bytes]) -> None:
        """Write or replace an object piece by piece, which the store joins at the end."""
        with self._access.blame("write", key):
            self._access.client.upload_fileobj(PieceReader(parts), self.bucket, self._key(key))

    def write_new(self, key: str, data: bytes) -> bool:
        """Write an object unless there is one."""
        return self.put(key, data) is not None

    def exists(self, key: str) -> bool:
        """Whether there is an object at `key`."""
        return self._head(key) is not None

    def list(self, prefix: str = "") -> Iterator[Stored]:
        """Every object below the folder `prefix`, in key order."""
        start = self._key(prefix).rstrip("/")
        which = {"Bucket": self.bucket, "Prefix": f"{start}/" if start else ""}
        page: dict[str, Any] = {"NextContinuationToken": ""}
        while "NextContinuationToken" in page:
            after = page["NextContinuationToken"]
            onwards = {"ContinuationToken": after} if after else {}
            page = self._access.ask("list", prefix, "list_objects_v2", **which, **onwards)
            for item in page.get("Contents", ()):
                key = item["Key"][len(self._prefix) + 1 :] if self._prefix else item["Key"]
                yield Stored(key, item["Size"], item["LastModified"].astimezone(UTC))

    def delete(self, key: str) -> None:
        """Remove an object."""
        self._access.ask("delete", key, "delete_object", Bucket=self.bucket, Key=self._key(key))

    def sync(self, *keys: str) -> None:
        """Nothing to do: what a PUT acknowledged is durable."""

    def shared(self, name: str) -> AbstractContextManager[bool]:
        """Hold `name` together with others."""
        return s3_leases.shared(self, name)

    def exclusive(self, name: str) -> AbstractContextManager[bool]:
        """Hold `name` alone."""
        return s3_leases.exclusive(self, name)

    def discreet(self) -> AbstractContextManager[None]:
        """Keep credentials out of what delta-rs raises."""
        return self._access.discreet()

    def patient(self, work: Callable[[], T]) -> T:
        """What an engine does; done again when the store failed."""
        return self._access.patient(work)

    def see(self, key: str) -> Seen | None:
        """The object, its tag and its age by the store's clock; None when there is none."""
        try:
            found = self._get(key)
        except FileNotFoundError:
            return None
        now = found["ResponseMetadata"]["HTTPHeaders"].get("date")
        age = parsedate_to_datetime(now) - found["LastModified"] if now else timedelta(0)
        return Seen(found["Body"], found["ETag"], age)

    def put(self, key: str, data: bytes, *, over: str = "") -> str | None:
        """Write a new object, or over the one with the tag `over`; its tag, None when another one was there."""
        return self._put(key, data, {"IfMatch": over} if over else {"IfNoneMatch": "*"})

    def _put(self, key: str, data: bytes, condition: Mapping[str, str]) -> str | None:
        """A conditional write. Every one carries a mark of its own.

        When a reply is lost, boto3 asks again and is refused because of what it wrote itself: the mark tells.
        """
        from botocore.exceptions import ClientError

        mark = {"writer": secrets.token_hex(8)}
        with self._access.blame("write", key):
            for attempt in range(_ATTEMPTS):
                try:
                    where = {"Bucket": self.bucket, "Key": self._key(key)}
                    return self._access.client.put_object(**where, Body=data, Metadata=mark, **condition)["ETag"]
                except ClientError as error:
                    code = error.response["Error"]["Code"]
                    if code in _CONFLICT and attempt + 1 < _ATTEMPTS:
                        time.sleep(random.uniform(0, 0.05 * 2**attempt))  # a race is being decided: ask again
                    elif code in _REFUSED or (code in ("NoSuchKey", "404") and "IfMatch" in condition):
                        break
                    else:
                        raise
        head = self._head(key)
        return head["ETag"] if head is not None and head["Metadata"] == mark else None

    def _get(self, key: str, **part: str) -> dict[str, Any]:
        return self._access.ask("read", key, "get_object", Bucket=self.bucket, Key=self._key(key), **part)

    def _head(self, key: str) -> dict[str, Any] | None:
        try:
            return self._access.ask("look for", key, "head_object", Bucket=self.bucket, Key=self._key(key))
        except FileNotFoundError:
            return None

    def _key(self, key: str) -> str:
        return f"{self._prefix}/{key}".strip("/")
