"""Where another replicator has ended: the position that it noted, and behind that what its copy holds already.

MirrorMaker 2 and Mirus note their positions after they have written: what was written last, and not noted when they
were killed, stands in the copy. It is found by its content: of all places at or behind the noted position the copy ends
where it has the most records, backwards, in common with the original.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

from reconciler.checkpoints.translation.walk import RecordReader
from reconciler.model.base.shape import fields, fits, parsed, row, text, topic_name, whole
from reconciler.model.offsets.committed import Log, LogBounds

MOST_UNNOTED = 100_000
"""Records behind a noted position that are looked for in a copy: more than a minute of what MirrorMaker 2 writes."""
# Offsets before a noted position that are compared as well: they tell equal records apart.
_BEFORE = 10_000
# A copy that was written in transactions has markers among its records, and what was aborted.
_MARKERS = 1_000
# Bytes of a key or a value of Connect: names and a number.
_LARGEST = 65_536
_PLACE = {"topic": topic_name, "partition": whole(0)}
_CLUSTER = {"cluster": text()}


class Noted(NamedTuple):
    """A position as Kafka Connect keeps it.

    Attributes:
        connector: its name.
        log: the original.
        offset: of the next record.
    """

    connector: str
    log: Log
    offset: int


def noted_by_mirror_maker(reader: RecordReader, topic: str, partitions: int, source: str) -> list[Noted]:
    """Return the positions of MirrorMaker 2's connectors in a topic where Kafka Connect keeps offsets.

    Source: `MirrorUtils.wrapPartition` and `wrapOffset`; the offset is that of the last record that was copied.

    Args:
        reader: of the cluster with the topic, for committed records.
        topic: compacted; a key has the connector's name and the partition, a value the offset, or nothing any more.
        partitions: of the topic.
        source: alias of the source, as it was configured.

    Raises:
        AnabranchError: as `RecordReader.messages`.
    """
    return [one._replace(offset=one.offset + 1) for one in _newest(reader, topic, partitions, source)]


def noted_by_mirus(reader: RecordReader, topic: str, partitions: int) -> list[Noted]:
    """Return the positions of Mirus' sources in a topic where Kafka Connect keeps offsets.

    Source: `TopicPartitionSerDe.asMap` and `MirusSourceTask.toSourceRecord`: a key names no cluster, and the offset is
    that of the next record. Arguments and errors are those of `noted_by_mirror_maker`.
    """
    return _newest(reader, topic, partitions, None)


def _newest(reader: RecordReader, topic: str, partitions: int, source: str | None) -> list[Noted]:
    """Return the newest offset of each key with a cluster, or without any, as it is written; none that was reset."""
    found: dict[tuple[str, Log], int | None] = {}
    for number in range(partitions):
        for message in reader.messages(topic, number, 0):
            key = fits(_key, message.key() or b"") if message.error() is None else None
            if key is not None and key[1].get("cluster") == source:
                found[key[0], (key[1]["topic"], key[1]["partition"])] = _offset(message.value())
    return [Noted(name, log, offset) for (name, log), offset in sorted(found.items()) if offset is not None]


def _offset(value: bytes | None) -> int | None:
    """Return the offset in a value; None where it is none, as of a position that was reset."""
    return fits(read_value, value or b"")


def read_key(key: bytes) -> tuple[str, dict[str, Any]]:
    """Return the connector's name of a key, and cluster, topic and partition.

    Raises:
        Misfit: it is no key of MirrorMaker 2's.
    """
    name, place = row(text(), lambda value: fields(value, _PLACE | _CLUSTER))(parsed(key, _LARGEST))
    return name, place


def _key(key: bytes) -> tuple[str, dict[str, Any]]:
    name, place = row(text(), lambda value: fields(value, _PLACE, _CLUSTER))(parsed(key, _LARGEST))
    return name, place


def read_value(value: bytes) -> int:
    """Return the offset in a value.

    Raises:
        Misfit: it is none of MirrorMaker 2's.
    """
    return int(fields(parsed(value, _LARGEST), {"offset": whole(0)})["offset"])


class Ended(NamedTuple):
    """Where a copy goes on.

    Attributes:
        offset: of the next record of the original.
        unnoted: how many records the copy holds behind the position that was noted.
        is_whole: whether the copy ends with records of the original and no others, as far as was compared.
    """

    offset: int
    unnoted: int
    is_whole: bool = True


def ended(source: RecordReader, target: RecordReader, original: Log, noted: int, copy: Log, bounds: LogBounds) -> Ended:
    """Return where a copy goes on, of which a position was noted.

    Args:
        source: reads the originals.
        target: reads the copies, committed records alone.
        original: the original.
        noted: offset of its next record by the other replicator's own record.
        copy: the copy, which nothing writes to any more.
        bounds: of the copy's log.

    Raises:
        AnabranchError: as `RecordReader.messages`.
    """
    begin = max(0, noted - _BEFORE)
    originals = list(islice(source.records(*original, begin), MOST_UNNOTED + _BEFORE))
    known = sum(one.offset < noted for one in originals)
    if known == len(originals) or bounds.end <= bounds.start:
        return Ended(noted, 0)
    first = max(bounds.start, bounds.end - 2 * len(originals) - _MARKERS)
    last = list(target.records(*copy, first))
    alike = _common_ends([one.mark for one in originals], [one.mark for one in last])
    # Of equal ones the first: equal records beyond the window are copied again, and none is left out.
    end = max(range(known, len(originals) + 1), key=lambda position: (alike[position], -position))
    is_whole = alike[end] == min(end, len(last))
    return Ended(originals[end - 1].offset + 1 if end > known else noted, end - known, is_whole)


def _common_ends(whole: Sequence[int], part: Sequence[int]) -> list[int]:
    """Return, for each beginning of a sequence by its length, how long an end it has in common with another sequence.

    Linear, by the Z function of both, reversed: logs of equal records would else take the square.
    """
    backwards = [*reversed(part), None, *reversed(whole)]
    alike = [0] * len(backwards)
    left = right = 0
    for at in range(1, len(backwards)):
        length = min(right - at, alike[at - left]) if at < right else 0
        while at + length < len(backwards) and backwards[length] == backwards[at + length]:
            length += 1
        alike[at] = length
        if at + length > right:
            left, right = at, at + length
    # A beginning of length n ends, reversed, where `whole` without its last ones begins.
    begin = len(part) + 1
    return [alike[begin + len(whole) - length] if length else 0 for length in range(len(whole) + 1)]
