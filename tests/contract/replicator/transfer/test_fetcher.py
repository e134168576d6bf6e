"""A reader takes turns: nobody waits behind a busy partition, however large its batches are."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Timer

import pytest

from reconciler.embedded import ClusterOptions, EmbeddedCluster
from reconciler.model.declared.clients import Clients, ConsumerSettings
from reconciler.model.declared.cluster import Cluster
from reconciler.replicator.partition.channel import SLOW_BYTES, Channel
from reconciler.replicator.partition.place import LogEnd, PartitionSides
from reconciler.replicator.partition.shares import Place
from reconciler.replicator.transfer import fetcher as reader_module
from reconciler.replicator.transfer import pace
from reconciler.replicator.transfer.fetch_lanes import MOST_LANES, NEAR_LANES, FetchKey, FetchLanes
from reconciler.replicator.transfer.fetcher import Fetcher
from reconciler.replicator.transfer.pace import Pace, Quota
from reconciler.wire import ConnectionLost, FetchAnswer, FetchAsk, FetchSession, Job, Loop, ProduceAsk, TopicInfo, Wire
from tests.support.clusters.kafka import create, declared
from tests.support.clusters.relay import Relay
from tests.support.records.batches import Content, build
from tests.support.replicator.channels import land
from tests.support.replicator.copying import fill

LARGE = 3 * 2**20
BUSY, BUSY_BATCHES = 900_000, 40
SECONDS = 300.0


class _Scene:
    """Channels that are read by one reader, and emptied at once as if the target took everything."""

    def __init__(self, cluster: Cluster, topics: Sequence[str]) -> None:
        self.loop = Loop()
        self.wire = Wire(self.loop, cluster, "tests", 5.0)
        self.channels = [Channel(Place(topic, 0, f"east.{topic}")) for topic in topics]

    async def open(self) -> None:
        await self.wire.connect()
        found = await self.wire.topics([channel.place.topic for channel in self.channels])
        for channel in self.channels:
            info = found[channel.place.topic]
            channel.open(
                PartitionSides(info.partitions[0], info.topic_id, info.partitions[0], None), LogEnd(0, 1, 0, 0)
            )

    def empty(self) -> None:
        for channel in self.channels:
            while channel.can_send():
                land(channel, channel.send())

    def read_until(self, channel: Channel, position: int) -> None:
        """Read until one channel has come as far as `position`."""

        async def reading() -> None:
            await self.open()
            one = Fetcher(
                self.loop,
                self.wire,
                FetchKey(1, committed=True),
                self.channels,
                Pace(Quota(None)),
                lambda _: self.empty(),
            )
            job = self.loop.spawn(one.run)
            for _ in range(int(SECONDS / 0.001)):
                if channel.position >= position:
                    break
                await self.loop.sleep(0.001)
            one.stopped = True
            job.raise_failure()

        self.loop.run(reading)
        self.wire.close()
        self.loop.close()


def test_a_large_batch_comes_through_beside_a_busy_partition(source_cluster: EmbeddedCluster, topic_name: str) -> None:
    cluster = declared("east", source_cluster)
    busy, quiet = f"{topic_name}-busy", f"{topic_name}-quiet"
    for topic in (busy, quiet):
        create(source_cluster, topic, 1, {"max.message.bytes": "5000000"})
    scene = _Scene(cluster, [busy, quiet])

    lost: list[ConnectionLost] = []

    async def fill() -> None:
        await scene.wire.connect()
        infos: dict[str, TopicInfo] = await scene.wire.topics([busy, quiet])
        for topic, size, count in ((busy, BUSY, BUSY_BATCHES), (quiet, LARGE, 1)):
            data = build([Content(1_000, None, b"x" * size)])
            for _ in range(count):
                await scene.wire.produce(1, [ProduceAsk(topic, infos[topic].topic_id, 0, data)], lost.append)

    scene.loop.run(fill)
    assert lost == []
    scene.read_until(scene.channels[1], 1)
    assert scene.channels[1].position == 1
    assert scene.channels[0].position < BUSY_BATCHES


def test_a_partition_whose_answers_take_long_is_asked_for_less(
    source_cluster: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or rewriting a large answer would hold heartbeats up, and with them the lease."""
    cluster = declared("east", source_cluster)
    topics = [f"{topic_name}-{n}" for n in range(2)]
    for topic in topics:
        create(source_cluster, topic)
        fill(source_cluster, topic, 20_000)
    monkeypatch.setattr(pace, "LONG_WORK", -1.0)
    asked: list[int] = []
    whole = FetchSession.want

    def want(self: FetchSession, ask: FetchAsk) -> None:
        asked.append(ask.max_bytes)
        whole(self, ask)

    monkeypatch.setattr(FetchSession, "want", want)
    scene = _Scene(cluster, topics)
    scene.read_until(scene.channels[1], 20_000)
    assert scene.channels[1].position == 20_000
    assert max(asked[:2]) > SLOW_BYTES
    assert set(asked[-4:]) == {SLOW_BYTES}


