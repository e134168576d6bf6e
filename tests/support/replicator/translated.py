"""Compare a copy whose offsets are others with its original: every record once, in order, where it is said to stand."""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence

from confluent_kafka import OFFSET_BEGINNING, TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, Message, TopicPartition

from reconciler.checkpoints.translation.history import SyncHistory
from reconciler.checkpoints.translation.runs import RunPoint
from reconciler.model.declared.cluster import Cluster
from reconciler.model.names.own_names import syncs_topic
from reconciler.model.offsets.runs import Runs
from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.partition.offset_syncs import OffsetSync
from reconciler.state.copies import Copies
from tests.support.clusters.kafka import settled

SECONDS = 300.0
# A commit is answered before its markers are written, and seen by readers after that.
MARKER_SECONDS = 3.0
Content = tuple[object, ...]


def runs_of(target: Cluster, flow: str, remote: str, partitions: int, topology: str = "tests") -> list[Runs]:
    """Return what is recorded of each partition of a copy."""
    copies = Copies(target, topology)
    copies.refresh()
    records = [copies.get(flow, remote, partition) for partition in range(partitions)]
    copies.close()
    assert all(record is not None for record in records)
    return [record.runs for record in records if record is not None]


def committed(
    cluster: Cluster, topic: str, partition: int = 0, isolation: str = "read_committed", least: int = 0
) -> list[Message]:
    """Return the records that one partition holds now; what is open at the end may be committed within a moment.

    Args:
        cluster: where the topic is.
        topic: its name.
        partition: which partition.
        isolation: for which readers.
        least: so many records are waited for: on a busy machine the marker of the last commit comes late.
    """
    consumer = Consumer(
        cluster.librdkafka()
        | {
            "group.id": "tests",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            # At the end of a log the answer that says so is waited for.
            "fetch.wait.max.ms": 20,
            "isolation.level": isolation,
            "log_level": "2",
        }
    )
    # Asked for by name before, the leader is known at once; else the library finds out half a second later.
    settled(lambda: consumer.list_topics(topic, 5))
    place = TopicPartition(topic, partition, OFFSET_BEGINNING)
    consumer.assign([place])
    found: list[Message] = []
    deadline: float | None = None
    try:
        while True:
            message = consumer.poll(SECONDS if deadline is None else max(0.0, deadline - time.monotonic()))
            if message is None:
                assert deadline is not None
                return found
            code = None if (error := message.error()) is None else error.code()
            if code is None:
                found.append(message)
                continue
            if code not in (KafkaError._PARTITION_EOF, KafkaError.UNKNOWN_TOPIC_OR_PART):
                # A broker goes or comes: that is no end of the log.
                continue
            _, end = consumer.get_watermark_offsets(place, cached=True)
            if (message.offset() or 0) >= end:
                return found
            # Its end for readers of committed records is not the log's.
            deadline = deadline or time.monotonic() + SECONDS
            if len(found) >= least:
                deadline = min(deadline, time.monotonic() + MARKER_SECONDS)
    finally:
        consumer.close()


def assert_translated(source: Cluster, topic: str, target: Cluster, runs: Sequence[Runs]) -> int:
    """Assert that every committed record stands once, where its offset translates to; return how many are shifted."""
    shifted = 0
    for partition, translation in enumerate(runs):
        originals = {
            translation.to_target(message.offset()): _content(message)
            for message in committed(source, topic, partition)
        }
        for isolation in ("read_committed", "read_uncommitted"):
            copies = committed(target, f"{source.alias}.{topic}", partition, isolation, len(originals))
            assert {message.offset(): _content(message) for message in copies} == originals
        shifted += sum(translation.at_target(offset).shift != 0 for offset in originals)
    return shifted


def contents(
    cluster: Cluster, topic: str, partition: int = 0, isolation: str = "read_committed", least: int = 0
) -> list[Content]:
    """Return key, value, timestamp and headers of what `committed` returns."""
    return [_content(message) for message in committed(cluster, topic, partition, isolation, least)]


