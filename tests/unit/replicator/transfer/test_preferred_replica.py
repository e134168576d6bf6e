"""For how long a replica is read that the leader has named; no broker, and a clock that is moved by hand."""

from __future__ import annotations

from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.transfer.preferred_replica import PreferredReplicas
from tests.support.replicator.channels import SIDES, opened

REPLICA = 9


def test_a_replica_is_read_until_it_is_to_be_named_again() -> None:
    moved: list[Channel] = []
    nearest, channel = PreferredReplicas("rack", moved.append, trusted=2.0), opened()
    nearest.named(channel, REPLICA, 100.0)
    nearest.look(channel, 101.9)
    assert (nearest.node(channel), moved) == (REPLICA, [channel])
    nearest.look(channel, 102.0)
    assert (nearest.node(channel), moved) == (SIDES.source.node, [channel] * 2)
