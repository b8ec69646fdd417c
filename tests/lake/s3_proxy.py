"""A store that misbehaves: a real HTTP proxy on loopback in front of an S3 server, which fails as it is told.

``reset`` closes the connection before the server has seen the request, ``lose`` after it has acted, ``cut`` in the
middle of its answer; ``refuse`` answers 503 without asking it, ``fail`` 500 after it has acted; ``slow`` waits first.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from email.utils import format_datetime, parsedate_to_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.lake.s3_server import KEY, SECRET

Fault = Literal["", "reset", "lose", "cut", "refuse", "fail", "slow", "denied"]
ALL: dict[Fault, float] = {"reset": 0.02, "lose": 0.03, "cut": 0.02, "refuse": 0.03, "fail": 0.03, "slow": 0.03}
"""How often which fault strikes a request in a storm."""

_HOP = {"connection", "expect", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade"}
_SLOW_S = 0.2


class Request(NamedTuple):
    method: str
    path: str


class Proxy(NamedTuple):
    endpoint: str
    struck: Counter[tuple[str, str]]
    """How often which fault has struck which method."""
    tokens: set[tuple[str, str]]
    """Which client has sent which session token."""


def storm(seed: int, rates: Mapping[Fault, float] = ALL) -> Callable[[Request], Fault]:
    """Faults at random, the same sequence for the same seed."""
    source, turn = Random(seed), threading.Lock()
    names = [*rates, ""]
    weights = [*rates.values(), 1 - sum(rates.values())]

    def choose(request: Request) -> Fault:
        with turn:
            return source.choices(names, weights)[0]

    return choose


def every(fault: Fault, method: str, part: str, times: int) -> Callable[[Request], Fault]:
    """The first `times` requests with this method and this text in their path."""
    left, turn = [times], threading.Lock()

    def choose(request: Request) -> Fault:
        with turn:
            if request.method != method or part not in request.path or not left[0]:
                return ""
            left[0] -= 1
            return fault

    return choose


@contextmanager
def proxy(
    upstream: str,
    faults: Callable[[Request], Fault] = lambda request: "",
    *,
    strip: tuple[str, ...] = (),
    clock: timedelta = timedelta(0),
    answered_later: timedelta = timedelta(0),
    tls: ssl.SSLContext | None = None,
) -> Iterator[Proxy]:
    """A proxy in front of the server at `upstream`.

    With `tls` it speaks https. It knows nothing of the headers `strip`; `clock` is how far the server's clock is
    ahead, and `answered_later` how much later than it was it says to have answered.
    """
    struck: Counter[tuple[str, str]] = Counter()
    tokens: set[tuple[str, str]] = set()

    class Handler(_Handler):
        pass

    Handler.upstream, Handler.faults = urlsplit(upstream).netloc, staticmethod(faults)
    Handler.struck, Handler.tokens = struck, tokens
    Handler.strip = strip
    Handler.shifts = {"last-modified": clock, "date": clock + answered_later}
    server = _Server(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield Proxy(f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}", struck, tokens)
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that was killed, or that hung up: nothing to tell."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    upstream: str
    faults: Callable[[Request], Fault]
    struck: Counter[tuple[str, str]]
    tokens: set[tuple[str, str]]
    strip: tuple[str, ...]
    shifts: Mapping[str, timedelta]

    def _serve(self) -> None:
        body = self._body()
        client = self.headers.get("User-Agent", "").partition("/")[0]
        self.tokens.add((client, self.headers.get("X-Amz-Security-Token", "")))
        fault = self.faults(Request(self.command, self.path))
        if fault:
            self.struck[fault, self.command] += 1
        if fault == "reset":
            return self._hang_up()
        if fault == "refuse":
            return self._answer(503, _error("SlowDown", "Please reduce your request rate."))
        if fault == "denied":  # as AWS does it, which repeats the key
            key = self.headers["Authorization"].split("Credential=")[1].split("/")[0]
            return self._answer(
                403, _error("InvalidAccessKeyId", "No such key.", f"<AWSAccessKeyId>{key}</AWSAccessKeyId>")
            )
        if fault == "slow":
            time.sleep(_SLOW_S)
        status, headers, answer = self._ask(body)
        if fault == "lose":
            return self._hang_up()
        if fault == "fail":
            return self._answer(500, _error("InternalError", "We encountered an internal error."))
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() in self.shifts:
                value = format_datetime(parsedate_to_datetime(value) + self.shifts[name.lower()], usegmt=True)
            self.send_header(name, value)
        if self.command != "HEAD" and status not in (204, 304):
            self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        if fault == "cut" and answer:
            self.wfile.write(answer[: len(answer) // 2])
            return self._hang_up()
        self.wfile.write(answer)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _serve

    def _ask(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        server = http.client.HTTPConnection(self.upstream, timeout=60)
        try:
            server.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self._headers(body).items():
                server.putheader(name, value)
            server.endheaders(body or None)
            answer = server.getresponse()
            data = answer.read()
            kept = "HEAD" if self.command == "HEAD" else "content-length"
            headers = [(n, v) for n, v in answer.getheaders() if n.lower() not in _HOP and n.lower() != kept]
            return answer.status, headers, data
        finally:
            server.close()

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        pieces = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        self.headers["Content-Length"] = str(sum(map(len, pieces)))
        return b"".join(pieces)

    def _headers(self, body: bytes) -> Mapping[str, str]:
        kept = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
        without = {name: value for name, value in kept.items() if name not in self.strip and name != "Authorization"}
        if len(without) + 1 >= len(kept):
            return kept
        request = AWSRequest(self.command, f"http://{kept['Host']}{self.path}", without, body)
        S3SigV4Auth(Credentials(KEY, SECRET), "s3", "us-east-1").add_auth(request)  # what is missing was signed, too
        return dict(request.headers.items())

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response_only(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, no end
        self.connection.close()

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing to tell."""


def _error(code: str, message: str, more: str = "") -> bytes:
    said = f"<Error><Code>{code}</Code><Message>{message}</Message>{more}</Error>"
    return f'<?xml version="1.0" encoding="UTF-8"?>{said}'.encode()
