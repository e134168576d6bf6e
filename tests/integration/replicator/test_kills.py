"""Exactly once and offset by offset, whatever dies: kills at random moments, a second copy, lost checkpoints."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Producer, TopicPartition

from reconciler.demo.compare import Isolation, compare
from reconciler.embedded import EmbeddedCluster
from tests.support.clusters.kafka import admin, create, declared, set_config
from tests.support.clusters.traffic import WEEK_MS, Traffic, Transactions
from tests.support.commands.command import anabranch
from tests.support.replicator.copying import fill
from tests.support.replicator.killed import bounds
from tests.support.replicator.replicating import (
    Replicator,
    wait_until_caught_up,
    wait_until_copying,
    wait_until_sharing,
)
from tests.support.replicator.translated import assert_translated, runs_of
from tests.support.wire.wires import batch_of

pytestmark = pytest.mark.spark

PARTITIONS = 8
# A copy that is told to end does so within ten seconds; a busy machine gets much longer.
END_SECONDS = 400
# Every topic gets several records in a second.
GO_ON_SECONDS = 400
# What the target takes of one topic.
LARGEST = 20_000
# How many transactions each flow must at least have met.
TRANSACTIONS = 101
ISOLATIONS: tuple[Isolation, ...] = ("read_uncommitted", "read_committed")

DECLARATION = """\
version: 1
name: {name}
clusters:
  east: {{bootstrap: ["{source}"], datacenter: dc1}}
  west: {{bootstrap: ["{target}"], datacenter: dc2}}
replication:
  - {{from: east, to: west, name: {name}, tasks: {tasks}, fill: markers, topics: {{include: ["{name}-.*"]}}}}
  - {{from: east, to: west, name: {name}-t, fill: transactions, topics: {{include: ["{name}_.*"]}}}}
