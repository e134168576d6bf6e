"""Which brokers belong to a cluster, also those that are down (KIP-1073), and how many replicas it gives topics.

Nothing is written.
"""

from __future__ import annotations

from reconciler.wire.protocol.library import CreateTopicsRequest, DescribeClusterRequest
from reconciler.wire.protocol.values import BrokerError
from reconciler.wire.requests.client import Wire

_WITH_FENCED = 2
# Version 5 answers with what a topic would get (KIP-525).
_TELLS_REPLICAS, _NEWEST = 5, 7
_TIMEOUT_MS = 5_000
_DEFAULT = -1


async def registered_brokers(wire: Wire) -> frozenset[int] | None:
    """Return the ids of all brokers that are registered; None from brokers that lack the field (before 4.0).

    Raises:
        ConnectionLost: no answer.
        BrokerError: refused.
    """
    answer = await wire.ask(DescribeClusterRequest(include_fenced_brokers=True, max_version=_WITH_FENCED), None)
    if answer.error_code:
        raise BrokerError(answer.error_code)
    if answer.version < _WITH_FENCED:
        return None
    return frozenset(int(broker.broker_id) for broker in answer.brokers)


async def default_replicas(wire: Wire, topic: str) -> int | None:
    """Return the default replication factor of the cluster; None where the response lacks it.

    Args:
        wire: to the cluster.
        topic: a name that no topic has; none is made.

    Raises:
        ConnectionLost: no answer.
        BrokerError: brokers are too old (before 2.4).
    """
    new = CreateTopicsRequest.CreatableTopic(
        name=topic, num_partitions=1, replication_factor=_DEFAULT, assignments=[], configs=[]
    )
    asked = CreateTopicsRequest(
        topics=[new], timeout_ms=_TIMEOUT_MS, validate_only=True, min_version=_TELLS_REPLICAS, max_version=_NEWEST
    )
    (created,) = (await wire.ask(asked, None)).topics
    count = int(created.replication_factor)
    return None if created.error_code or count < 1 else count
