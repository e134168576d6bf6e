"""A program of its own: what the driver of a SparkApplication runs. It stands in the ConfigMap of a data centre.

Spark runs Python in a driver beside a JVM of its own. What copies records begins a JVM for each run, as everywhere
else, so that a new declaration needs no new pod.
"""

from __future__ import annotations

import os
import runpy


def main() -> None:
    """Run `anabranch` with the arguments of this program."""
    for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"):
        os.environ.pop(name, None)
    runpy.run_module("reconciler.cli.main", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
