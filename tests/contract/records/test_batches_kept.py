"""Batches as the replicator makes them, of records of any shape: a real broker takes, keeps and hands them out."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import chain

import pytest
from confluent_kafka import Consumer, TopicPartition
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.records.batch import CODEC_BITS, LARGE, SEQUENCE_MODULUS, Batch, next_sequence
from reconciler.records.merge import merged
from reconciler.records.rewrite import UNLIMITED, recoded, rewritten
from reconciler.records.split import split
from reconciler.wire import ConnectionLost, FetchAnswer, FetchAsk, ProduceAnswer, ProduceAsk, Wire
from tests.support.clusters.kafka import create, declared
from tests.support.records.batches import CODECS, Content, batch, build, compacted, in_a_row
from tests.support.records.contents import contents
from tests.support.replicator.copying import REMOTE
from tests.support.wire.wires import ask

TOPIC = "batches-kept"
SECONDS = 10.0
# Each is a request or more to a real broker, and a read.
EXAMPLES = settings(deadline=None, max_examples=150)
BASE = 1_000


def _often(piece: bytes) -> bytes:
    return piece * 100


# A batch that gains nothing by its codec goes without: some of these do gain.
repeated = st.builds(Content, st.integers(0, 2**42), st.none(), st.binary(min_size=1, max_size=20).map(_often))
records = contents | repeated
groups = st.lists(st.lists(records, min_size=1, max_size=4), min_size=1, max_size=6)
codecs = st.sampled_from(CODECS)
# A broker that knows nothing of a producer takes any first sequence; the last ones are followed by 0.
sequences = st.just(0) | st.integers(SEQUENCE_MODULUS - 8, SEQUENCE_MODULUS - 1)


class Log:
    """A partition, what is appended to it, and what a consumer reads there."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        create(cluster, TOPIC, 1, REMOTE)
        self._cluster: Cluster = declared("east", cluster)
        config = {"group.id": "unused", "auto.offset.reset": "error", "fetch.wait.max.ms": 10, "log_level": "2"}
        self._consumer = Consumer(cluster.client_config() | config)

    def close(self) -> None:
        self._consumer.close()

    def append(self, batches: Sequence[Batch], sequence: int) -> list[Batch]:
        """Write batches as a producer that the broker has never seen, and return them as the broker has them."""
        producer = random.SystemRandom().randrange(2**62)
        kept: list[Batch] = []

        async def write(wire: Wire) -> None:
            info = (await wire.topics([TOPIC]))[TOPIC]
            leader = info.partitions[0]
            starts: list[int] = []
            expected = sequence
            lost: list[ConnectionLost] = []
            for one in batches:
                data = one.rewritten(producer, 0, expected)
                pending = await wire.produce(leader.node, [ProduceAsk(TOPIC, info.topic_id, 0, data)], lost.append)
                starts.append(_start(pending))
                expected = next_sequence(expected, one.record_count)
            upto = starts[-1] + batches[-1].record_count
            # Times far apart begin segments, and an answer holds what one of them has.
            while (at := kept[-1].next_offset if kept else starts[0]) < upto:
                asked = FetchAsk(TOPIC, info.topic_id, 0, at, leader.epoch, 2**24)
                found = _whole(await wire.fetch(leader.node, [asked], 500, 2**24, committed=True))
                assert found, f"nothing is read at offset {at}"
                kept.extend(found)
            assert [one.base_offset for one in kept] == starts

        ask(self._cluster, write, SECONDS)
        return kept

    def read(self, start: int, count: int) -> list[Content]:
        """Return the next `count` records from `start` on as an application gets them."""
        self._consumer.assign([TopicPartition(TOPIC, 0, start)])
        messages = self._consumer.consume(count, SECONDS)
        assert [message.error() for message in messages] == [None] * count
        assert [message.offset() for message in messages] == list(range(start, start + count))
        return [
            Content(message.timestamp()[1], message.key(), message.value(), tuple(message.headers() or ()))
            for message in messages
        ]


def _start(answers: Sequence[ProduceAnswer]) -> int:
    (answer,) = answers
    assert (answer.error, answer.message) == (0, None)
    return answer.base_offset


def _whole(answers: Sequence[FetchAnswer]) -> list[Batch]:
    (answer,) = answers
    assert answer.error == 0
    return list(split(answer.records))


@pytest.fixture(scope="module")
def log(source_cluster: EmbeddedCluster) -> Iterator[Log]:
    log = Log(source_cluster)
    yield log
    log.close()


def check(log: Log, batches: Sequence[Batch], expected: Sequence[Content], sequence: int) -> None:
    """Assert that a broker takes the batches, keeps what they hold, and that a consumer reads the records."""
    kept = log.append(batches, sequence)
    assert all(one.is_intact for one in kept)
    assert [(one.body, one.attributes, one.record_count) for one in kept] == [
        (one.body, one.attributes, one.record_count) for one in batches
    ]
    assert [(one.base_timestamp, one.max_timestamp) for one in kept] == [
        (one.base_timestamp, one.max_timestamp) for one in batches
    ]
    assert log.read(kept[0].base_offset, len(expected)) == list(expected)


@given(groups, codecs, sequences)
@EXAMPLES
def test_what_passes_through_is_kept(log: Log, groups: list[list[Content]], codec: int, sequence: int) -> None:
    check(log, in_a_row(groups, BASE, codec), list(chain.from_iterable(groups)), sequence)


@given(groups, sequences)
@EXAMPLES
def test_what_is_merged_is_kept(log: Log, groups: list[list[Content]], sequence: int) -> None:
    check(log, [merged(in_a_row(groups, BASE))], list(chain.from_iterable(groups)), sequence)


@given(st.lists(records, min_size=1, max_size=8), codecs, codecs, sequences)
@EXAMPLES
def test_what_gets_another_codec_is_kept(
    log: Log, written: list[Content], codec: int, other: int, sequence: int
) -> None:
    check(log, [recoded(batch(*written, codec=codec), other)], written, sequence)


@given(st.lists(records, min_size=2, max_size=12), codecs, sequences, st.data())
@EXAMPLES
def test_what_is_rewritten_is_kept(
    log: Log, written: list[Content], codec: int, sequence: int, data: st.DataObject
) -> None:
    """The holes between them are none of this broker's business: its copy of the records lies close."""
    first = data.draw(st.integers(0, len(written) - 1))
    gone = data.draw(st.sets(st.integers(0, len(written) - 1), max_size=len(written) - 1))
    limit = data.draw(st.integers(60, 1_000) | st.just(UNLIMITED))
    left = [content for number, content in enumerate(written) if number >= first and number not in gone]
    (one,) = split(compacted(written, gone, BASE, codec) if gone else build(written, BASE, codec))
    batches = [piece for piece in rewritten(one, BASE + first, limit) if isinstance(piece, Batch)]
    if left:
        check(log, batches, left, sequence)
    else:
        assert batches == []


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("count", [1, 40])
def test_large_batches_are_kept_in_their_codecs(log: Log, codec: int, count: int) -> None:
    """Of batches so large the checksum is made out of the one that came with them."""
    noise = random.Random(codec)
    repeated = b"value" * (4_000 // count)
    written = [Content(1_000 + n, b"key", noise.randbytes(40_000 // count) + repeated) for n in range(count)]
    passing, other = batch(*written, base_offset=BASE, codec=codec), CODECS[codec - 1]
    assert passing.attributes & CODEC_BITS == codec
    assert passing.size > LARGE
    check(log, [passing], written, SEQUENCE_MODULUS - 1)
    check(log, [recoded(passing, other)], written, 0)