def assert_in_order(spec: FlowSpec, topic: str, partitions: int = 1) -> int:
    """Assert that readers of committed records see the same ones in a copy, in the same order; return how many."""
    count = 0
    for number in range(partitions):
        theirs = contents(spec.source, topic, number)
        ours = contents(spec.target, spec.flow.remote_topic(topic), number, least=len(theirs))
        assert (topic, len(ours)) == (topic, len(theirs))
        assert [(topic, *one) for one in ours] == [(topic, *one) for one in theirs]
        count += len(theirs)
    return count


def assert_repeats_only(cluster: Cluster, topic: str, partition: int = 0) -> int:
    """Assert that readers of uncommitted records see nothing but committed ones, some of them before as well.

    What a transaction held that was aborted stays in the log, and is written again.

    Returns:
        How many they see twice.
    """
    everything = map(repr, contents(cluster, topic, partition, "read_uncommitted"))
    committed_ones = list(map(repr, contents(cluster, topic, partition)))
    seen = list(everything)
    assert set(seen) == set(committed_ones)
    rest = iter(seen)
    assert all(one in rest for one in committed_ones), "not in order"
    return len(seen) - len(committed_ones)


def offset_syncs(target: Cluster, source: str) -> list[OffsetSync]:
    """Return what the offset syncs of copies from `source` say, read as MirrorMaker 2's own (`OffsetSync`)."""
    found = []
    for message in committed(target, syncs_topic(source)):
        key, value = message.key(), message.value()
        assert isinstance(key, bytes)
        assert isinstance(value, bytes)
        (length,) = struct.unpack_from(">h", key)
        topic, (partition,) = key[2 : 2 + length].decode(), struct.unpack(">i", key[2 + length :])
        found.append(OffsetSync(topic, partition, *struct.unpack(">qq", value)))
    return found


def assert_synced(
    source: Cluster, topic: str, target: Cluster, remote: str, partitions: int = 1, *, compacted: bool = False
) -> None:
    """Assert that each partition has offset syncs, and that each of them names one record's place on both sides.

    Of compacted topics those are looked at whose record is left on both sides.
    """
    told = [sync for sync in offset_syncs(target, source.alias) if sync.topic == topic]
    for number in range(partitions):
        originals = {message.offset(): _content(message) for message in committed(source, topic, number)}
        found = committed(target, remote, number, least=0 if compacted else len(originals))
        copies = {message.offset(): _content(message) for message in found}
        mine = [sync for sync in told if sync.partition == number]
        assert mine
        if compacted:
            mine = [sync for sync in mine if sync.source in originals and sync.target in copies]
        for sync in mine:
            assert (sync, copies.get(sync.target)) == (sync, originals.get(sync.source))


def assert_translates(source: Cluster, topic: str, target: Cluster, remote: str, partition: int = 0) -> int:
    """Assert that offset syncs lead from each original to its copy, the last one; return how many there are."""
    history = SyncHistory(target, source.alias, SECONDS)
    history.refresh()
    runs = history.runs((topic, partition))
    history.close()
    originals = committed(source, topic, partition)
    copies = {
        message.offset(): _content(message) for message in committed(target, remote, partition, least=len(originals))
    }
    for message in originals:
        found = runs.downstream(message.offset() or 0)
        assert isinstance(found, RunPoint), (message.offset(), found)
        assert copies[found.offset] == _content(message), (message.offset(), found)
        assert runs.upstream(found.offset) == RunPoint(message.offset() or 0)
    return len(originals)


def _content(message: Message) -> Content:
    # The copy of a time of append is a time of creation; messages of format v0 have none.
    kind, timestamp = message.timestamp()
    time = -1 if kind == TIMESTAMP_NOT_AVAILABLE else timestamp
    return message.key(), message.value(), time, message.headers()
