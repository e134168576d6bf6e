"""Deletion of a partition's oldest records, for `padding` alone."""

from __future__ import annotations

from typing import Any

from reconciler.wire.protocol.library import DeleteRecordsRequest
from reconciler.wire.protocol.values import BrokerError
from reconciler.wire.requests.client import Wire

# Less than a request may take, so that the broker itself reports that its replicas are late.
_REPLICAS_MS = 2_000


async def delete_records(wire: Wire, node: int, topic: str, partition: int, before: int) -> int:
    """Move the log start of a partition to `before`; return the lowest log start of its replicas.

    Raises:
        ConnectionLost: no answer.
        BrokerError: the leader refuses, or its replicas are late (REQUEST_TIMED_OUT).
    """
    place: Any = DeleteRecordsRequest.DeleteRecordsTopic.DeleteRecordsPartition(
        partition_index=partition, offset=before
    )
    asked = DeleteRecordsRequest.DeleteRecordsTopic(name=topic, partitions=[place])
    answer = await wire.ask(DeleteRecordsRequest(topics=[asked], timeout_ms=_REPLICAS_MS), node)
    found = answer.topics[0].partitions[0]
    if found.error_code:
        raise BrokerError(found.error_code)
    return int(found.low_watermark)
