"""A seat: what an express needs of a channel again and again, as bytes where requests want bytes.

`fast_path` makes one for each channel that it takes along, `sender` hears of them.
"""

from __future__ import annotations

from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.in_flight import Parcel
from reconciler.wire import FetchAsk, compact_string


class FastPathPartition:
    """A channel in an express.

    Args:
        channel: the channel.
        ask: what is asked of the source for it.
        by_id: whether requests to the target name topics by their ids.

    Attributes:
        channel: the channel.
        opening: in which it was taken along.
        source: its topic at the source, by its id.
        target: the same at the target, by its id or by its name.
        by_id: whether by its id.
        partition: its number.
        index: that, as requests want it.
        node: who leads it at the target.
        asked: the offset that was asked for last.
        epoch: of the source's leader.
        most: how many bytes are asked for.
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
        assert sides is not None, "a running channel knows its sides"
        assert ask.topic_id is not None, "an express names topics by their ids"
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


# Who is taken along, and what of it is on its way.
FastPathBatch = tuple[FastPathPartition, Parcel]
