"""Spark sessions over a lake: one JVM a process, a session of its own for each lake and point in time."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pyarrow as pa

from agent_world.lake.errors import QueryError
from agent_world.lake.lake import Lake
from agent_world.lake.moments import At
from agent_world.lake.spark.catalogue import register, sources
from agent_world.lake.spark.errors import SparkUnavailableError
from agent_world.lake.spark.jars import check_java, jars
from agent_world.lake.sql import Named, named
from lake_schemas import TABLES
from lake_schemas.views import VIEWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERYTHING = Named([*TABLES, "events"], list(VIEWS))

_DELTA = "io.delta.sql.DeltaSparkSessionExtension"
_LOOPBACK = ("127.0.0.1", "localhost")
_LOG4J = Path(__file__).with_name("log4j2.properties")
_starting = threading.Lock()


def session(
    lake: Lake,
    at: At | None = None,
    *,
    only: Named = EVERYTHING,
    master: str = "local[*]",
    scratch: Path | None = None,
    memory: str = "2g",
) -> SparkSession:
    """A Spark session in which every table, `events` and every view of the lake is a temporary view.

    They show the lake as it stands now, or stood `at` a snapshot, time or version, and do not move: call again for
    what came later. The JVM starts with the first session of a process; sessions are apart from each other in it.

    Args:
        lake: the lake; nothing is written to it.
        at: as `Lake.at` takes it.
        only: register these; the fewer, the sooner.
        master: where Spark runs, for the session that starts the JVM: ``local[n]`` or ``spark://host:port``.
        scratch: where copies of tables are laid that are not stored as readers see them; a folder that all of a
            cluster's hosts see under this name. On one machine a temporary folder, removed with the session.
        memory: of the driver's JVM.

    Raises:
        SparkUnavailableError: no pyspark, Java or jars, or a session that runs without Delta.
        NotFoundError: there is no such point in time.
    """
    view = None if at is None else lake.at(at)
    spark = application(master, memory=memory).newSession()
    reach(spark, lake)
    folder = Path(tempfile.mkdtemp(prefix="agent-world-spark-", dir=scratch))
    weakref.finalize(spark, shutil.rmtree, folder, ignore_errors=True)
    register(spark, sources(lake, view, only.tables, folder), only.views)
    return spark


def query(text: str, lake: Lake, at: At | None = None) -> pa.Table:
    """The answer to a Spark SQL query over the tables and views of a lake; what is no question is refused.

    Raises:
        QueryError: Spark refused it, or it would change something. SparkUnavailableError, NotFoundError: see `session`.
    """
    needed = named(text)
    spark = session(lake, at, only=needed)
    from pyspark.errors import PySparkException
    from pyspark.logger import PySparkLogger

    PySparkLogger.getLogger("SQLQueryContextLogger").disabled = True  # it prints the trace of every refused query
    try:
        _check_question(spark, text)
        return spark.sql(text).toArrow()
    except PySparkException as error:
        raise QueryError(str(error).strip()) from error


def application(master: str, conf: Mapping[str, str] | None = None, *, memory: str = "2g") -> SparkSession:
    """The session that this process started its JVM with: the first call, with `conf` beside what Delta needs.

    Raises:
        SparkUnavailableError: see `session`.
    """
    try:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SparkUnavailableError("pyspark is not installed", "install the extra: agent-world[spark]") from error
    with _starting:
        spark = SparkSession.getActiveSession()
        if spark is None:
            check_java()
            builder = SparkSession.builder.master(master).appName("agent-world")
            for key, value in (_settings(master, memory) | dict(conf or {})).items():
                builder = builder.config(key, value)
            try:
                spark = builder.getOrCreate()
            except (PySparkException, Py4JError) as error:
                raise SparkUnavailableError(str(error).splitlines()[0], "see what Java said above") from error
    if _DELTA not in (spark.conf.get("spark.sql.extensions", "") or ""):
        cure = "stop it first, or begin with agent_world.lake.spark.session"
        raise SparkUnavailableError("a session without Delta runs in this process", cure)
    return spark


def reach(spark: SparkSession, lake: Lake) -> None:
    """Give Spark the way to an S3 lake, and the rights to it.

    They go to the JVM's Hadoop configuration, bucket by bucket: a setting of the session would stand in the command
    line of the JVM and in what `SET` lists.
    """
    options = lake.storage.options
    if options is None:
        return
    context: Any = spark.sparkContext
    hadoop = context._jsc.hadoopConfiguration()
    hadoop.set("fs.s3.impl", "org.apache.hadoop.fs.s3a.S3AFileSystem")
    bucket = f"fs.s3a.bucket.{urlsplit(lake.uri).netloc}"
    endpoint = options["AWS_ENDPOINT_URL"]
    found = {
        "endpoint": endpoint,
        "endpoint.region": options["AWS_REGION"],
        "path.style.access": "true",
        "connection.ssl.enabled": str(endpoint.startswith("https://")).lower(),
        "attempts.maximum": "3",
        "access.key": options.get("AWS_ACCESS_KEY_ID"),
        "secret.key": options.get("AWS_SECRET_ACCESS_KEY"),
        "session.token": options.get("AWS_SESSION_TOKEN"),
        "aws.credentials.provider": "org.apache.hadoop.fs.s3a."
        + ("TemporaryAWSCredentialsProvider" if "AWS_SESSION_TOKEN" in options else "SimpleAWSCredentialsProvider"),
    }
    for name, value in found.items():
        if value is not None:
            hadoop.set(f"{bucket}.{name}", value)


def _settings(master: str, memory: str) -> dict[str, str]:
    # Else workers take the first python3 on PATH, which knows neither pyarrow nor us.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master.startswith("local") or urlsplit(master).hostname in _LOOPBACK:
        os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK[0])
    return {
        "spark.jars": ",".join(map(str, jars())),
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}",
        "spark.sql.extensions": _DELTA,
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": tempfile.gettempdir(),  # nothing is made there; the default is a folder made here
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2" if master.startswith("local") else "200",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.python.unix.domain.socket.enabled": "true",
        # Workers find modules where we find them; on other hosts, where the package is installed.
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),
    }


def _check_question(spark: SparkSession, text: str) -> None:
    """See that the query only asks: Spark would also carry out a DELETE, even one on a table of the lake.

    Raises:
        QueryError: it does not.
    """
    behind: Any = spark  # py4j's objects have no types
    jvm = behind.sparkContext._jvm
    logical = "org.apache.spark.sql.catalyst.plans.logical"
    acts = [jvm.java.lang.Class.forName(f"{logical}.{name}") for name in ("Command", "ParsedStatement")]
    plans = [behind._jsparkSession.sessionState().sqlParser().parsePlan(text)]
    while plans:
        plan = plans.pop()
        name = plan.getClass().getSimpleName()
        if any(act.isInstance(plan) for act in acts) and not name.startswith(("Show", "Describe", "Explain")):
            raise QueryError("it gives no rows; a lake is changed by batches, not by SQL")
        children = plan.children().iterator()
        while children.hasNext():
            plans.append(children.next())
