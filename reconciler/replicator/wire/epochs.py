"""`OffsetForLeaderEpoch`, as consumers ask it: where an epoch ends in a leader's log (KIP-101, KIP-320).

`requests` sends it. The answer is the start of the first later epoch that the leader's log has, and the log end for the
leader's own epoch: whoever read further under the epoch asked for has read what is not in this log.
"""

from __future__ import annotations

from typing import Any

from kafka.protocol.consumer.offsets import OffsetForLeaderEpochRequest

from reconciler.replicator.wire.values import ErrorCode

_CONSUMER = -1


def request(topic: str, partition: int, current: int, asked: int) -> Any:
    """Return the question for the end of epoch `asked`, to a leader whose own epoch is `current`."""
    place = OffsetForLeaderEpochRequest.OffsetForLeaderTopic.OffsetForLeaderPartition(
        partition=partition, current_leader_epoch=current, leader_epoch=asked
    )
    topics = [OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic=topic, partitions=[place])]
    return OffsetForLeaderEpochRequest(replica_id=_CONSUMER, topics=topics)


def end(answer: Any) -> int | None:
    """Return the end that an answer tells; None when the leader does not know the epoch.

    Raises:
        ErrorCode: the leader refuses, for example as its epoch is another.
    """
    found = answer.topics[0].partitions[0]
    if found.error_code:
        raise ErrorCode(found.error_code)
    return None if found.end_offset < 0 else int(found.end_offset)
