"""`Engine.map` on Spark: work goes to executors, results come back to this process, which alone writes."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa

from agent_world.engine import Done, Engine, Item, Result, Stopwatch, as_done, timed
from agent_world.errors import AgentWorldError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SHARE = 10
"""Items that travel together at most: a task of Spark costs about as much as ten small ones."""

_QUEUED = 2
"""Jobs in flight for each slot of an executor: the next one is there when a slot is free."""

_OUTCOMES = "outcomes binary"


class SparkWorkError(AgentWorldError):
    """Spark could not have work done at `where`, however often it tried."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(where, why)
        self.where, self.why = where, why

    def __str__(self) -> str:
        return (
            f"the work could not be done at {self.where}: {self.why}; see the executors' logs, then run again to resume"
        )


class SparkEngine(Engine):
    """Executors of a Spark master (``spark://host:port``, ``local[n]``) or of a Connect server (``sc://host:port``).

    What an executor lost with it is done again elsewhere, four times at most. Workers need this package, of the same
    version and under the same Python, and what the work itself asks for: a sandbox, and a disk shared with this process
    where items name folders. Leaving cancels what runs, and ends the application unless others use it.
    """

    def __init__(self, where: str) -> None:
        super().__init__(1)
        self.where = where
        self._spark: SparkSession | None = None
        self._own = False

    def __exit__(self, *_: object) -> None:
        if self._spark is not None:
            self._spark.interruptAll()
            if self._own:
                self._spark.stop()
            self._spark = None

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Done[Item, Result]]:
        """Run `function` on every item; results come in input order, as soon as each is there.

        Raises:
            SparkUnavailableError: there is no Spark to be had. SparkWorkError: it gave up.
        """
        if not items:
            return
        from pyspark.errors import PySparkException

        spark = self._session()
        size = max(1, min(_SHARE, len(items) // (self.workers * 4)))
        shares = [items[start : start + size] for start in range(0, len(items), size)]
        pool = ThreadPoolExecutor(self.workers * _QUEUED, thread_name_prefix="spark-share")
        try:
            futures = [pool.submit(_carried_out, spark, pickle.dumps((function, share))) for share in shares]
            for share, future in zip(shares, futures, strict=True):
                for item, (outcome, spent) in zip(share, pickle.loads(future.result()), strict=True):
                    Stopwatch.add(spent.cpu_s)
                    yield as_done(item, outcome, spent)
        except PySparkException as error:
            raise SparkWorkError(self.where, str(error).strip().splitlines()[0]) from error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _session(self) -> SparkSession:
        if self._spark is None:
            from pyspark.sql import SparkSession

            running = SparkSession.getActiveSession()
            if self.where.startswith("sc://"):
                self._spark = SparkSession.builder.remote(self.where).getOrCreate()
            else:
                from agent_world.lake.spark.sessions import application

                self._spark = application(self.where)
            self._own = running is None
            self.workers = _slots(self._spark)
        return self._spark


def _slots(spark: SparkSession) -> int:
    """How many tasks run at once; a Connect client can only see into how many parts a range falls."""
    from pyspark.sql.functions import spark_partition_id

    return spark.range(10_000).select(spark_partition_id()).distinct().count()


def _carried_out(spark: SparkSession, work: bytes) -> bytes:
    """One share, as one task of one job: a share whose executor is lost takes no other with it."""
    sent = spark.createDataFrame(pa.table({"work": pa.array([work], pa.binary())})).coalesce(1)
    (row,) = sent.mapInArrow(_work, _OUTCOMES).collect()
    return bytes(row.outcomes)


def _work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """On the executor: its items one by one, each outcome kept apart, as in a worker of the local pool."""
    for batch in batches:
        for work in batch.column("work").to_pylist():
            function, items = pickle.loads(work)
            outcomes = pickle.dumps([timed(function, item) for item in items])
            yield pa.RecordBatch.from_arrays([pa.array([outcomes], pa.binary())], ["outcomes"])
