"""The daemon that forks Spark's Python workers, with what they need imported once for all of them.

Spark starts it as `python -m reconciler.replicator.spark.daemon` (`spark.python.daemon.module`); it is PySpark's
own, which otherwise would have each worker import the replicator after its fork: half a processor second for each task.
"""

from __future__ import annotations

import gc
import os
import sys

from reconciler.replicator.task import rounds

__all__ = ["rounds"]

# Where Spark's own archives lie in the package that pip installs.
_ARCHIVES = "/pyspark/python/lib"


def prefer_installed(path: list[str]) -> None:
    """Take Spark's archives of Python modules from a search path where they lie in an installed package.

    Spark puts them first, and what is imported from an archive is compiled at every start. The modules of the package
    are the same, and their bytecode is kept.

    Args:
        path: as `sys.path`.
    """
    installed = {os.path.realpath(one) for one in path}
    for one in tuple(path):
        folder, name = os.path.split(os.path.realpath(one))
        root = folder.removesuffix(_ARCHIVES)
        if name.endswith(".zip") and root != folder and root in installed:
            path.remove(one)


def main() -> None:
    """Fork workers until Spark ends; imported modules stay in memory that they share."""
    prefer_installed(sys.path)
    # From where it is imported was decided just now.
    from pyspark import daemon  # noqa: PLC0415

    gc.collect()
    gc.freeze()
    daemon.manager()


if __name__ == "__main__":
    main()
