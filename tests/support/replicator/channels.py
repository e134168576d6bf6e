"""Channels without brokers: opened by hand, fed with answers, emptied by hand."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.model.tasks.status import Reason
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.in_flight import InFlightBatch
from reconciler.replicator.partition.place import LogEnd, PartitionSides
from reconciler.replicator.partition.shares import Place
from reconciler.wire import FetchAnswer, Leader, ProduceAnswer
from tests.support.records.batches import CONTROL, build, build_old, damaged, marked, some, thinned

PLACE = Place("orders", 3, "east.orders")
SIDES = PartitionSides(Leader(1, 5, 0), None, Leader(2, 7, 0), None)
PRODUCER_ID, EPOCH = 77, 0
OUTAGE = Reason("AB220", "the connection broke")


# A batch that cannot pass to offset 5, by the code that says why.
AT = 5
CANNOT_PASS = {
    "AB201": damaged(build_old(1, AT)),
    "AB207": thinned(build(some(4), AT), 2),
    "AB216": damaged(build(some(2), AT)),
}
MARKER = marked(build(some(1), AT), CONTROL)


class Gapped:
    """Counts how often a channel asks to have its gap filled."""

    def __init__(self) -> None:
        self.asked: list[Channel] = []

    def __call__(self, channel: Channel) -> None:
        self.asked.append(channel)


def opened(end: int = 0, sequence: int = 0, shift: int = 0, at_gap: Callable[[Channel], None] | None = None) -> Channel:
    """Return a channel whose copy ends at `end`."""
    channel = Channel(PLACE, at_gap)
    channel.open(SIDES, LogEnd(end, PRODUCER_ID, EPOCH, sequence, shift))
    return channel


def log(base_offset: int, *counts: int) -> bytes:
    """Return batches of `counts` records, one behind the other."""
    pieces = []
    for count in counts:
        pieces.append(build(some(count), base_offset))
        base_offset += count
    return b"".join(pieces)


def fetched(records: bytes, stable: int = -1, error: int = 0) -> FetchAnswer:
    return FetchAnswer(PLACE.topic, PLACE.partition, error, stable, stable, 0, records)


def feed(channel: Channel, records: bytes, stable: int = -1, now: float = 0.0) -> int:
    """Hand the channel what it asks for."""
    return channel.receive(fetched(records, stable), channel.fetch_at, channel.opening, now)


def answer(base_offset: int = -1, error: int = 0, message: str | None = None) -> ProduceAnswer:
    return ProduceAnswer(PLACE.remote, PLACE.partition, error, base_offset, message)


def land(channel: Channel, sent_batch: InFlightBatch, now: float = 0.0) -> bool:
    """Let the target say that `parcel` stands where it must."""
    return channel.answered(sent_batch, answer(sent_batch.landing), now)


def send_all(channel: Channel) -> list[InFlightBatch]:
    """Send as much as the channel lets go."""
    sent = []
    while channel.can_send():
        sent.append(channel.send())
    return sent
