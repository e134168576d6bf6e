"""One channel in a fast path, with its fields as bytes where requests hold bytes.

`fast_path` makes one for each channel; `sender` gets them with the batches.
"""

from __future__ import annotations

from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.in_flight import InFlightBatch
from reconciler.wire import FetchAsk, compact_string


class FastPathPartition:
    """A channel in a fast path.

    Args:
        channel: the channel.
        ask: the fetch request for it.
        by_id: whether requests to the target name topics by their ids.

    Attributes:
        channel: the channel.
        opening: the channel's opening when the fast path began.
        source: id of its topic at the source.
        target: id or name of its topic at the target.
        by_id: whether it is the id.
        partition: its number.
        index: the partition number as requests encode it.
        node: id of its leader at the target.
        asked: the offset that was fetched last.
        epoch: of the source's leader.
        most: the bytes that a fetch may return.
    """

    __slots__ = (
        "asked",
        "by_id",
        "channel",
        "epoch",
        "index",
        "most",
        "node",
        "opening",
        "partition",
        "source",
        "target",
    )

    def __init__(self, channel: Channel, ask: FetchAsk, by_id: bool) -> None:
        sides = channel.sides
        assert sides is not None, "a running channel has its sides"
        assert ask.topic_id is not None, "the fast path names topics by their ids"
        target_id = sides.target_id if by_id else None
        assert target_id is not None or not by_id, "it is known where requests need it"
        self.channel = channel
        self.opening = channel.opening
        self.source = ask.topic_id.bytes
        self.by_id = by_id
        self.target = compact_string(channel.place.remote) if target_id is None else target_id.bytes
        self.partition = ask.partition
        self.index = ask.partition.to_bytes(4, "big")
        self.node = sides.target.node
        self.asked = ask.offset
        self.epoch = ask.leader_epoch
        self.most = ask.max_bytes


# A channel, and its batch in flight.
FastPathBatch = tuple[FastPathPartition, InFlightBatch]
