"""One server for the episodes of a module."""

from collections.abc import Iterator

import pytest

from tests.serving.episodes.server import Http, Server, serving


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture
def http(server) -> Iterator[Http]:
    with Http(server) as client:
        yield client
