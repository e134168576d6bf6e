"""The Spark data source `anabranch`: a flow as a streaming query, for programs with a Spark session of their own.

`stream` registers it; `replicate` does without queries (`slot_rounds`). It has effects: reading a partition of it
replicates Kafka partitions for a round and yields the ledger of what was copied. That a Spark task runs twice, or that
Spark loses its checkpoint, changes nothing, since positions are read from the target's log and never from Spark.

Spark starts four processes for each query that only plan rounds and their partitions, each of which imports this module
and must connect within ten seconds of its start (`PythonWorkerFactory`). So it imports little.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from reconciler.replicator.partition.shares import Assignment, Shares
from reconciler.replicator.spark.ledger_schema import COLUMNS
from reconciler.replicator.spark.round_task import SealedSpec, TaskOfRound, read_shares, replicated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from reconciler.model.tasks.spec import FlowSpec

NAME = "anabranch"
SPEC, SECRET, SHARES = "spec", "secret", "shares"
"""The options: a flow specification as JSON, the key of its run, and the file in which `refresh` keeps its shares.

Spark shows options in plans and on its page, and redacts those with secret-like names
(`spark.redaction.regex`).
"""


def ledger_frame(spark: SparkSession, spec: FlowSpec, shares: Path) -> DataFrame:
    """Return the ledger of a flow as a streaming DataFrame; a query on it replicates the flow.

    Args:
        spark: the session; its workers must run an interpreter that has this package.
        spec: the flow.
        shares: the file in which `refresh` keeps the shares of the run.
    """
    spark.dataSource.register(ReplicationSource)
    options = {SPEC: spec.to_json(), SECRET: spec.key, SHARES: str(shares.absolute())}
    return spark.readStream.format(NAME).options(**options).load()


class SourceOptions(NamedTuple):
    """The values of the options."""

    sealed: SealedSpec
    shares: str


class ReplicationSource(DataSource):
    """Spark's entry."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return NAME

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._told = SourceOptions(SealedSpec(options[SPEC], options[SECRET]), options[SHARES])

    def schema(self) -> str:
        """Return the ledger's columns."""
        return ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())

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
        """Return each task's partitions as the driver has shared them out."""
        self._shares = read_shares(Path(self._told.shares), self._shares)
        return [GroupPartition(share) for share in self._shares.assignments()]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """Replicate one group for a round, then yield its ledger."""
        assert isinstance(partition, GroupPartition), "Spark hands back what partitions() returned"
        # Spark itself ends a process that has been idle for a minute.
        yield from replicated([TaskOfRound(self._told.sealed, partition.assignment)], lambda: None)
