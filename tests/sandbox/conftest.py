from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from agent_world.sandbox import BACKENDS, Sandbox
from tests.sandbox.engine import NoEngineError, engine

EVERY_BACKEND = ("bwrap", "bwrap-process", "docker")


@pytest.fixture(scope="package")
def engine_host() -> Iterator[str]:
    """Where a running engine listens; where none can start the test is skipped and says why."""
    with ExitStack() as stack:
        try:
            host = stack.enter_context(engine())
        except NoEngineError as error:
            pytest.skip(f"no Docker engine: {error}")
        yield host


@pytest.fixture(scope="module")
def docker_engine(engine_host: str) -> Iterator[str]:
    """A running engine, which DOCKER_HOST names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", engine_host)
        yield engine_host


@pytest.fixture(scope="module", params=EVERY_BACKEND)
def backend(request: pytest.FixtureRequest) -> str:
    """The name of each back-end that can start here."""
    if request.param.startswith("docker"):
        request.getfixturevalue("docker_engine")
    return request.param


@pytest.fixture(scope="module")
def box(backend: str) -> Iterator[Sandbox]:
    """A sandbox of each back-end, for tests that do not end it."""
    with BACKENDS[backend]() as opened:
        yield opened
