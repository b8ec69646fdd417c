"""A lake in an S3 bucket: any store with conditional PUT. Endpoint and keys come from the usual AWS variables."""

from __future__ import annotations

import itertools
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from agent_world.lake.errors import LakeError, NotALakeError
from agent_world.lake.storage import Stored

_STALE = timedelta(days=1)
"""A lock of another host that is older than this belongs to nobody."""

_REFUSED = ("PreconditionFailed", "412")
_CONFLICT = ("ConditionalRequestConflict", "409")
_MISSING = ("NoSuchKey", "404", "NotFound")
_ATTEMPTS = 5
_sequence = itertools.count()


class S3Error(LakeError):
    """The store refused or failed: `action` on `uri`."""

    def __init__(self, uri: str, action: str, why: str) -> None:
        super().__init__(uri, action, why)
        self.uri, self.action, self.why = uri, action, why

    def __str__(self) -> str:
        return f"{self.uri}: could not {self.action} ({self.why}); check AWS_ENDPOINT_URL, the keys and the bucket"


class Bucket:
    """A lake below ``s3://bucket/prefix``. A PUT is atomic and durable when it returns."""

    def __init__(self, uri: str) -> None:
        self.bucket, _, prefix = uri.removeprefix("s3://").partition("/")
        if not self.bucket:
            raise NotALakeError(uri, "it names no bucket")
        self._prefix = prefix.strip("/")
        self.uri = f"s3://{self.bucket}/{self._prefix}".rstrip("/")

    @cached_property
    def options(self) -> dict[str, str]:
        """What delta-rs needs to reach the same place with the same rights."""
        meta = self._client.meta
        credentials = self._session.get_credentials()
        options = {
            "AWS_REGION": meta.region_name or "us-east-1",
            "AWS_ENDPOINT_URL": meta.endpoint_url,
            "AWS_ALLOW_HTTP": str(meta.endpoint_url.startswith("http://")).lower(),
            "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false",
            "aws_conditional_put": "etag",
        }
        if credentials is not None:
            frozen = credentials.get_frozen_credentials()
            options |= {"AWS_ACCESS_KEY_ID": frozen.access_key, "AWS_SECRET_ACCESS_KEY": frozen.secret_key}
            if frozen.token:
                options["AWS_SESSION_TOKEN"] = frozen.token
        return options

    @cached_property
    def _session(self) -> Any:
        import boto3

        return boto3.Session()

    @cached_property
    def _client(self) -> Any:
        from botocore.config import Config

        style = {"addressing_style": "path"}
        config = Config(s3=style, retries={"max_attempts": 5, "mode": "standard"}, region_name=self._region())
        return self._session.client("s3", config=config)

    def _region(self) -> str:
        return self._session.region_name or "us-east-1"

    def table_uri(self, key: str) -> str:
        """The address of the Delta table at `key`."""
        return f"{self.uri}/{key}"

    def read(self, key: str) -> bytes:
        """All bytes of an object."""
        with self._blame("read", key):
            return self._client.get_object(Bucket=self.bucket, Key=self._key(key))["Body"].read()

    def read_range(self, key: str, offset: int, length: int) -> bytes:
        """`length` bytes from `offset`."""
        if length == 0:
            return b""
        place = f"bytes={offset}-{offset + length - 1}"
        with self._blame("read", key):
            return self._client.get_object(Bucket=self.bucket, Key=self._key(key), Range=place)["Body"].read()

    def write(self, key: str, data: bytes) -> None:
        """Write or replace an object."""
        with self._blame("write", key):
            self._client.put_object(Bucket=self.bucket, Key=self._key(key), Body=data)

    def write_new(self, key: str, data: bytes) -> bool:
        """Write an object unless there is one."""
        return self._put_if(key, data, IfNoneMatch="*")

    def exists(self, key: str) -> bool:
        """Whether there is an object at `key`."""
        try:
            with self._blame("look for", key):
                self._client.head_object(Bucket=self.bucket, Key=self._key(key))
        except FileNotFoundError:
            return False
        return True

    def list(self, prefix: str = "") -> Iterator[Stored]:
        """Every object below the folder `prefix`, in key order."""
        start = self._key(prefix).rstrip("/")
        with self._blame("list", prefix):
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self.bucket, Prefix=f"{start}/" if start else ""
            )
            for page in pages:
                for item in page.get("Contents", ()):
                    key = item["Key"][len(self._prefix) + 1 :] if self._prefix else item["Key"]
                    yield Stored(key, item["Size"], item["LastModified"].astimezone(UTC))

    def delete(self, key: str) -> None:
        """Remove an object."""
        with self._blame("delete", key):
            self._client.delete_object(Bucket=self.bucket, Key=self._key(key))

    def sync(self, *keys: str) -> None:
        """Nothing to do: what a PUT acknowledged is durable."""

    @contextmanager
    def shared(self, name: str) -> Iterator[bool]:
        """Hold `name` together with others."""
        mine = f"locks/{name}/shared/{socket.gethostname()}-{os.getpid()}-{next(_sequence)}"
        self.write(mine, _holder())
        try:
            # First our mark, then the look at the other side; `exclusive` does it the other way round: one of us sees.
            yield not self._alive(f"locks/{name}/exclusive")
        finally:
            self.delete(mine)

    @contextmanager
    def exclusive(self, name: str) -> Iterator[bool]:
        """Hold `name` alone."""
        mine = f"locks/{name}/exclusive"
        if not (self.write_new(mine, _holder()) or self._take_over(mine)):
            yield False
            return
        try:
            yield not any(self._alive(item.key) for item in self.list(f"locks/{name}/shared"))
        finally:
            self.delete(mine)

    def _alive(self, lock: str) -> bool:
        """Whether somebody who may still live holds the lock."""
        try:
            with self._blame("read", lock):
                found = self._client.get_object(Bucket=self.bucket, Key=self._key(lock))
                holder = json.loads(found["Body"].read())
        except FileNotFoundError:
            return False
        if holder["host"] == socket.gethostname():
            return _runs(holder["pid"], holder["started"])
        return datetime.now(UTC) - found["LastModified"] < _STALE

    def _take_over(self, lock: str) -> bool:
        """Take a lock whose holder is dead, unless another one does so first."""
        try:
            with self._blame("look for", lock):
                tag = self._client.head_object(Bucket=self.bucket, Key=self._key(lock))["ETag"]
        except FileNotFoundError:
            return self.write_new(lock, _holder())
        return not self._alive(lock) and self._put_if(lock, _holder(), IfMatch=tag)

    def _put_if(self, key: str, data: bytes, **condition: str) -> bool:
        from botocore.exceptions import ClientError

        for attempt in range(_ATTEMPTS):
            try:
                with self._blame("write", key):
                    try:
                        self._client.put_object(Bucket=self.bucket, Key=self._key(key), Body=data, **condition)
                    except ClientError as error:
                        if error.response["Error"]["Code"] in _REFUSED:
                            return False
                        if error.response["Error"]["Code"] in _CONFLICT and attempt + 1 < _ATTEMPTS:
                            continue  # a race is being decided: ask again
                        raise
                    return True
            except FileNotFoundError:
                return False  # the object that IfMatch asks for is gone
        return False

    def _key(self, key: str) -> str:
        return f"{self._prefix}/{key}".strip("/")

    @contextmanager
    def _blame(self, action: str, key: str) -> Iterator[None]:
        """A missing object is a missing file; everything else is one clear sentence."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code in _MISSING:
                raise FileNotFoundError(f"{self.uri}/{key}") from error
            raise S3Error(self.uri, f"{action} {key}", f"{code}: {error.response['Error'].get('Message')}") from error
        except BotoCoreError as error:
            raise S3Error(self.uri, f"{action} {key}", str(error)) from error


def _holder() -> bytes:
    return json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "started": _started(os.getpid())}).encode()


def _started(pid: int) -> float:
    import psutil

    return round(psutil.Process(pid).create_time(), 1)


def _runs(pid: int, started: float) -> bool:
    import psutil

    try:
        return _started(pid) == started and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
