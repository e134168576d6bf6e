"""The transactional ids of a flow's producers, the same for every task and run that owns a partition.

The takeovers, `fill` and the committers use them.
"""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.names.own_names import transactional_prefix
from reconciler.replicator.partition.shares import Place


@dataclass(frozen=True, slots=True)
class ProducerNames:
    """The transactional ids of one flow.

    Attributes:
        topology: name of the topology.
        flow: name of the flow.
    """

    topology: str
    flow: str

    def transactional_id(self, place: Place) -> str:
        """Return the transactional id of one partition: it gives all its owners the same producer id."""
        return f"{transactional_prefix(self.topology, self.flow)}{place.topic}.{place.partition}"

    def heir_id(self, place: Place, end: int) -> str:
        """Return the transactional id for a partition whose log was handed over at `end`; no other producer has it."""
        return f"{self.transactional_id(place)}.{end}"

    def committing_id(self, run: str, task: int) -> str:
        """Return the transactional id of one task of one run, which no other process uses while the task lives."""
        return f"{transactional_prefix(self.topology, self.flow)}{run}.{task}"

    @staticmethod
    def is_one_flow(one: str, other: str) -> bool:
        """Return whether two transactional ids are of one flow: names of topologies and flows have no dots."""
        return one.split(".")[:3] == other.split(".")[:3]

    def filling_id(self, place: Place) -> str:
        """Return the transactional id whose empty transactions fill gaps in one partition."""
        return f"{self.transactional_id(place)}.fill"

    def marking_id(self, place: Place) -> str:
        """Return the transactional id whose producer id is in the markers that we write ourselves.

        It never has a transaction: markers of its coordinator would always be refused after ours.
        """
        return f"{self.transactional_id(place)}.mark"
