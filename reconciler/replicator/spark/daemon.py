"""The daemon that forks Spark's Python workers, with what they need imported once for all of them.

Spark starts it as `python -m reconciler.replicator.spark.daemon` (`spark.python.daemon.module`); it is PySpark's
own, which otherwise would have each worker import the replicator after its fork: half a processor second for each task.
"""

from __future__ import annotations

import gc

from pyspark import daemon

from reconciler.replicator.task import rounds

__all__ = ["rounds"]


def main() -> None:
    """Fork workers until Spark ends; imported modules stay in memory that they share."""
    gc.collect()
    gc.freeze()
    daemon.manager()


if __name__ == "__main__":
    main()
