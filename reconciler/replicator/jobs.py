"""Spark for work that ends: a session whose tasks are asked for one by one, each with text and for text.

`verify` runs its comparisons through it. Spark is started and ended as for a run of `replicate`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from reconciler.model.datacenter import Spark
from reconciler.replicator.session import Session, first_line


class Jobs(Session):
    """A Spark session without queries.

    Args:
        slots: how many tasks run at the same time.
        folder: for Spark's log; it must exist.
        warn: told of troubles.
        cluster: where Spark runs; by default on this machine.
    """

    def __init__(self, slots: int, folder: Path, warn: Callable[[str], None], cluster: Spark | None = None) -> None:
        super().__init__((), folder, warn, cluster=cluster)
        self._slots = slots

    def _session(self, options: Mapping[str, str]) -> SparkSession:
        """Start the virtual machine with its stderr in the log: on a terminal it would write into the bar."""
        if SparkContext._gateway is None:
            conf = SparkConf(loadDefaults=False).setAll(list(options.items()))
            with self.log.open("ab") as log:
                gateway = launch_gateway(conf, {"stderr": log})  # type: ignore[no-untyped-call]
            SparkContext._ensure_initialized(gateway=gateway)
        return super()._session(options)

    def run(self, work: Callable[[str], str], text: str) -> str:
        """Have a worker call a function of this package, and return its answer; several threads may ask at once.

        Raises:
            EnvironmentFault: AB320, Spark has ended, or the function failed there again and again.
        """
        assert self._spark is not None, "it was started"
        try:
            with self._talking():
                (answer,) = self._spark.sparkContext.parallelize([text], 1).map(work).collect()
        except (Py4JError, PySparkException) as error:
            what = f"a task failed: {first_line(error)}"
            raise self._fault(what) from None
        return str(answer)

    def cancel(self) -> None:
        """Break off what the workers do, from any thread."""
        if self._spark is not None:
            self._spark.sparkContext.cancelAllJobs()
