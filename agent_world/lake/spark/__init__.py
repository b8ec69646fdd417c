"""A lake in Spark: sessions that see every table and view, queries, Spark Connect, marts (docs/sql.md)."""

from __future__ import annotations

from agent_world.lake.spark.errors import SparkUnavailableError
from agent_world.lake.spark.marts import ROLLOUTS_DAILY, write_mart
from agent_world.lake.spark.sessions import query, session

__all__ = ["ROLLOUTS_DAILY", "SparkUnavailableError", "query", "session", "write_mart"]
