"""The Spark data source `anabranch`: one streaming query per flow, one task per group of partitions, rounds as batches.

`spark_session` registers it. It has effects: reading a partition of it replicates Kafka partitions for a round and
yields the ledger of what was copied. That a Spark task runs twice, or that Spark loses its checkpoint, changes nothing,
since positions are read from the target's log and never from Spark.

Spark starts four processes for each query that only plan rounds and their partitions, each of which imports this module
and must connect within ten seconds of its start (`PythonWorkerFactory`). So it imports little: what copies is imported
by the task that reads.
"""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from reconciler.replicator.partition.shares import Assignment, Shares

NAME = "anabranch"
SCHEMA = (
    "flow STRING, topic STRING, partition INT, remote STRING, first_offset LONG, last_offset LONG, "
    "first_target_offset LONG, last_target_offset LONG, shift LONG, records LONG, bytes LONG, fills LONG, "
    "newest_timestamp LONG, latency_avg LONG, latency_max LONG"
)
"""The columns of the ledger (`ledger.Row`), as Spark's schema text."""

SPEC, SECRET, SHARES = "spec", "secret", "shares"
"""The options: a flow specification as JSON, the key of its run, and the file in which `refresh` keeps its shares.

Spark shows options in plans and on its page, and redacts those with secret-like names
(`spark.redaction.regex`).
"""


class SourceOptions(NamedTuple):
    """The values of the options."""

    spec: str
    key: str
    shares: str


class ReplicationSource(DataSource):
    """Spark's entry."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return NAME

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._told = SourceOptions(options[SPEC], options[SECRET], options[SHARES])

    def schema(self) -> str:
        """Return the ledger's columns."""
        return SCHEMA

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # the name is Spark's
        """Return the reader of one flow."""
        return RoundReader(self._told)


class GroupPartition(InputPartition):
    """One task's partitions as Spark carries them."""

    def __init__(self, assignment: Assignment) -> None:
        super().__init__(assignment)
        self.assignment = assignment


class RoundReader(DataSourceStreamReader):
    """Plans rounds beside the driver, on its machine, and runs them in the tasks."""

    def __init__(self, told: SourceOptions) -> None:
        self._told = told
        self._shares = Shares()

    def initialOffset(self) -> dict[str, int]:
        """Return round 0; the number has no meaning beyond being different each time."""
        return {"round": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:
        """Return the next round: there always is one."""
        return {"round": start["round"] + 1}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """Return each task's partitions as the driver has shared them out.

        A file that cannot be read must not end the query: then the shares are those of the last round, and a task gets
        further partitions from the control topic as soon as it reads it.
        """
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            self._shares = Shares.from_json(json.loads(Path(self._told.shares).read_text(encoding="utf-8")))
        return [GroupPartition(share) for share in self._shares.assignments()]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """Replicate one group for a round, then yield its ledger."""
        from reconciler.model.tasks.spec import FlowSpec  # noqa: PLC0415
        from reconciler.replicator.task import task  # noqa: PLC0415
        from reconciler.starting import log_to_stderr  # noqa: PLC0415
        from reconciler.state.journals import home  # noqa: PLC0415

        assert isinstance(partition, GroupPartition), "Spark hands back what partitions() returned"
        # A terminal's Ctrl-C reaches the workers too; the driver stops them, in order.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        log_to_stderr()
        spec = FlowSpec.from_json(self._told.spec, self._told.key)
        # This process uses the journals that its driver has found.
        home.hold(spec.target, spec.topology, spec.home)
        yield from task.run(spec, partition.assignment)
