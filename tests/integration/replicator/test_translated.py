"""Copies with offsets of their own, whatever dies: each source's records are there once, complete and in order."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer

from reconciler.checkpoints.translation.translate import Translator
from reconciler.declare import load
from reconciler.embedded import EmbeddedCluster, running
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.topology import Topology
from tests.support.clusters.kafka import create, declared, delete_records
from tests.support.clusters.traffic import WEEK_MS, Traffic, Transactions
from tests.support.commands.command import anabranch
from tests.support.replicator.all_kinds import check_paired
from tests.support.replicator.copying import fill
from tests.support.replicator.replicating import Replicator, wait_until_copying
from tests.support.replicator.translated import Content, assert_repeats_only, assert_synced, committed, contents
from tests.support.wire.wires import batch_of

pytestmark = pytest.mark.spark

PARTITIONS = 4
CATCH_UP_SECONDS = 400
COMPACTED = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.001"}
DECLARATION = """\
version: 1
name: {name}
clusters:
  east: {{bootstrap: ["{east}"]}}
  north: {{bootstrap: ["{north}"]}}
  west: {{bootstrap: ["{west}"]}}
policy: {{type: identity}}
replication:
  - {{aggregation: {{from: [east, north], to: west}}, topics: {{include: ["{name}-.*"]}}}}
  - {{from: east, to: west, name: {name}-t, offsets: translated, topics: {{include: ["{name}_.*"]}}}}
"""


@pytest.fixture(scope="module")
def north() -> Iterator[EmbeddedCluster]:
    with running(EmbeddedCluster("north")) as (cluster,):
        yield cluster


class Shared:
    """A topic of one name on two sources, one of them with week-old records, and one that only the first has."""

    def __init__(self, name: str, sources: Sequence[EmbeddedCluster], records: int) -> None:
        self.shared, self.alone = f"{name}-shared", f"{name}-alone"
        one, two = sources
        for cluster in sources:
            create(cluster, self.shared, PARTITIONS)
        create(one, self.alone, PARTITIONS)
        self.traffic = [
            slowly(one, self.shared, PARTITIONS, records),
            slowly(two, self.shared, PARTITIONS, records, WEEK_MS, "lz4"),
            slowly(one, self.alone, PARTITIONS, records // 4),
        ]

    def check(self, sources: Sequence[Cluster], target: Cluster) -> None:
        """Assert that the copy holds the records of each source, told apart by their age."""
        border = int(time.time() * 1000) - WEEK_MS // 2
        for number in range(PARTITIONS):
            ours = contents(target, self.shared, number)
            fresh, old = (_aged(ours, lambda stamp: stamp >= border), _aged(ours, lambda stamp: stamp < border))
            for source, mine in zip(sources, (fresh, old), strict=True):
                assert mine == contents(source, self.shared, number)
            assert contents(target, self.alone, number) == contents(sources[0], self.alone, number)
        repeated = sum(assert_repeats_only(target, self.shared, number) for number in range(PARTITIONS))
        print(f"{repeated} records of {self.shared} stand in aborted transactions as well")
        for source in sources:
            assert_synced(source, self.shared, target, self.shared, PARTITIONS)


def slowly(
    cluster: EmbeddedCluster, topic: str, partitions: int, records: int, age: int = 0, codec: str = "none"
) -> Traffic:
    """Return traffic that begins with a third of its records, and has the others out within forty seconds."""
    backlog, pace = records // 3, records // 60
    return Traffic(cluster, topic, partitions, records, backlog, per_second=pace, age_ms=age, codec=codec)


def _aged(found: Sequence[Content], wanted: Callable[[int], bool]) -> list[Content]:
    return [one for one in found if isinstance(one[2], int) and wanted(one[2])]


class Hard:
    """Logs of every kind, as topics of one flow: each as it is when the test begins, and with more to come."""

    def __init__(self, name: str, source: EmbeddedCluster, records: int) -> None:
        self.source = source
        self.compacted, self.trimmed, self.stamped, self.transacted, self.filled, self.empty = (
            f"{name}_{kind}" for kind in ("compacted", "trimmed", "stamped", "transacted", "filled", "empty")
        )
        for topic in (self.trimmed, self.filled, self.empty):
            create(source, topic)
        create(source, self.compacted, 1, COMPACTED)
        create(source, self.stamped, 1, {"message.timestamp.type": "LogAppendTime"})
        create(source, self.transacted, 2)
        fill(source, self.trimmed, 2_000)
        delete_records(source, self.trimmed, 555)
        self.traffic = [
            slowly(source, topic, 1, records, age, codec)
            for topic, age, codec in (
                (self.trimmed, WEEK_MS, "zstd"),
                (self.stamped, 0, "snappy"),
                (self.filled, WEEK_MS, "gzip"),
            )
        ]
        self.transactions = Transactions(source, self.transacted, 2, per_second=records / 4_000)
        self.topics = (self.trimmed, self.stamped, self.transacted, self.filled, self.empty, self.compacted)

    def compact(self, source: Cluster) -> None:
        """Write keys again and again, and tombstones, until the cleaner has taken records out of a batch.

        Each record has a time of its own: of two that are alike the cleaners of both sides may leave one and two.
        """
        stamp = 0
        producer = Producer(self.source.client_config() | {"linger.ms": 60_000, "log_level": "2"})
        deadline = time.monotonic() + 120
        while True:
            for number in range(60):
                key = b"once-%d" % number if number % 5 == 2 else b"again-%d" % (number % 3)
                stamp = max(stamp + 1, int(time.time() * 1000))
                value = None if number % 7 == 3 else b"value-%d" % number
                producer.produce(self.compacted, key=key, value=value, timestamp=stamp)
                if number % 20 == 19:
                    assert producer.flush(300) == 0
            first = batch_of(source, self.compacted, committed(source, self.compacted)[0].offset())
            if 0 < first.record_count < first.last_offset_delta + 1:
                return
            assert time.monotonic() < deadline, "nothing is compacted"
            time.sleep(0.5)

    def check(self, source: Cluster, target: Cluster, before: Sequence[Content]) -> None:
        """Assert that each copy has its original's committed records, `filled` behind those that it had before."""
        for topic, partitions in ((topic, 2 if topic == self.transacted else 1) for topic in self.topics):
            for number in range(partitions):
                theirs, ours = contents(source, topic, number), contents(target, topic, number)
                if topic == self.filled:
                    assert ours[: len(before)] == before
                    ours = ours[len(before) :]
                if topic == self.compacted:
                    _check_compacted(theirs, ours)
                else:
                    assert ours == theirs
                assert bool(theirs) is (topic != self.empty)
                assert_repeats_only(target, topic, number)
            if topic != self.empty:
                assert_synced(source, topic, target, topic, partitions, compacted=topic == self.compacted)


