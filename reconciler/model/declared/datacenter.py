"""A data centre as declared: where the flows into its clusters run, what keeps them running, its turn in a rollout."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.connection.references import MASTERS, Text, settled
from reconciler.model.declared.deployment import NO_DEPLOYMENT, Deployment


@dataclass(frozen=True)
class Spark:
    """Where Spark runs.

    Attributes:
        master: URL of a standalone cluster's masters, `spark://host:port`; None for this machine alone.
        conf: settings of Spark by name, which win over ours.
    """

    master: Text | None = None
    conf: tuple[tuple[str, str], ...] = ()

    @property
    def address(self) -> str | None:
        """The URL of its masters; None for this machine alone.

        Raises:
            EnvironmentFault: AB304, it cannot be looked up, or is something else.
        """
        return None if self.master is None else settled(self.master, "datacenters: spark.master", MASTERS)


@dataclass(frozen=True)
class DataCenter:
    """One declared data centre.

    Attributes:
        name: as clusters have it.
        spark: where the flows into its clusters run.
        wave: in which wave of a rollout its clusters are changed, from 1; None is the last.
        deployment: what keeps its processes running.
    """

    name: str
    spark: Spark = Spark()
    wave: int | None = None
    deployment: Deployment = NO_DEPLOYMENT
