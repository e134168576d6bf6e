"""Where partitions end for readers of committed records: one question to a broker about many of them.

`replicator/task/source_ends` asks it about partitions that nobody fetches; whoever fetches is told the end with every
answer.
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
        committed: False for the high watermark instead, where whoever reads open transactions stops.

    Raises:
        ConnectionLost: no answer.
        BrokerError: UNSUPPORTED_VERSION, the broker does not know such requests.
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
