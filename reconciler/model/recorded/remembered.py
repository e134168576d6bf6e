"""What the records of copies prove where the record of ownership is missing: which remote topics are copies of ours.

`replicate` keeps them in a journal of their own (`anabranch.TOPOLOGY.copies.internal`), with the ids of both topics. A
topic that is deleted and made again has another id, so nothing that others have made is taken for a copy.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class RememberedCopy:
    """A remote topic that a flow has filled, as the records of copies have it.

    Attributes:
        flow: name of the flow.
        remote: the remote topic.
        source_id: id of the original, as Kafka spells it.
        target_id: id of the remote topic, likewise.
        partitions: how many of its partitions are on record.
        translated: whether offsets of their own are certain; without it they may be identical.
    """

    flow: str
    remote: str
    source_id: str
    target_id: str
    partitions: int
    translated: bool
