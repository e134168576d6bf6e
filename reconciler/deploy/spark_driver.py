"""What a Spark driver does for a deployed process: it is the keeper of the process, on the worker that has the driver.

Spark starts the driver again where it dies, on another worker where its own is lost. Which driver that is does not
matter: each follows the record in the folder of the data centre, and ends for good once its generation is not on it.
Two drivers of one generation may run for a while, after a master was lost; their runs share the lease.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from reconciler import launcher
from reconciler.deploy.bootstrap import facts, is_on_record, report_of, tell
from reconciler.deploy.keeper import Keeper
from reconciler.deploy.programs import given_variables, variables_for
from reconciler.model.base.files import UnreadableFile, read_json
from reconciler.model.base.shape import COUNT, Misfit, fields

_LOOK_EVERY = 1.0


class DrivenKeeper(Keeper):
    """Keeps the command of a description running, as long as its generation is on record.

    Args:
        description: as `standalone` wrote it.
        environ: the variables of the command.
        parent: process id of the JVM that started this process.
    """

    def __init__(self, description: dict[str, Any], environ: Mapping[str, str], parent: int) -> None:
        report = report_of(description)
        super().__init__(
            launcher.__file__, report, Path(description["log"]), description["patience"], description["command"]
        )
        self._environ = environ
        self._also = facts()
        self._on_record = Path(description["record"]), description["name"], description["number"]
        self._parent = parent
        self._look_due = 0.0
        self._is_orphan = False
        with suppress(OSError, UnreadableFile, Misfit):
            # Spark has started this driver before.
            self._restarts = 1 + int(fields(read_json(report), {"restarts": COUNT})["restarts"])
            self._why = "its driver had ended"

    def _look(self) -> None:
        """End where the JVM is gone, as Spark then starts another driver, or where the generation is off the record."""
        now = time.monotonic()
        if now < self._look_due:
            return
        self._look_due = now + _LOOK_EVERY
        if os.getppid() != self._parent:
            self._is_orphan = self.is_ending = True
        elif not is_on_record(*self._on_record):
            self.is_ending = True

    def _finish(self) -> None:
        """Leave the report of a driver that another one follows."""
        if not self._is_orphan:
            super()._finish()


def begin_context() -> None:
    """Have YARN take this program for an application that runs: without a Spark context it ends it after a while."""
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415

    # Of the JVM beside this program, which has all settings; pyspark keeps it until the program ends.
    SparkContext(conf=SparkConf())


def run(description: dict[str, Any]) -> int:
    """Keep the process of a description running until its generation is off the record; return the exit code."""
    parent, file = os.getppid(), description["environment_file"]
    given = given_variables(Path(file)) if file else {}
    known = os.environ | (given or {})
    environ = variables_for(description["variables"], description["python"], known)
    if why := _unset(description, environ, is_readable=given is not None):
        tell(report_of(description), {**facts(), "pid": 0, "since": time.time(), "restarts": 1, "why": why})
        return 1
    if description.get("begins_context"):
        begin_context()
    keeper = DrivenKeeper(description, environ, parent)
    # Behind the context, which has its own handler of SIGINT.
    keeper.end_on_signals()
    keeper.run()
    return 0


def _unset(description: Mapping[str, Any], environ: Mapping[str, str], *, is_readable: bool) -> str:
    """Return which variables a worker lacks; empty where it has all."""
    where, file = facts()["host"], description["environment_file"]
    if file and not is_readable:
        return f"the environment file {file} cannot be read on {where}"
    if missing := [name for name in description["variables"] if not environ.get(name)]:
        there = f"not in {file}" if file else "not set"
        return f"{', '.join(missing)}, which {description['name']} needs, is {there} on {where}"
    return ""
