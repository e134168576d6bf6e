"""Compares a sample of a copy with its original, record by record: keys, values, headers, timestamps, order.

Called by competitors once they have replicated everything; what differs voids what was measured. Of each partition are
read the first and the last records, and, where the copy has the original's offsets, stretches in between as well; then
the offsets are compared, too. The number of records is compared by `watch`, from the log segments.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

Side = tuple[Mapping[str, str], str]
Seen = tuple[object, ...]

EDGE = 1000
_STRETCHES = 3
_STRETCH = 200
_SECONDS = 60.0
_TURN = 0.05
# Markers at the end of a transactional copy take offsets, so more is read than is compared.
_MARKERS = 500


def sample_fault(original: Side, copy: Side, partitions: int, with_offsets: bool) -> str:
    """Return what differs, or nothing.

    Args:
        original: how a client connects to the source, and the topic.
        copy: the same of the copy.
        partitions: how many both have.
        with_offsets: whether every record must stand at its original offset.
    """
    with _reader(original, partitions) as ours, _reader(copy, partitions) as theirs:
        if with_offsets and ours.bounds != theirs.bounds:
            return f"it holds the offsets {theirs.bounds}, not {ours.bounds}"
        heads, tails = ((ours.edges(last), theirs.edges(last)) for last in (False, True))
        for number in range(partitions):
            if found := first_difference(heads[0][number], heads[1][number]):
                return f"partition {number}: from the beginning, {found}"
            if found := _last_difference(tails[0][number], tails[1][number]):
                return f"partition {number}: {found}"
        return _between(ours, theirs) if with_offsets else ""


def ends_fault(original: Side, copy: Side, partitions: int) -> str:
    """Return what differs at the ends of two logs that should have the same offsets, or nothing.

    Their starts may differ, as retention works on each side by itself.
    """
    with _reader(original, partitions) as ours, _reader(copy, partitions) as theirs:
        ends, found = ([high for _, high in side.bounds] for side in (ours, theirs))
        if ends != found:
            return f"it ends at the offsets {found}, not {ends}"
        starts = [
            max(low, mine, high - EDGE) for (low, high), (mine, _) in zip(ours.bounds, theirs.bounds, strict=True)
        ]
        originals, copies = (
            [[(one.offset(), *_content(one)) for one in records] for records in side.pieces(starts, EDGE)]
            for side in (ours, theirs)
        )
        for number, at in enumerate(starts):
            if problem := first_difference(originals[number], copies[number]):
                return f"partition {number}: from offset {at}, {problem}"
    return ""


def first_difference(originals: list[Seen], copies: list[Seen]) -> str:
    """Return the first place at which two lists of records differ, or nothing."""
    for place, (original, copy) in enumerate(zip_longest(originals, copies)):
        if original != copy:
            return f"record {place} is {_short(copy)}, not {_short(original)}"
    return ""


class _Reader:
    """Reads pieces of all partitions of a topic.

    Attributes:
        bounds: log start and log end of each partition.
    """

    def __init__(self, consumer: Consumer, topic: str, partitions: int) -> None:
        self._consumer = consumer
        self._topic = topic
        self.bounds = [
            consumer.get_watermark_offsets(TopicPartition(topic, number), _SECONDS) for number in range(partitions)
        ]

    def edges(self, last: bool) -> list[list[Seen]]:
        """Return the first or the last records of each partition, without their offsets."""
        starts = [max(low, high - EDGE - _MARKERS) if last else low for low, high in self.bounds]
        found = self.pieces(starts, EDGE + _MARKERS if last else EDGE)
        return [[_content(one) for one in records[-EDGE:]] for records in found]

    def pieces(self, starts: Sequence[int], count: int) -> list[list[Message]]:
        """Return at most `count` records of each partition from an offset on."""
        found: list[list[Message]] = [[] for _ in starts]
        left = {number for number, at in enumerate(starts) if at < self.bounds[number][1]}
        places = [TopicPartition(self._topic, number, starts[number]) for number in left]
        self._consumer.assign(places)
        deadline = time.monotonic() + _SECONDS
        while left and time.monotonic() < deadline:
            for one in self._consumer.consume(EDGE, _TURN):
                number, error = one.partition(), one.error()
                if error is None:
                    found[number].append(one)
                elif error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                if number in left and (error is not None or len(found[number]) >= count):
                    left.discard(number)
                    self._consumer.pause([TopicPartition(self._topic, number)])
        # What is paused would stay so in the next assignment.
        self._consumer.resume(places)
        return [records[:count] for records in found]


def _last_difference(originals: list[Seen], copies: list[Seen]) -> str:
    shortest = min(len(originals), len(copies))
    if shortest == 0:
        return "its end holds no records" if originals or copies else ""
    found = first_difference(originals[-shortest:], copies[-shortest:])
    return f"of the last {shortest}, {found}" if found else ""


def _between(ours: _Reader, theirs: _Reader) -> str:
    """Compare stretches with their offsets, from the first records of each partition to the last."""
    for piece in range(_STRETCHES + 1):
        starts = [low + (max(low, high - _STRETCH) - low) * piece // _STRETCHES for low, high in ours.bounds]
        originals, copies = (
            [[(one.offset(), *_content(one)) for one in records] for records in side.pieces(starts, _STRETCH)]
            for side in (ours, theirs)
        )
        for number, at in enumerate(starts):
            if found := first_difference(originals[number], copies[number]):
                return f"partition {number}: from offset {at}, {found}"
    return ""


def _content(one: Message) -> Seen:
    return (one.timestamp(), one.key(), one.value(), one.headers())


def _short(seen: Seen | None) -> str:
    text = "missing" if seen is None else repr(seen)
    return text if len(text) <= EDGE else f"{text[:EDGE]}…"


@contextmanager
def _reader(side: Side, partitions: int) -> Iterator[_Reader]:
    client, topic = side
    config = {
        **client,
        "group.id": f"{topic}-sample",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
        "auto.offset.reset": "error",
        # A new place waits for the answer to the request before.
        "fetch.wait.max.ms": 20,
        "queued.max.messages.kbytes": 4096,
        "log_level": 2,
    }
    consumer = Consumer(config)
    try:
        yield _Reader(consumer, topic, partitions)
    finally:
        consumer.close()
