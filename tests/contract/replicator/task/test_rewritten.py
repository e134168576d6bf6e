"""What cannot pass byte for byte is rewritten: hard logs as topics of one flow, at their own offsets.

`hard` makes all of them and lets one task copy them; each test looks at one.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.embedded import ClusterOptions, EmbeddedCluster, running
from reconciler.model.names.own_names import syncs_topic
from reconciler.model.offsets.runs import Runs
from reconciler.model.tasks.spec import FlowSpec
from reconciler.records import codecs
from reconciler.records.batch import Batch
from reconciler.replicator.driver.discovery import matching
from tests.support.clusters.kafka import create, declared, delete_records, patient
from tests.support.records.batches import GZIP, LZ4, NONE, SNAPPY, build, build_old, some
from tests.support.replicator.copying import REMOTE, Copied, all_running, copy, fill, identical, spec_of
from tests.support.replicator.filling import fill_in_parts
from tests.support.replicator.translated import assert_in_order, assert_synced, runs_of
from tests.support.wire.wires import batch_of

SECONDS = 300.0
NAMES = codecs.NAMES
EAGER = ClusterOptions(overrides={"log.cleaner.backoff.ms": "100", "log.cleaner.threads": "1"})
COMPACTED = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.001"}
_KEPT = {"partition.metadata"}
_CLEAN = ".kafka_cleanshutdown"


class Hard:
    """The topics, and what a task made of them."""

    def __init__(self, source: EmbeddedCluster, target: EmbeddedCluster) -> None:
        self.source, self.target = source, target
        self.prefix = f"hard-{uuid.uuid4().hex[:8]}"
        self.spec: FlowSpec = spec_of(declared("east", source), declared("west", target), f"{self.prefix}-.*")
        self.copied: Copied | None = None

    def topic(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    def make(self, name: str, here: dict[str, str] | None = None, there: dict[str, str] | None = None) -> str:
        create(self.source, self.topic(name), 1, here)
        create(self.target, f"east.{self.topic(name)}", 1, REMOTE | (there or {}))
        return self.topic(name)

    def batch(self, name: str, offset: int, at_source: bool = True) -> Batch:
        """Return the batch that holds an offset at the source, or at the target."""
        if at_source:
            return batch_of(self.spec.source, self.topic(name), offset)
        return batch_of(self.spec.target, f"east.{self.topic(name)}", offset)


def compact(hard: Hard) -> None:
    """Write batches of which the cleaner takes records out of the middle, and tombstones; wait until it did."""
    topic = hard.make("compacted", COMPACTED)
    producer = patient(hard.source, topic, **{"compression.type": "lz4"})
    for number in range(60):
        key = b"once-%d" % number if number % 5 == 2 else b"again-%d" % (number % 3)
        producer.produce(topic, key=key, value=None if number % 7 == 3 else b"value-%d" % number)
        if number % 20 == 19:
            producer.flush(SECONDS)
    deadline = time.monotonic() + SECONDS
    while hard.batch("compacted", 0).record_count == 20:
        assert time.monotonic() < deadline, "nothing is compacted"
        # Only segments that are not written to any more are compacted.
        producer.produce(topic, key=b"z", value=b"last")
        producer.flush(SECONDS)
        time.sleep(0.2)


def divide(hard: Hard, codec: str) -> None:
    """Write batches larger than the target takes, of records that fit."""
    topic = hard.make(f"divided-{codec}", there={"max.message.bytes": "8000"})
    producer = patient(hard.source, topic, **{"compression.type": codec, "batch.size": 200_000})
    noise = random.Random(codec)
    for number in range(300):
        value = noise.randbytes(noise.randrange(20, 900))
        producer.produce(topic, key=b"%d" % number, value=value, timestamp=1_700_000_000_000 + number)
    assert producer.flush(SECONDS) == 0


def trim(hard: Hard) -> None:
    """Delete records up to the middle of a batch."""
    topic = hard.make("trimmed")
    producer = patient(hard.source, topic, **{"compression.type": "zstd"})
    for number in range(100):
        producer.produce(topic, value=b"value-%d" % number)
    assert producer.flush(SECONDS) == 0
    delete_records(hard.source, topic, 37)


def plant_old(hard: Hard) -> None:
    """Put messages of old formats into a log of a stopped broker, as one that was upgraded has them.

    No reader of today understands lz4 in format v0, so the unit tests alone know it.
    """
    topic = hard.make("old")
    time.sleep(1)
    pieces, offset = [], 0
    for magic in (0, 1):
        for codec in (NONE, GZIP, SNAPPY, *([LZ4] if magic else [])):
            pieces.append(build_old(magic, offset, some(4, 1_000 + offset), codec))
            offset += 4
    pieces.append(build(some(3), offset))
    broker = hard.source.broker()
    hard.source.stop_broker()
    replace_log(broker.data / f"{topic}-0", pieces)
    # Without it the broker recovers the log: it reads every batch and builds the indexes.
    (broker.data / _CLEAN).unlink(missing_ok=True)
    hard.source.start_broker()


def replace_log(folder: Path, pieces: Sequence[bytes]) -> None:
    for path in folder.iterdir():
        if path.name not in _KEPT:
            path.unlink()
    (folder / f"{0:020d}.log").write_bytes(b"".join(pieces))


@pytest.fixture(scope="module")
def hard(target_cluster: EmbeddedCluster) -> Iterator[Hard]:
    with running(EmbeddedCluster("eager", EAGER)) as (source,):
        hard = Hard(source, target_cluster)
        plant_old(hard)
        for codec in NAMES:
            fill(source, hard.make(f"stamped-{codec}", {"message.timestamp.type": "LogAppendTime"}), 200, codec=codec)
            divide(hard, codec)
        trim(hard)
        compact(hard)
        hard.copied = copy(hard.spec)
        yield hard


def test_all_are_copied(hard: Hard) -> None:
    assert hard.copied is not None
    assert all_running(hard.copied.status.partitions), [str(one.reason) for one in hard.copied.status.partitions]


@pytest.mark.parametrize("codec", NAMES)
def test_records_keep_the_time_of_their_append(hard: Hard, codec: str) -> None:
    name = f"stamped-{codec}"
    assert hard.batch(name, 0).is_log_append_time
    assert not hard.batch(name, 0, at_source=False).is_log_append_time
    assert identical(hard.spec, hard.topic(name)) == 200


def test_holes_inside_batches_stay_holes(hard: Hard) -> None:
    first = hard.batch("compacted", 0)
    assert 0 < first.record_count < first.last_offset_delta + 1
    assert identical(hard.spec, hard.topic("compacted")) > 12


def test_what_a_predecessor_left_of_filling_a_hole_is_gone_on_with(hard: Hard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each filling writes a part, then its connection is lost: the next owner counts what stands there."""
    topic = hard.topic("compacted")
    create(hard.target, f"again.{topic}", 1, REMOTE)
    lost = fill_in_parts(monkeypatch)
    spec = spec_of(declared("again", hard.source), hard.spec.target, topic)
    assert all_running(copy(spec).status.partitions)
    assert next(lost) > 2
    assert identical(spec, topic) > 12
    assert runs_of(spec.target, spec.flow.name, f"again.{topic}", 1) == [Runs()]


