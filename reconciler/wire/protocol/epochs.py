"""`OffsetForLeaderEpoch`, as consumers ask it: where an epoch ends in a leader's log (KIP-101, KIP-320).

`requests` sends it. The answer is the start of the first later epoch that the leader's log has, and the log end for the
leader's own epoch: records read beyond it under the requested epoch are not in this log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from kafka.protocol.consumer.offsets import OffsetForLeaderEpochRequest

from reconciler.wire.protocol.values import BrokerError

_CONSUMER = -1


class Ask(NamedTuple):
    """Where the epoch `asked` ends, of a partition whose leader's own epoch is `current`."""

    topic: str
    partition: int
    current: int
    asked: int


def request(asks: Sequence[Ask]) -> Any:
    """Return the question for the ends of epochs; each partition may be named once."""
    kind = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    topics: dict[str, Any] = {}
    for ask in asks:
        place = kind.OffsetForLeaderPartition(
            partition=ask.partition, current_leader_epoch=ask.current, leader_epoch=ask.asked
        )
        topics.setdefault(ask.topic, kind(topic=ask.topic, partitions=[])).partitions.append(place)
    return OffsetForLeaderEpochRequest(replica_id=_CONSUMER, topics=list(topics.values()))


def ends(asks: Sequence[Ask], answer: Any) -> dict[Ask, int | Exception]:
    """Return the end of each epoch in a response; -1 for an epoch that the leader does not have.

    Where the leader refuses, for example as its epoch is another, that error.
    """
    by_place = {(ask.topic, ask.partition): ask for ask in asks}
    return {
        by_place[topic.topic, one.partition]: BrokerError(one.error_code) if one.error_code else int(one.end_offset)
        for topic in answer.topics
        for one in topic.partitions
    }
