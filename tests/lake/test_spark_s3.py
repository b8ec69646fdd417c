"""A lake on S3 through S3A: what is stored is read where it lies, and credentials are shown nowhere."""

from __future__ import annotations

from typing import Any

import psutil
import pytest

from agent_world.lake import open_lake, spark
from tests.lake.populated import populate
from tests.lake.s3_server import SECRET

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("spark_jvm")]


def test_spark_reads_a_lake_on_s3_and_shows_no_credentials(s3: str, spark_jvm: Any):
    lake = open_lake(f"{s3}/spark")
    before = populate(lake)
    session = spark.session(lake)
    assert "".join(session.table("task_sets").inputFiles()).startswith("s3://")
    for name in ("events", "task_sets", "tasks", "weaknesses"):
        assert session.table(name).count() == lake.sql(f"SELECT * FROM {name}").num_rows > 0
    assert spark.session(lake, before).table("weaknesses").count() == 0
    place = spark.write_mart(lake, spark.ROLLOUTS_DAILY, f"{s3}/marts/rollouts_daily")
    assert session.sql(f"SELECT sum(episodes) AS n FROM delta.`{place}`").collect()[0].n == 6

    shown = [session.sql(query).collect() for query in ("SET", "SET -v")]
    below = psutil.Process().children(recursive=True)
    commands = [process.cmdline() for process in below if process.status() != psutil.STATUS_ZOMBIE]
    assert any("java" in word for command in commands for word in command)
    for text in (str(shown), str(commands), str(spark_jvm.sparkContext.getConf().getAll())):
        assert "spark.driver.memory" in text
        assert SECRET not in text
        assert "access.key" not in text