@pytest.mark.parametrize("codec", NAMES)
def test_batches_too_large_are_divided(hard: Hard, codec: str) -> None:
    name = f"divided-{codec}"
    assert hard.batch(name, 0).size > 8_000
    assert hard.batch(name, 0, at_source=False).size <= 8_000
    assert identical(hard.spec, hard.topic(name)) == 300


def test_a_log_that_begins_inside_a_batch_is_copied_from_there(hard: Hard) -> None:
    assert hard.batch("trimmed", 37).base_offset == 0
    assert identical(hard.spec, hard.topic("trimmed")) == 63


def test_messages_of_old_formats_are_copied(hard: Hard) -> None:
    assert identical(hard.spec, hard.topic("old")) == 4 * 7 + 3


def test_all_are_copied_with_offsets_of_their_own(hard: Hard) -> None:
    """Compacted, with tombstones, trimmed within a batch, divided, stamped, of old formats: without the holes."""
    spec = spec_of(declared("dense", hard.source), hard.spec.target, f"{hard.prefix}-.*")
    spec = replace(spec, flow=replace(spec.flow, offsets="translated"))
    create(hard.target, syncs_topic("dense"), 1, {"cleanup.policy": "compact"})
    topics = {place.topic for place in matching(spec)}
    assert len(topics) == 2 * len(NAMES) + 3
    for topic in topics:
        divided = {"max.message.bytes": "8000"} if "divided" in topic else {}
        create(hard.target, f"dense.{topic}", 1, REMOTE | divided)
    assert all_running(copy(spec).status.partitions)
    for topic in topics:
        assert assert_in_order(spec, topic) > 10
        assert_synced(spec.source, topic, spec.target, f"dense.{topic}", compacted="compacted" in topic)


@pytest.mark.parametrize("codec", NAMES)
def test_a_copy_is_compressed_as_its_flow_says(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str, codec: str
) -> None:
    topics = {written: f"{topic_name}-{written}" for written in NAMES}
    for written, topic in topics.items():
        create(source_cluster, topic)
        create(target_cluster, f"east.{topic}", 1, REMOTE)
        fill(source_cluster, topic, 500, codec=written)
    spec = spec_of(declared("east", source_cluster), declared("west", target_cluster), f"{topic_name}-.*")
    assert all_running(copy(replace(spec, flow=replace(spec.flow, compression=codec))).status.partitions)
    found = {topic: batch_of(spec.target, f"east.{topic}", 0).attributes for topic in topics.values()}
    assert set(found.values()) == {NAMES.index(codec)}
    assert identical(spec, *topics.values()) == 500 * len(NAMES)
