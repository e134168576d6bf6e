"""Spark for work that ends: runs a function in a worker, with a text as its argument and its result.

`verify` runs its comparisons with it. Spark is started and stopped as for a run of `replicate`.
"""

from __future__ import annotations

from collections.abc import Callable

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from reconciler.replicator.spark.engine import SparkEngine, first_line


class SparkJobs(SparkEngine):
    """Runs single jobs; without Spark SQL, which makes the start quicker."""

    def need(self, slots: int) -> None:
        """Lower the number of slots, once it is known how much there is to do."""
        self._slots = min(slots, self._slots)

    def run(self, work: Callable[[str], str], text: str) -> str:
        """Run a function of this package in a worker, and return its answer; several threads may call at once.

        Raises:
            EnvironmentFault: AB320, Spark has ended, or the function failed there repeatedly.
        """
        assert self._context is not None, "it was started"
        try:
            with self._talking():
                (answer,) = self._context.parallelize([text], 1).map(work).collect()
        except (Py4JError, PySparkException) as error:
            what = f"a task failed: {first_line(error)}"
            raise self._fault(what) from None
        return str(answer)

    def cancel(self) -> None:
        """Cancel what the workers do, from any thread."""
        if self._context is not None:
            self._context.cancelAllJobs()