"""


class Size(NamedTuple):
    """How much there is of all.

    Attributes:
        fresh: records of one large topic, two fifths as many of the other.
        others: records of each topic of another kind.
    """

    fresh: int
    others: int


# Every record is read four times to compare it.
SMALL = Size(200_000, 12_000)
WHOLE = Size(1_000_000, 30_000)


class Scene:
    """Two topics, one with fresh and one with week-old timestamps, and the file that declares their flow."""

    def __init__(
        self,
        folder: Path,
        source: EmbeddedCluster,
        target: EmbeddedCluster,
        name: str,
        *,
        tasks: int,
        also: Callable[[Scene], None] = lambda scene: None,
    ) -> None:
        self.folder, self.name = folder, name
        self.source, self.target = declared("east", source), declared("west", target)
        self.fresh, self.old = f"{name}-fresh", f"{name}-week-old"
        for topic in (self.fresh, self.old):
            create(source, topic, PARTITIONS)
        self.file = folder / "topology.yaml"
        self.file.write_text(
            DECLARATION.format(name=name, source=source.bootstrap, target=target.bootstrap, tasks=tasks)
        )
        also(self)
        applied = anabranch("apply", self.file, "--yes")
        assert applied.code == 0, applied.stderr

    def assert_identical(self, records: dict[str, int]) -> None:
        def check(topic: str, isolation: Isolation) -> None:
            found = compare(self.source, topic, self.target, f"east.{topic}", isolation)
            assert found.is_identical, (isolation, found.different)
            assert found.records == records[topic]

        # Reading waits more than it works.
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(check, *zip(*itertools.product(records, ISOLATIONS), strict=True)))

    def catch_up(self) -> str:
        last = Replicator(self.file, self.folder, "--until-caught-up")
        try:
            assert last.wait(400) == 0, last.said()
        finally:
            last.end()
        return last.said()


@pytest.fixture
def scene(tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str) -> Scene:
    return Scene(tmp_path, source_cluster, target_cluster, f"s{topic_name[-8:]}", tasks=2)


def kill(what: str, running: Replicator) -> None:
    {"worker": running.kill_worker, "jvm": running.kill_jvm, "driver": running.kill_driver}[what]()


class Kinds:
    """Topics of every kind beside the two large ones, and what goes on in them meanwhile.

    Transactions on each of eight partitions, for one flow that fills gaps with markers and one that fills
    them with transactions; the codecs; batches with LogAppendTime, and some larger than the target takes; records of
    10 MB; a topic without records; a log whose start was trimmed. Each but the empty one gets records all the time.
    """

    def __init__(self, scene: Scene, source: EmbeddedCluster, name: str, size: Size) -> None:
        self.scene, self._size = scene, size
        self.marked, self.transacted = f"{name}-marked", f"{name}_transacted"
        self.stamped, self.divided = f"{name}-stamped", f"{name}-divided"
        self.codecs = {f"{name}-{codec}": codec for codec in ("gzip", "snappy", "zstd")}
        self.codecs |= {self.stamped: "lz4", self.divided: "none"}
        self.large, self.empty, self.trimmed = f"{name}-large", f"{name}-empty", f"{name}-trimmed"
        for topic in (self.marked, self.transacted):
            create(source, topic, PARTITIONS)
        for topic in (*self.codecs, self.empty, self.trimmed):
            create(source, topic, 2, {"message.timestamp.type": "LogAppendTime"} if topic == self.stamped else None)
        create(source, self.large, 1, {"max.message.bytes": "11000000"})
        fill(source, self.trimmed, 2_000, 2, age=WEEK_MS)
        client = admin(source)
        for future in client.delete_records([TopicPartition(self.trimmed, n, 555) for n in range(2)]).values():
            future.result(300)
        self._larges = 0
        self._large_producer = Producer(source.client_config() | {"message.max.bytes": 11_000_000, "log_level": "2"})
        for _ in range(2):
            self.add_large()
        self.traffic = [
            Traffic(
                source,
                topic,
                2,
                size.others,
                5_000,
                per_second=size.others // 1_000,
                age_ms=WEEK_MS * (codec == "zstd" or topic == self.trimmed),
                codec=codec,
            )
            for topic, codec in (self.codecs | {self.trimmed: "none"}).items()
        ]
        self.transactions = [
            Transactions(source, topic, PARTITIONS, (0, WEEK_MS)) for topic in (self.marked, self.transacted)
        ]

    def add_large(self) -> None:
        """Store one more record of 10 MB, every other one a week old."""
        value = random.Random(self._larges).randbytes(10_000_000)
        age = WEEK_MS * (self._larges % 2)
        timestamp = int(time.time() * 1000) - age
        self._large_producer.produce(self.large, key=b"%d" % self._larges, value=value, timestamp=timestamp)
        assert self._large_producer.flush(300) == 0
        self._larges += 1

    def ends(self) -> Counter[str]:
        """Return for each topic that has records the sum of where its partitions end at the source for all readers."""
        wide, narrow = (self.marked, self.transacted), (*self.codecs, self.trimmed)
        partitions = dict.fromkeys(wide, PARTITIONS) | dict.fromkeys(narrow, 2) | {self.large: 1}
        logs = [(topic, number) for topic, count in partitions.items() for number in range(count)]
        found: Counter[str] = Counter()
        for (topic, _), (_, end) in zip(logs, bounds(self.scene.source, logs), strict=True):
            found[topic] += end
        return found

    def go_on(self, since: Counter[str]) -> Counter[str]:
        """Wait until each topic has more records than it had, and return where they end now."""
        self.add_large()
        deadline = time.monotonic() + GO_ON_SECONDS
        while True:
            now = self.ends()
            if not (still := [topic for topic in now if now[topic] <= since[topic]]):
                return now
            assert time.monotonic() < deadline, f"nothing is written to {still}"
            time.sleep(0.2)

    def start(self) -> None:
        for thread in (*self.traffic, *self.transactions):
            thread.start()

    def finish(self) -> None:
        for thread in self.transactions:
            thread.finish(TRANSACTIONS)
        for slow in self.traffic:
            slow.finish()

    def assert_identical(self) -> None:
        expected = dict.fromkeys(self.codecs, self._size.others)
        expected |= {self.large: self._larges, self.empty: 0, self.trimmed: 890 + self._size.others}
        self.scene.assert_identical(expected)
        assert batch_of(self.scene.source, self.stamped, 0).is_log_append_time
        sizes = [
            [batch_of(cluster, topic, offset).size for offset in range(0, 2_500, 500)]
            for cluster, topic in ((self.scene.source, self.divided), (self.scene.target, f"east.{self.divided}"))
        ]
        # On a busy machine the producer's first batches hold but a few of the backlog's records.
        assert max(sizes[0]) > LARGEST >= max(sizes[1])
        assert all(thread.ended >= TRANSACTIONS for thread in self.transactions)
        for isolation in ISOLATIONS:
            found = compare(self.scene.source, self.marked, self.scene.target, f"east.{self.marked}", isolation)
            assert found.is_identical, (isolation, found.different)
        # Where a broker wrote a marker twice, what follows is shifted: counted, and translated exactly.
        runs = runs_of(
            self.scene.target, f"{self.scene.name}-t", f"east.{self.transacted}", PARTITIONS, self.scene.name
        )
        shifted = assert_translated(self.scene.source, self.transacted, self.scene.target, runs)
        assert (shifted > 0) <= any(one.runs for one in runs)


def slowly(cluster: EmbeddedCluster, topic: str, records: int, age: int = 0, codec: str = "none") -> Traffic:
    """Return traffic that begins with a quarter of its records, and has the others out within three minutes."""
    backlog, pace = records // 4, records // 240
    return Traffic(cluster, topic, PARTITIONS, records, backlog, per_second=pace, age_ms=age, codec=codec)


@pytest.mark.timeout(1500)
@pytest.mark.parametrize(
    ("victims", "size"),
    [
        pytest.param(("worker", "jvm", "driver"), SMALL, id="three"),
        pytest.param(("worker", "jvm", "driver", "worker", "driver"), WHOLE, id="five", marks=pytest.mark.long),
    ],
)
def test_kills_and_a_lost_checkpoint_lose_and_double_nothing(
    tmp_path: Path,
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    topic_name: str,
    victims: Sequence[str],
    size: Size,
) -> None:
    name = f"s{topic_name[-8:]}"
    kinds: list[Kinds] = []
    scene = Scene(
        tmp_path,
        source_cluster,
        target_cluster,
        name,
        tasks=2,
        also=lambda scene: kinds.append(Kinds(scene, source_cluster, name, size)),
    )
    set_config(target_cluster, f"east.{kinds[0].divided}", "max.message.bytes", str(LARGEST))
    records = {scene.fresh: size.fresh, scene.old: size.fresh * 2 // 5}
    traffic = [
        slowly(source_cluster, scene.fresh, records[scene.fresh]),
        slowly(source_cluster, scene.old, records[scene.old], WEEK_MS, "lz4"),
    ]
    for thread in traffic:
        thread.start()
    kinds[0].start()
    seed = int.from_bytes(os.urandom(4), "big")
    print(f"the kills' moments come of seed {seed}")
    chance = random.Random(seed)
    ends: Counter[str] = Counter()
    running = Replicator(scene.file, scene.folder)
    try:
        for number, victim in enumerate(victims, 1):
            wait_until_copying(scene.target, running, time.time())
            time.sleep(chance.uniform(0.1, 2.0))
            # Whatever is killed, every topic has records before and behind it.
            ends = kinds[0].go_on(ends)
            kill(victim, running)
            if victim == "jvm":
                assert running.wait(END_SECONDS) == 1
                assert "AB320" in running.said()
            if victim != "worker":
                shutil.rmtree(scene.folder / "state")
                # What the last one leaves, who catches up takes over.
                if number < len(victims):
                    running = Replicator(scene.file, scene.folder)
        for thread in traffic:
            thread.finish()
        kinds[0].go_on(ends)
        kinds[0].finish()
    finally:
        running.end()
    scene.catch_up()
    scene.assert_identical(records)
    kinds[0].assert_identical()


def test_a_second_process_shares_a_flow_and_has_it_alone_when_the_first_dies(
    scene: Scene, source_cluster: EmbeddedCluster
) -> None:
    count = 60_000
    traffic = [slowly(source_cluster, scene.fresh, count), slowly(source_cluster, scene.old, count, WEEK_MS)]
    for thread in traffic:
        thread.start()
    one = Replicator(scene.file, scene.folder / "one")
    two = None
    try:
        wait_until_copying(scene.target, one, 0.0)
        two = Replicator(scene.file, scene.folder / "two")
        for process in (one, two):
            wait_until_sharing(scene.target, process)
        assert one.is_running
        one.end()
        # However far the first has come: these only the second can copy.
        fill(source_cluster, scene.fresh, 4_000, PARTITIONS)
        fill(source_cluster, scene.old, 4_000, PARTITIONS, age=WEEK_MS)
        wait_until_copying(scene.target, two, time.time())
        for thread in traffic:
            thread.finish()
        wait_until_caught_up(scene.target, two, scene.file)
        two.terminate()
        assert two.wait(END_SECONDS) == 0
    finally:
        one.end()
        if two is not None:
            two.end()
    scene.assert_identical({scene.fresh: count + 4_000, scene.old: count + 4_000})
