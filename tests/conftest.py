import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from pyspark.sql import SparkSession

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ.update(
    DAGSTER_DISABLE_TELEMETRY="1",
    MLFLOW_DISABLE_TELEMETRY="true",
    GX_ANALYTICS_ENABLED="false",
    HF_HUB_DISABLE_TELEMETRY="1",
    DO_NOT_TRACK="true",
    TRL_EXPERIMENTAL_SILENCE="1",
)


@pytest.fixture(scope="session")
def spark_jvm() -> "Iterator[SparkSession]":
    """The one JVM of the whole suite: whoever asks for a Spark session gets one in it. It serves clients too."""
    import socket

    from agent_world.lake.spark.connect import LOOPBACK, listening
    from agent_world.lake.spark.sessions import application

    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port = probe.getsockname()[1]
    # The data is small: compiling a query costs more than running it.
    little = {"spark.sql.codegen.wholeStage": "false", "spark.sql.adaptive.enabled": "false"}
    started = application("local[2]", {**little, **listening(port)}, memory="1g")
    yield started
    started.stop()


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """A real browser, without a window. For a module, since its event loop would be in the way of later ones."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield started
        started.close()
