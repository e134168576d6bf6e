"""The active controller's time, from the state of its quorum (KIP-836); nothing is written."""

from __future__ import annotations

from typing import Any

from reconciler.wire.protocol.library import DescribeQuorumRequest
from reconciler.wire.protocol.values import BrokerError
from reconciler.wire.requests.client import Wire

_METADATA_LOG = "__cluster_metadata"


async def controller_time(wire: Wire) -> int:
    """Return the active controller's clock, milliseconds since 1970; -1 from one that lacks the field (before 3.3).

    Raises:
        ConnectionLost: no answer.
        BrokerError: refused, or not supported: a cluster with ZooKeeper has no quorum.
    """
    partition: Any = DescribeQuorumRequest.TopicData.PartitionData(partition_index=0)
    topic = DescribeQuorumRequest.TopicData(topic_name=_METADATA_LOG, partitions=[partition])
    answer = await wire.ask(DescribeQuorumRequest(topics=[topic], max_version=1), None)
    if answer.error_code:
        raise BrokerError(answer.error_code)
    found = answer.topics[0].partitions[0]
    if found.error_code:
        raise BrokerError(found.error_code)
    # The leader lists itself as caught up now.
    leader = next((voter for voter in found.current_voters if voter.replica_id == found.leader_id), None)
    return -1 if leader is None else int(leader.last_caught_up_timestamp or -1)
