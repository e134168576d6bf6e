"""The Spark data source `anabranch`: one streaming query per flow, one task per group of partitions, rounds as batches.

`session` registers it. It has effects: reading a partition of it replicates Kafka partitions for a round and yields the
ledger of what was copied. That a Spark task runs twice, or that Spark forgets its checkpoint, changes nothing, since
positions are read from the target's log and never from Spark.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, MutableMapping
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from reconciler.model.errors import EnvironmentFault
from reconciler.model.spec import FlowSpec
from reconciler.replicator import discover, task
from reconciler.replicator.ledger import SCHEMA

NAME = "anabranch"


class ReplicationSource(DataSource):
    """Spark's entry: option `spec` is a flow specification as JSON."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return NAME

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._spec = options["spec"]

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

    def __init__(self, spec: str) -> None:
        self._spec = spec

    def initialOffset(self) -> dict[str, int]:
        """Return round 0; the number has no meaning beyond being different each time."""
        return {"round": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:
        """Return the next round: there always is one."""
        return {"round": start["round"] + 1}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """Deal the flow's partitions, as they are now, to its tasks.

        A source that does not answer must not end the query: its task waits for it, and says so.
        """
        spec = FlowSpec.from_json(self._spec)
        try:
            places = discover.matching(spec)
        except EnvironmentFault:
            places = []
        return [GroupPartition(share) for share in discover.share_out(places, spec.flow.tasks)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """Replicate one group for a round, then yield its ledger."""
        assert isinstance(partition, GroupPartition), "Spark hands back what partitions() returned"
        # A terminal's Ctrl-C reaches the workers too; it is the driver that stops them, in order.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        yield from task.run(FlowSpec.from_json(self._spec), partition.assignment)
