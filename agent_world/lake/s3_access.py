"""How a bucket is reached: endpoint, region and credentials as boto3 finds them, and the same for delta-rs.

boto3 reads the usual AWS variables and profile files. delta-rs reads some of the variables by itself, and others than
boto3 would: so it is told everything, and nothing of the environment is left for it to find.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

from agent_world.errors import BadInputError
from agent_world.lake.errors import StoreError, StoreFailedError, without_userinfo

T = TypeVar("T")

_MISSING = ("NoSuchKey", "404", "NotFound")
_COLOUR = re.compile("\x1b\\[[0-9;]*m")
_REPEATS = 5
_FAILED = "Generic S3 error"  # what delta-rs says of everything but a refusal
_SHORTEST = 8  # no store takes a shorter secret; to hide shorter names would only spoil sentences


class Access:
    """The way to one bucket, and to what the store says when it fails."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._secrets: set[str] = set()

    @cached_property
    def _session(self) -> Any:
        import boto3

        return boto3.Session(botocore_session=self._configured)

    @cached_property
    def _configured(self) -> Any:
        import botocore.session

        return botocore.session.get_session()

    @cached_property
    def client(self) -> Any:
        """The boto3 client. Addresses are path-style: other servers than AWS seldom have a name for each bucket.

        Raises:
            BadInputError: an endpoint that is no plain https:// or http:// address.
        """
        from botocore.config import Config

        config = Config(
            s3={"addressing_style": "path"},
            # Not "standard": its quota for a process runs dry in a long trouble, and nothing is repeated any more.
            retries={"total_max_attempts": _REPEATS, "mode": "legacy"},
            region_name=os.environ.get("AWS_REGION") or self._session.region_name or "us-east-1",
        )
        try:
            client = self._session.client("s3", config=config)
        except ValueError as error:
            raise _bad_endpoint(without_userinfo(str(error)), "it is no address") from None
        endpoint = client.meta.endpoint_url
        if "@" in urlsplit(endpoint).netloc:
            raise _bad_endpoint(without_userinfo(endpoint), "it names a user or a password")
        return client

    @property
    def options(self) -> dict[str, str]:
        """What delta-rs needs to reach the same place with the same rights, as they are now: they may expire."""
        with self.blame("find the keys for", "it"):
            endpoint, key = self.client.meta.endpoint_url, self._credentials()
        options = {
            "AWS_REGION": self.client.meta.region_name,
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ALLOW_HTTP": str(endpoint.startswith("http://")).lower(),
            "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false",
            "aws_conditional_put": "etag",
        }
        if key is not None:
            options |= {"AWS_ACCESS_KEY_ID": key.access_key, "AWS_SECRET_ACCESS_KEY": key.secret_key}
            if key.token or "AWS_SESSION_TOKEN" in os.environ:
                options["AWS_SESSION_TOKEN"] = key.token or ""  # else it takes a token that belongs to another key
        authorities = self._configured.get_config_variable("ca_bundle")
        if authorities and endpoint.startswith("https://"):
            options["certificate_path"] = authorities
        return options

    def hide(self, text: str) -> str:
        """`text` on one line, without anything that lets somebody in."""
        from botocore.exceptions import BotoCoreError

        with suppress(BotoCoreError):  # what is wrong may be the credentials themselves
            self._credentials()
        text = without_userinfo(_COLOUR.sub("", text))
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, "***").replace(quote(secret, safe=""), "***")
        return " ".join(text.split())

    def ask(self, action: str, key: str, operation: str, **arguments: Any) -> Any:
        """What the store answers to one request of boto3, which asks again by itself when there is no answer.

        Here it is asked again when an answer breaks off; so is the object of ``get_object``, as ``Body``.

        Raises:
            FileNotFoundError, StoreError, StoreFailedError: as in `blame`.
        """
        from botocore.exceptions import IncompleteReadError, ReadTimeoutError, ResponseStreamingError
        from urllib3.exceptions import HTTPError

        with self.blame(action, key):
            for attempt in range(_REPEATS):
                try:
                    answer = getattr(self.client, operation)(**arguments)
                    if operation == "get_object":
                        answer["Body"] = answer["Body"].read()
                    return answer
                except (IncompleteReadError, ReadTimeoutError, ResponseStreamingError, HTTPError):
                    if attempt + 1 == _REPEATS:
                        raise

    @contextmanager
    def blame(self, action: str, key: str) -> Iterator[None]:
        """A missing object is a missing file; everything else that boto3 raises is one clear sentence.

        Raises:
            FileNotFoundError: there is no such object. StoreError: the store refused. StoreFailedError: it failed.
        """
        from boto3.exceptions import S3UploadFailedError
        from botocore import exceptions
        from botocore.parsers import ResponseParserError
        from urllib3.exceptions import HTTPError

        passing = (
            exceptions.ConnectionError, exceptions.HTTPClientError, exceptions.IncompleteReadError, HTTPError,
            ResponseParserError, S3UploadFailedError,
        )  # fmt: skip
        try:
            yield
        except exceptions.ClientError as error:
            code = error.response["Error"]["Code"]
            if code in _MISSING:
                raise FileNotFoundError(f"{self._uri}/{key}") from None
            status = error.response["ResponseMetadata"].get("HTTPStatusCode", 0)
            kind = StoreFailedError if status >= 500 or status in (409, 429) else StoreError
            why = self.hide(f"{code}: {error.response['Error'].get('Message')}")
            raise kind(self._uri, f"{action} {key}", why, code) from None
        except (exceptions.BotoCoreError, *passing) as error:
            lasting = isinstance(error, exceptions.SSLError) or not isinstance(error, passing)
            kind = StoreError if lasting else StoreFailedError
            raise kind(self._uri, f"{action} {key}", self.hide(str(error))) from None

    @contextmanager
    def discreet(self) -> Iterator[None]:
        """Let what delta-rs raises pass, but not with what the store may have repeated of the credentials.

        Raises:
            StoreFailedError: the store failed.
        """
        from deltalake.exceptions import CommitFailedError, DeltaError

        try:
            yield
        except (DeltaError, OSError) as error:
            plain = self.hide(str(error))
            if _FAILED in plain and not isinstance(error, CommitFailedError):
                raise StoreFailedError(self._uri, "use a table", plain) from None
            raise type(error)(plain) from None

    def patient(self, work: Callable[[], T]) -> T:
        """What delta-rs does. It asks again when there is no answer, but seldom when one breaks off.

        Raises:
            StoreFailedError: the store failed each time.
        """
        for left in reversed(range(_REPEATS)):
            try:
                with self.discreet():
                    return work()
            except StoreFailedError:
                if not left:
                    raise
                time.sleep(random.uniform(0, 0.8 / 2**left))
        raise AssertionError

    def _credentials(self) -> Any:
        found = self._session.get_credentials()
        key = None if found is None else found.get_frozen_credentials()
        if key is not None:
            self._secrets |= {part for part in key if part and len(part) >= _SHORTEST}
        return key


def _bad_endpoint(what: str, why: str) -> BadInputError:
    cure = "give https://host (or http://host:port where there is no TLS) in AWS_ENDPOINT_URL or the profile"
    return BadInputError(f"S3 endpoint ({what})", why, f"{cure}; keys go into AWS variables or a profile")
