"""A Spark Connect server over a lake, for clients that need no Java: every session finds the same tables and views."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agent_world.lake.lake import Lake
from agent_world.lake.moments import At
from agent_world.lake.spark.catalogue import register, sources
from agent_world.lake.spark.errors import SparkUnavailableError
from agent_world.lake.spark.sessions import EVERYTHING, application, reach

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOPBACK = "127.0.0.1"
PORT = 15002
"""Spark Connect's own."""

_PORT = "spark.connect.grpc.binding.port"


@contextmanager
def served(lake: Lake, at: At | None = None, *, port: int = PORT, master: str = "local[*]") -> Iterator[str]:
    """Serve the lake, as it stands or stood `at`, on loopback; gives the address, and ends the server when left.

    Whoever may connect may do what this user may: Spark runs the Python and the commands of its clients.

    Raises:
        SparkUnavailableError: Spark runs in this process already; or see `session`.
        NotFoundError: there is no such point in time.
    """
    lake.at(at)  # before a JVM starts
    spark = application(master, listening(port))
    if spark.conf.get(_PORT, None) != str(port):
        raise SparkUnavailableError("Spark runs in this process already", "start the server in a process of its own")
    try:
        with published(spark, lake, at):
            yield f"sc://{LOOPBACK}:{port}"
    finally:
        spark.stop()


def listening(port: int) -> Mapping[str, str]:
    """The configuration by which an application listens to clients."""
    return {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": LOOPBACK,
        _PORT: str(port),
    }


@contextmanager
def published(spark: SparkSession, lake: Lake, at: At | None = None) -> Iterator[None]:
    """Make the lake the catalogue of a Spark application: all its sessions, those of clients too, find it by name."""
    reach(spark, lake)
    folder = Path(tempfile.mkdtemp(prefix="agent-world-spark-"))
    found = sources(lake, None if at is None else lake.at(at), EVERYTHING.tables, folder)
    try:
        register(spark, found, EVERYTHING.views, lasting=True)
        yield
    finally:
        for name in EVERYTHING.views:
            spark.sql(f"DROP VIEW IF EXISTS {name}")
        for name in EVERYTHING.tables:
            spark.sql(f"DROP TABLE IF EXISTS {name}")  # its files stay: they are the lake's
        shutil.rmtree(folder, ignore_errors=True)
