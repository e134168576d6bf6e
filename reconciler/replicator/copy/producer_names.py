"""The names under which a flow's producers are known to the target's coordinators: the same for all owners.

`identical` and `fill` ask here.
"""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.names.own_names import transactional_prefix
from reconciler.replicator.partition.shares import Place


@dataclass(frozen=True, slots=True)
class ProducerNames:
    """What names a flow's producers.

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
        """Return the transactional id of a partition whose log was handed to us at an end: no producer there has it."""
        return f"{self.transactional_id(place)}.{end}"

    def committing_id(self, run: str, task: int) -> str:
        """Return the transactional id of one task of one run: nobody else uses it while the task lives."""
        return f"{transactional_prefix(self.topology, self.flow)}{run}.{task}"

    @staticmethod
    def is_one_flow(one: str, other: str) -> bool:
        """Tell whether two transactional ids are of one flow: names of topologies and flows have no dots."""
        return one.split(".")[:3] == other.split(".")[:3]

    def filling_id(self, place: Place) -> str:
        """Return the transactional id whose empty transactions fill gaps in one partition."""
        return f"{self.transactional_id(place)}.fill"

    def marking_id(self, place: Place) -> str:
        """Return the transactional id whose producer stands in the markers that we write ourselves.

        It never has a transaction: its coordinator's markers would be refused for ever behind ours.
        """
        return f"{self.transactional_id(place)}.mark"
