"""Spark for work that ends: its tasks are asked for one by one, each with text and for text.

`verify` runs its comparisons through it. Spark is started and ended as for a run of `replicate`.
"""

from __future__ import annotations

from collections.abc import Callable

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from reconciler.replicator.driver.spark_engine import SparkEngine, first_line


class SparkJobs(SparkEngine):
    """Spark that does what it is asked for; it needs no SQL, and is there sooner without."""

    def need(self, slots: int) -> None:
        """Ask for fewer slots than at first, once it is known how much there is to do."""
        self._slots = min(slots, self._slots)

    def run(self, work: Callable[[str], str], text: str) -> str:
        """Have a worker call a function of this package, and return its answer; several threads may ask at once.

        Raises:
            EnvironmentFault: AB320, Spark has ended, or the function failed there again and again.
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
        """Break off what the workers do, from any thread."""
        if self._context is not None:
            self._context.cancelAllJobs()
