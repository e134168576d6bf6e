"""A data centre as declared: the Spark cluster on which the flows into its clusters run, and its turn in a rollout."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Spark:
    """Where Spark runs.

    Attributes:
        master: URL of a standalone cluster's masters, `spark://host:port`; None for this machine alone.
        conf: settings of Spark by name, which win over ours.
    """

    master: str | None = None
    conf: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class DataCenter:
    """One declared data centre.

    Attributes:
        name: as clusters have it.
        spark: where the flows into its clusters run.
        wave: in which wave of a rollout its clusters are changed, from 1; None is the last.
    """

    name: str
    spark: Spark = Spark()
    wave: int | None = None
