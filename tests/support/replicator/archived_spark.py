"""A session of Spark that does what runs and comparisons do, without brokers; Java archives the classes as it ends.

`python -m tests.support.replicator.archived_spark SECONDS` ends with 0 once Java has ended in order, within so many
seconds each.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from reconciler.replicator.driver import spark_engine
from reconciler.replicator.driver.spark_jobs import SparkJobs

NAME = "counting"


class Counting(DataSource):
    """A stream with a row in each round, which one worker yields: to Spark the replicator's source is the same."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return "topic string, records bigint"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return Rounds()


class Rounds(DataSourceStreamReader):
    """Its rounds, one after the other."""

    def initialOffset(self) -> dict[str, int]:
        return {"round": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:
        return {"round": start["round"] + 1}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        time.sleep(0.2)
        yield ("archived", 1)


def main(seconds: float) -> int:
    # Java writes the archive at its end, which takes longer than we wait for that otherwise.
    spark_engine._JVM_PATIENCE = seconds
    with tempfile.TemporaryDirectory(prefix="anabranch-spark-") as scratch:
        jobs = SparkJobs(2, Path(scratch), print)
        jobs.open()
        jobs.start()
        assert jobs.run(str.upper, "archived") == "ARCHIVED"
        assert jobs._context is not None
        spark = SparkSession(jobs._context)
        # As with ledgers in files, and without.
        for kind in ("noop", "json"):
            stream(spark, kind, f"{scratch}/{kind}", seconds)
        assert SparkContext._gateway is not None
        machine = SparkContext._gateway.proc
        jobs.stop()
    return int(machine.returncode)


def stream(spark: SparkSession, kind: str, folder: str, seconds: float) -> None:
    """Run a query for two rounds."""
    spark.dataSource.register(Counting)
    writer = spark.readStream.format(NAME).load().writeStream.queryName(kind).format(kind)
    query = writer.option("checkpointLocation", f"{folder}-checkpoint").start(folder)
    deadline = time.monotonic() + seconds
    while query.lastProgress is None or query.lastProgress["batchId"] < 1:
        assert query.isActive, query.exception()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    query.stop()


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
