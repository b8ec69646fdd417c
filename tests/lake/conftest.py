from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_world.lake import Lake, open_lake
from tests.lake.s3_server import BUCKET, s3_server

_numbers = itertools.count()


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a bucket on a real S3 server, reachable through the environment."""
    with s3_server(tmp_path_factory.mktemp("weed")) as environment:
        before = {name: os.environ.get(name) for name in environment}
        os.environ.update(environment)
        yield f"s3://{BUCKET}"
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value


@pytest.fixture(params=["directory", "s3"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty place for a lake: a directory, then a prefix in a bucket."""
    if request.param == "directory":
        return str(tmp_path / "lake")
    return f"{request.getfixturevalue('s3')}/lake-{next(_numbers)}"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return open_lake(tmp_path / "lake")
