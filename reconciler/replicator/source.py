"""The Spark data source `anabranch`: one streaming query per flow, one task per group of partitions, rounds as batches.

`session` registers it. It has effects: reading a partition of it replicates Kafka partitions for a round and yields the
ledger of what was copied. That a Spark task runs twice, or that Spark forgets its checkpoint, changes nothing, since
positions are read from the target's log and never from Spark.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator, MutableMapping
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from reconciler.model.errors import EnvironmentFault
from reconciler.model.spec import FlowSpec
from reconciler.replicator import discover, task
from reconciler.replicator.ledger import SCHEMA
from reconciler.state import control, home

NAME = "anabranch"
SPEC, SECRET = "spec", "secret"


class ReplicationSource(DataSource):
    """Spark's entry: option `spec` is a flow specification as JSON, `secret` the key of its run.

    Spark shows options in plans and in its page; those whose names say that they are secret it redacts
    (`spark.redaction.regex`).
    """

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return NAME

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._spec = FlowSpec.from_json(options[SPEC], options[SECRET])

    def schema(self) -> str:
        """Return the ledger's columns."""
        return SCHEMA

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # the name is Spark's
        """Return the reader of one flow."""
        return RoundReader(self._spec)


class GroupPartition(InputPartition):
    """One task's partitions as Spark carries them."""

    def __init__(self, assignment: discover.Assignment) -> None:
        super().__init__(assignment)
        self.assignment = assignment


class RoundReader(DataSourceStreamReader):
    """Plans rounds in the driver's planner and runs them in the tasks."""

    def __init__(self, spec: FlowSpec) -> None:
        self._spec = spec
        self._shares = discover.Shares()

    def initialOffset(self) -> dict[str, int]:
        """Return round 0; the number has no meaning beyond being different each time."""
        return {"round": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:
        """Return the next round: there always is one."""
        return {"round": start["round"] + 1}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """Give each task what the driver has announced for it.

        A target that does not answer must not end the query: then the shares are those of the last round, and a task
        hears of its further partitions as soon as it hears anything.
        """
        spec = self._held()
        with contextlib.suppress(EnvironmentFault):
            announced = control.announced(spec.target, spec.seal)
            self._shares = self._shares if announced is None else discover.Shares.from_json(announced)
        return [GroupPartition(share) for share in self._shares.assignments()]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """Replicate one group for a round, then yield its ledger."""
        assert isinstance(partition, GroupPartition), "Spark hands back what partitions() returned"
        # A terminal's Ctrl-C reaches the workers too; it is the driver that stops them, in order.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        yield from task.run(self._held(), partition.assignment)

    def _held(self) -> FlowSpec:
        """Return the flow specification; this process goes by where its driver has found the journals."""
        home.hold(self._spec.target, self._spec.topology, self._spec.home)
        return self._spec
