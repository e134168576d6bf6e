"""What Anabranch's own processes do when they start. Programs of users that import the package do none of it."""

from __future__ import annotations

import logging
import os
import sys

VERBOSE = "ANABRANCH_VERBOSE"
"""The environment variable that holds the value of `--verbose`; Spark's Python workers inherit it from the driver."""
ALL_ROOMS = "all"
TREE = "reconciler"
"""The logger above all of ours."""
_OF_FORMATS = ("rfc3987_syntax", "isoduration", "rfc3986_validator")
# The loggers whose level `set_log_levels` has set.
_set: list[logging.Logger] = []


def start_lightly() -> None:
    """Leave out of this process what takes long to import and is not needed.

    jsonschema imports what checks formats, of which our schemas have none, where other programs have brought that into
    the environment. One such package takes more than a second of CPU time.
    """
    for name in _OF_FORMATS:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]


def set_log_levels(verbose: str | None) -> None:
    """Set the levels of the loggers below `reconciler`, and silence kafka-python's.

    kafka-python logs every lost connection as an error; the callers report what matters of that with the cluster's
    name. Levels that an earlier call has set are taken back.

    Args:
        verbose: `all`, or names of packages below `reconciler` with commas between, such as `replicator,wire.net`:
            these log at DEBUG. None or empty for WARNING everywhere.
    """
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    for logger in _set:
        logger.setLevel(logging.NOTSET)
    rooms = [room.strip() for room in (verbose or "").split(",") if room.strip()]
    names = [TREE if room == ALL_ROOMS else f"{TREE}.{room}" for room in rooms]
    _set[:] = [logging.getLogger(name) for name in names]
    for logger in _set:
        logger.setLevel(logging.DEBUG)


def log_to_stderr() -> None:
    """Set up logging in a Python worker of Spark, whose stderr is in Spark's log, with the levels of its driver."""
    set_log_levels(os.environ.get(VERBOSE))
    logger = logging.getLogger(TREE)
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        logger.addHandler(handler)
