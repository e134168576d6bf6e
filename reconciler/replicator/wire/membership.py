"""Which brokers belong to a cluster, also those that are down (KIP-1073); nothing is written."""

from __future__ import annotations

from kafka.protocol.admin.cluster import DescribeClusterRequest

from reconciler.replicator.wire.requests import Wire
from reconciler.replicator.wire.values import ErrorCode

_TELLS_FENCED = 2


async def registered_brokers(wire: Wire) -> frozenset[int] | None:
    """Return the ids of all brokers that are registered; None where brokers are too old to tell (before 4.0).

    Raises:
        ConnectionLost: no answer.
        ErrorCode: refused.
    """
    answer = await wire.ask(DescribeClusterRequest(include_fenced_brokers=True, max_version=_TELLS_FENCED), None)
    if answer.error_code:
        raise ErrorCode(answer.error_code)
    if answer.version < _TELLS_FENCED:
        return None
    return frozenset(int(broker.broker_id) for broker in answer.brokers)