def _check_compacted(theirs: Sequence[Content], ours: Sequence[Content]) -> None:
    """Assert that the latest value of each key is the same, and that what both sides have is in the same order.

    Each side's cleaner takes out what it will.
    """
    assert {one[0]: one for one in theirs} == {one[0]: one for one in ours}
    both = set(map(repr, theirs)) & set(map(repr, ours))
    assert [one for one in map(repr, theirs) if one in both] == [one for one in map(repr, ours) if one in both]


@pytest.mark.timeout(1500)
@pytest.mark.parametrize(
    ("kills", "records"),
    [
        # What is read to compare costs more than what is copied.
        pytest.param(2, 24_000, id="two", marks=pytest.mark.long),
        pytest.param(10, 120_000, id="ten", marks=pytest.mark.long),
    ],
)
def test_kills_lose_and_double_nothing(
    tmp_path: Path,
    source_cluster: EmbeddedCluster,
    north: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    topic_name: str,
    *,
    kills: int,
    records: int,
) -> None:
    name = f"t{topic_name[-8:]}"
    east, target = declared("east", source_cluster), declared("west", target_cluster)
    shared, hard = Shared(name, (source_cluster, north), records), Hard(name, source_cluster, records // 6)
    hard.compact(east)
    file = tmp_path / "topology.yaml"
    file.write_text(
        DECLARATION.format(
            name=name, east=source_cluster.bootstrap, north=north.bootstrap, west=target_cluster.bootstrap
        )
    )
    planned = anabranch("plan", file)
    assert planned.code == 0, planned.stderr
    assert "translated offsets" in planned.stdout, planned.stdout
    applied = anabranch("apply", file, "--yes")
    assert applied.code == 0, applied.stderr
    fill(target_cluster, hard.filled, 100)
    before = contents(target, hard.filled)
    traffic = [*shared.traffic, *hard.traffic]
    for thread in (*traffic, hard.transactions):
        thread.start()
    kill_at_random(Replicator(file, tmp_path), file, tmp_path, target, kills, [*traffic, hard.transactions])
    last = Replicator(file, tmp_path, "--until-caught-up")
    try:
        assert last.wait(CATCH_UP_SECONDS) == 0, last.said()
    finally:
        last.end()
    shared.check([east, declared("north", north)], target)
    hard.check(east, target, before)
    check_translation(load((file,)), shared, hard, len(before))


def check_translation(topology: Topology, shared: Shared, hard: Hard, before: int) -> None:
    """Assert that consumers' offsets are translated exactly, whatever was killed; of `filled` behind what was there."""
    target = topology.clusters["west"]
    border, checked = int(time.time() * 1000) - WEEK_MS // 2, 0
    for flow in topology.flows:
        source = topology.clusters[flow.source]
        with Translator(source, target, flow, topology.name) as translator:
            if flow.takes(shared.shared, topology.aliases):
                # Those of the other source stand between them.
                ours = [
                    one
                    for one in committed(target, shared.shared)
                    if (one.timestamp()[1] < border) is (source.alias == "north")
                ]
                check_paired(translator, (shared.shared, 0), committed(source, shared.shared), ours)
                checked += 1
            if flow.takes(hard.transacted, topology.aliases):
                for topic in (hard.trimmed, hard.stamped, hard.transacted, hard.filled):
                    ours = committed(target, topic)[before if topic == hard.filled else 0 :]
                    check_paired(translator, (topic, 0), committed(source, topic), ours)
                    checked += 1
    assert checked == 6


def kill_at_random(
    now: Replicator, file: Path, folder: Path, target: Cluster, kills: int, traffic: Sequence[Traffic | Transactions]
) -> None:
    """Kill worker and driver in turns while it copies, the driver last; return when the last records are out."""
    seed = int.from_bytes(os.urandom(4), "big")
    print(f"the kills' moments come of seed {seed}")
    chance = random.Random(seed)
    try:
        for number in range(kills):
            wait_until_copying(target, now, time.time())
            time.sleep(chance.uniform(0.1, 2.0))
            if number % 2 == 0:
                now.kill_worker()
            else:
                now.kill_driver()
                shutil.rmtree(folder / "state")
                if number < kills - 1:
                    now = Replicator(file, folder)
        for thread in traffic:
            thread.finish()
    finally:
        now.end()
