"""What our own principal may do on a cluster, as far as the cluster reports it.

`observe` reads it, `plan` decides what follows. Operations have Kafka's names: `READ`, `ALTER`, `CLUSTER_ACTION`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TOPIC_OPERATIONS = ("READ", "WRITE", "DESCRIBE")
"""What replication needs on every remote topic."""

PADDING_OPERATIONS = ("DELETE",)
"""What it needs beside them where a log that begins above offset 0 is padded (DeleteRecords)."""


@dataclass(frozen=True)
class AccessRefusal:
    """One operation for a flow that the cluster does not allow to us.

    Attributes:
        flow: name of the flow that needs it.
        operation: Kafka's name of it.
        resource: on what, in words: `transactional id anabranch.payments.us-east-eu-west.*`.
        transactional: whether it is needed only to write in transactions, or with identical offsets.
    """

    flow: str
    operation: str
    resource: str
    transactional: bool = False


@dataclass(frozen=True)
class Access:
    """What we may do on one cluster, beside its topics.

    Attributes:
        operations: what we may do on the cluster itself; empty where it does not report them.
        marker_operation: which of them allows writing transaction markers: ALTER since Kafka 3.8 (KIP-1037),
            CLUSTER_ACTION before.
        refusals: what flows into this cluster need and may not.
        has_transactions: whether the cluster has transactional ids at all; unknown counts as yes.
    """

    operations: frozenset[str] = frozenset()
    marker_operation: str = "ALTER"
    refusals: tuple[AccessRefusal, ...] = ()
    has_transactions: bool = True

    @property
    def may_write_markers(self) -> bool:
        """Whether transaction markers may be written; CLUSTER_ACTION has always allowed it."""
        return not self.operations.isdisjoint((self.marker_operation, "CLUSTER_ACTION"))

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        refusals = [vars(refusal) for refusal in self.refusals]
        return {**vars(self), "operations": sorted(self.operations), "refusals": refusals}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Access:
        """Return what `to_json` wrote down.

        Raises:
            KeyError: a field is missing.
            TypeError: a field is unknown.
        """
        refusals = tuple(AccessRefusal(**refusal) for refusal in data["refusals"])
        return cls(**{**data, "operations": frozenset(data["operations"]), "refusals": refusals})