def test_where_nothing_comes_a_broker_waits_longer_and_still_answers_at_once(
    source_cluster: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Longer than a request may take otherwise: the connection stays."""
    monkeypatch.setattr(pace, "_QUIET_AFTER", 0.2)
    create(source_cluster, topic_name)
    consumer = ConsumerSettings(request_timeout_ms=1_200, fetch_max_wait_ms=400)
    cluster = replace(declared("east", source_cluster), clients=Clients(consumer=consumer))
    waited: list[tuple[int, float, int]] = []
    whole = Wire.fetch_more

    async def noted(wire: Wire, session: FetchSession, wait_ms: int, max_bytes: int) -> list[FetchAnswer]:
        began = time.monotonic()
        answers = await whole(wire, session, wait_ms, max_bytes)
        waited.append((wait_ms, time.monotonic() - began, sum(len(answer.records) for answer in answers)))
        if wait_ms > 400 and sum(wait == wait_ms for wait, _, _ in waited) == 2:
            Timer(0.3, fill, (source_cluster, topic_name, 10)).start()
        return answers

    monkeypatch.setattr(Wire, "fetch_more", noted)
    scene = _Scene(cluster, [topic_name])
    scene.wire = Wire(scene.loop, cluster, "tests", consumer.request_timeout_ms / 1000)
    scene.read_until(scene.channels[0], 10)
    assert (scene.channels[0].position, scene.channels[0].opening) == (10, 0)
    long = [(took, size) for wait, took, size in waited if wait == 1_600]
    empty = [took for took, size in long if not size]
    assert len(empty) >= 2
    assert min(empty) >= 1.5
    assert long[-1][1] > 0


class _LaneScene(_Scene):
    """The same over several lanes, as a task has them.

    Attributes:
        readers: by what they read.
        wires: by lane.
        openings: how often each channel had been opened anew when all was read.
    """

    def __init__(self, cluster: Cluster, topics: Sequence[str]) -> None:
        super().__init__(cluster, topics)
        self.readers: dict[FetchKey, Fetcher] = {}
        self._cluster = cluster
        self._lanes = FetchLanes(self._spread)
        self.wires = {0: self.wire}
        self._jobs: list[Job] = []
        self.openings: list[int] = []

    def _spread(self, key: FetchKey) -> None:
        for lane in range(self._lanes.count(key)):
            one = key._replace(lane=lane)
            if one not in self.readers or self.readers[one].stopped:
                wire = self.wires.setdefault(lane, Wire(self.loop, self._cluster, "tests", 5.0))
                self.readers[one] = made = Fetcher(
                    self.loop, wire, one, self.channels, Pace(Quota(None)), lambda _: self.empty()
                )
                made.peers, made.lanes = self.readers.values(), self._lanes
                self._jobs.append(self.loop.spawn(made.run))
        for known in self.readers.values():
            known.look_again()

    def read_all_until(
        self, position: int, meanwhile: Callable[[], None], awaited: Sequence[Channel] | None = None
    ) -> None:
        """Read until all channels, or those that are awaited, have come as far as `position`, over whatever lanes."""

        async def reading() -> None:
            await self.open()
            self._spread(FetchKey(1, committed=True))
            for _ in range(int(SECONDS / 0.001)):
                if all(channel.position >= position for channel in awaited or self.channels):
                    break
                meanwhile()
                await self.loop.sleep(0.001)
            self.openings = [channel.opening for channel in self.channels]
            for one in self.readers.values():
                one.stopped = True
            for job in self._jobs:
                job.raise_failure()

        self.loop.run(reading)
        for wire in self.wires.values():
            wire.close()
        self.loop.close()


@pytest.mark.long
def test_a_long_line_is_read_over_several_lanes(topic_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or it would carry one usual answer each round trip, and nothing meanwhile; a lane that breaks loses nothing."""
    asked: list[int] = []
    whole = Wire.fetch_more

    async def noted(wire: Wire, session: FetchSession, wait_ms: int, max_bytes: int) -> list[FetchAnswer]:
        asked.append(max_bytes)
        return await whole(wire, session, wait_ms, max_bytes)

    monkeypatch.setattr(Wire, "fetch_more", noted)
    with Relay(1) as relay:
        far = EmbeddedCluster("far", ClusterOptions(advertised=tuple(relay.ports)))
        far.launch()
        relay.upstream = [int(far.bootstrap.rpartition(":")[2])]
        try:
            far.await_ready()
            topics = [f"{topic_name}-{n}" for n in range(4)]
            for topic in topics:
                create(far, topic)
                for _ in range(3):
                    fill(far, topic, 90_000)
            relay.seconds = 0.05
            scene = _LaneScene(declared("east", far), topics)
            broken: list[int] = []

            def break_one() -> None:
                if len(scene.readers) > 1 and not broken and scene.channels[2].position > 30_000:
                    broken.append(len(scene.readers))
                    scene.wires[2].drop("for the test")

            scene.read_all_until(270_000, break_one)
        finally:
            far.stop()
    assert [channel.position for channel in scene.channels] == [270_000] * 4
    assert broken == [MOST_LANES]
    assert scene.openings == [0] * 4
    assert asked[0] <= 4 * 2**20 < max(asked)


def test_a_crowd_of_partitions_is_shared_among_lanes_and_a_few_are_not(
    source_cluster: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a record would wait until its broker has looked at all of them."""
    monkeypatch.setattr(reader_module, "_CROWD", 8)
    monkeypatch.setattr(reader_module, "_LOOK_EVERY", 0.05)
    topics = [f"{topic_name}-{n}" for n in range(8)]
    for topic in topics:
        create(source_cluster, topic)
        fill(source_cluster, topic, 1_000)
    scene = _LaneScene(declared("east", source_cluster), topics)
    seen: list[int] = []

    def some_leave() -> None:
        lanes = sum(not one.stopped for one in scene.readers.values())
        if lanes not in seen[-1:] and all(channel.position == 1_000 for channel in scene.channels):
            seen.append(lanes)
            if lanes == MOST_LANES:
                # Half of them would be a crowd still, one less is none.
                for channel in scene.channels[:5]:
                    channel.sides = None
            elif lanes == 1 and MOST_LANES in seen:
                fill(source_cluster, topics[7], 1_000)

    scene.read_all_until(2_000, some_leave, scene.channels[7:])
    assert [channel.position for channel in scene.channels] == [1_000] * 7 + [2_000]
    assert (MOST_LANES in seen, seen[-1]) == (True, 1)
    assert scene.openings == [0] * 8


def test_a_backlog_is_read_over_two_lanes_and_what_trickles_over_one(
    source_cluster: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a near broker would wait while an answer is taken in; and a trickle goes by express, over one lane."""
    monkeypatch.setattr(pace, "_REMEMBERED", 0.2)
    # A broker of a busy machine answers as late as a far one.
    monkeypatch.setattr(pace, "_NEAR", 60.0)
    topics = [f"{topic_name}-{n}" for n in range(3)]
    for topic in topics:
        create(source_cluster, topic)
        for _ in range(2):
            fill(source_cluster, topic, 90_000)
    scene = _LaneScene(declared("east", source_cluster), topics)
    seen: list[int] = []

    def note() -> None:
        lanes = sum(not one.stopped for one in scene.readers.values())
        if lanes in seen[-1:]:
            return
        seen.append(lanes)
        if lanes == 1 and NEAR_LANES in seen:
            fill(source_cluster, topics[2], 1_000)

    scene.read_all_until(181_000, note, scene.channels[2:])
    assert [channel.position for channel in scene.channels] == [180_000, 180_000, 181_000]
    assert seen == [1, NEAR_LANES, 1]
    assert scene.openings == [0] * 3
