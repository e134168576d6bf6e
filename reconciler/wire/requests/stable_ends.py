"""The last stable offsets of partitions: one request to a broker for many of them.

`replicator/task/source_ends` uses it for partitions that are not fetched; a fetch response has them anyway.
"""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.wire.protocol.library import ListOffsetsRequest
from reconciler.wire.protocol.values import by_topic
from reconciler.wire.requests.client import LATEST, Wire

_READ_UNCOMMITTED, _READ_COMMITTED = 0, 1


async def stable_ends(
    wire: Wire, node: int, partitions: Sequence[tuple[str, int]], committed: bool = True
) -> dict[tuple[str, int], int]:
    """Return the last stable offset of each partition that the broker leads; others are left out.

    Args:
        wire: to its cluster.
        node: the broker.
        partitions: topics and numbers.
        committed: False for the high watermark instead, the end for consumers with `read_uncommitted`.

    Raises:
        ConnectionLost: no answer.
        BrokerError: UNSUPPORTED_VERSION, the broker does not support the request.
    """
    place = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition
    asked = [
        ListOffsetsRequest.ListOffsetsTopic(
            name=topic,
            partitions=[
                place(partition_index=number, current_leader_epoch=-1, timestamp=LATEST) for number in sorted(numbers)
            ],
        )
        for topic, numbers in by_topic(partitions).items()
    ]
    level = _READ_COMMITTED if committed else _READ_UNCOMMITTED
    request = ListOffsetsRequest(replica_id=-1, isolation_level=level, topics=asked, min_version=2)
    answer = await wire.ask(request, node)
    return {
        (topic.name, found.partition_index): int(found.offset)
        for topic in answer.topics
        for found in topic.partitions
        if not found.error_code and found.offset >= 0
    }
