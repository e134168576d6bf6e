"""Every fault under load, between clusters of three brokers, in both modes of offsets, with fresh and week-old records.

One flow for each mode, in one process, whose user may do exactly what `explain --acls` names. The faults come in an
order that a seed decides, each while records flow; after each the copies go on by themselves. In the end nothing is
lost, doubled or out of order, and with identical offsets every offset is the original's.
"""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import TopicCollection
from kafka.admin import KafkaAdminClient
from kafka.structs import TopicPartition

from reconciler.demo.compare import Isolation, compare
from reconciler.embedded import ClusterOptions, EmbeddedCluster, start_all, stop_all
from reconciler.model.cluster import Cluster
from reconciler.model.security import SecretRef, Security
from tests.contract.kafka import admin, create
from tests.integration.command import anabranch
from tests.support.acls import give, needed_by
from tests.support.relay import Relay
from tests.support.replicating import Replicator, wait_until_copying, wait_until_some_copied
from tests.support.traffic import WEEK_MS, Traffic
from tests.support.translated import assert_repeats_only, contents

PARTITIONS = 6
RECORDS, BACKLOG, PER_SECOND = 200_000, 10_000, 150
SECONDS = 240.0
CUT_SECONDS = 30.0
STILL_SECONDS = 60.0
USERS = {"admin": "admin-secret", "mirror": "mirror-secret"}
SECURITY = {"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN", "username": "mirror", "password": "env:MIRROR_PASSWORD"}
QUICK_RETURN = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500", "min.insync.replicas": "2"}
_PREFERRED = 0
ISOLATIONS: tuple[Isolation, ...] = ("read_uncommitted", "read_committed")

DECLARATION = """\
version: 1
name: {name}
clusters:
  east: {{bootstrap: {source}, security: {security}}}
  west: {{bootstrap: {target}, security: {security}}}
replication:
  - {{from: east, to: west, name: {name}-i, offsets: identical, topics: {{include: ["{name}-i-.*"]}}}}
  - {{from: east, to: west, name: {name}-t, offsets: translated, topics: {{include: ["{name}-t-.*"]}}}}
"""


class Scene:
    """Two clusters, the second behind a relay, four topics that grow all the time, and a process that copies them."""

    def __init__(self, folder: Path, source: EmbeddedCluster, target: EmbeddedCluster, relay: Relay, name: str) -> None:
        self.folder, self.name, self.relay = folder, name, relay
        self.clusters = {"source": source, "target": target}
        # As the tests see them: who may do everything.
        overseer = Security("SASL_PLAINTEXT", "PLAIN", "admin", SecretRef("env", "ADMIN_PASSWORD"))
        self.source = Cluster("east", tuple(source.bootstrap.split(",")), security=overseer)
        self.target = Cluster("west", tuple(f"127.0.0.1:{port}" for port in relay.ports), security=overseer)
        self.topics = {f"{name}-{mode}-{age}": age for mode in "it" for age in ("fresh", "old")}
        for topic in self.topics:
            create(source, topic, PARTITIONS, replicas=3)
        self.file = folder / "topology.yaml"
        sides = {"source": list(self.source.bootstrap), "target": list(self.target.bootstrap)}
        self.file.write_text(DECLARATION.format(name=name, security=SECURITY, **sides).replace("'", '"'))
        for alias, cluster in (("east", source), ("west", target)):
            give(cluster, "mirror", needed_by(self.file, alias))
        applied = anabranch("apply", self.file, "--yes")
        assert applied.code == 0, applied.stderr
        self.traffic = [
            Traffic(source, topic, PARTITIONS, RECORDS, BACKLOG, per_second=PER_SECOND, age_ms=WEEK_MS * (age == "old"))
            for topic, age in self.topics.items()
        ]
        self.running = Replicator(self.file, folder)

    def goes_on(self, since: float) -> None:
        """Wait until every partition of both flows runs, and both have copied something, after a moment."""
        deadline = time.monotonic() + SECONDS
        while {status.flow for status in wait_until_copying(self.target, self.running, since, SECONDS)} != {
            f"{self.name}-{mode}" for mode in "it"
        }:
            assert time.monotonic() < deadline, self.running.said()[-3000:]
            time.sleep(0.2)

    def check(self) -> None:
        """Let everything be copied and compare it."""
        for thread in self.traffic:
            thread.finish()
        self.running.terminate()
        assert self.running.wait(SECONDS) == 0, self.running.said()[-3000:]
        last = Replicator(self.file, self.folder, "--until-caught-up")
        try:
            assert last.wait(2 * SECONDS) == 0, last.said()[-3000:]
        finally:
            last.end()
        for topic in self.topics:
            if topic.startswith(f"{self.name}-i"):
                for isolation in ISOLATIONS:
                    found = compare(self.source, topic, self.target, f"east.{topic}", isolation)
                    assert (found.is_identical, found.records) == (True, RECORDS), (isolation, found.different)
                continue
            count = 0
            for number in range(PARTITIONS):
                theirs = contents(self.source, topic, number)
                assert contents(self.target, f"east.{topic}", number) == theirs
                assert_repeats_only(self.target, f"east.{topic}", number)
                count += len(theirs)
            assert count == RECORDS


@pytest.fixture
def scene(tmp_path: Path, topic_name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    for user, password in USERS.items():
        monkeypatch.setenv(f"{user.upper()}_PASSWORD", password)
    options = ClusterOptions(nodes=3, overrides=QUICK_RETURN, users=USERS)
    with Relay(3) as relay:
        source = EmbeddedCluster("source", options)
        target = EmbeddedCluster("target", replace(options, advertised=tuple(relay.ports)))
        # Whoever asks whether it is there is sent through the relay.
        target.launch()
        relay.upstream = [int(address.rpartition(":")[2]) for address in target.bootstrap.split(",")]
        try:
            start_all([source])
            target.await_ready()
            made = Scene(tmp_path, source, target, relay, f"f{topic_name[-8:]}")
            try:
                yield made
            finally:
                made.running.end()
        finally:
            stop_all([source, target])


# --- faults ----------------------------------------------------------------------------------------------------------


def worker_killed(scene: Scene, _chance: random.Random) -> None:
    scene.running.kill_worker()


def driver_killed(scene: Scene, _chance: random.Random) -> None:
    scene.running.kill_driver()
    scene.running = Replicator(scene.file, scene.folder)


def machine_killed(scene: Scene, _chance: random.Random) -> None:
    """The virtual machine: its workers and the driver end with it."""
    scene.running.kill_jvm()
    scene.running.wait(SECONDS)
    scene.running = Replicator(scene.file, scene.folder)


def worker_stopped(scene: Scene, _chance: random.Random) -> None:
    """For a minute, in which its successor takes over."""
    worker = scene.running.worker()
    worker.send_signal(signal.SIGSTOP)
    time.sleep(STILL_SECONDS)
    if worker.is_running():
        worker.send_signal(signal.SIGCONT)


def target_broker_killed(scene: Scene, chance: random.Random) -> None:
    _kill(scene.clusters["target"], chance.randint(1, 3))


def source_broker_killed(scene: Scene, chance: random.Random) -> None:
    _kill(scene.clusters["source"], chance.randint(1, 3))


def most_of_the_target_killed(scene: Scene, chance: random.Random) -> None:
    """Two of three brokers: there is no quorum, partitions have no leader, and neither has what we commit to."""
    cluster = scene.clusters["target"]
    nodes = chance.sample((1, 2, 3), 2)
    for node in nodes:
        cluster.kill_broker(node)
    time.sleep(10)
    for node in nodes:
        cluster.start_broker(node)
    _await_replicas(cluster)


def follower_stopped(scene: Scene, chance: random.Random) -> None:
    """While a takeover happens: the high watermarks stand behind the log ends."""
    broker = scene.clusters["target"].broker(chance.randint(1, 3))
    broker.signal(signal.SIGSTOP)
    try:
        time.sleep(1)
        scene.running.kill_worker()
        time.sleep(15)
    finally:
        broker.signal(signal.SIGCONT)
    _await_replicas(scene.clusters["target"])


def second_copy(scene: Scene, _chance: random.Random) -> None:
    """Started by mistake, it takes half of what has identical offsets, and then is gone all at once."""
    other = Replicator(scene.file, scene.folder / "other")
    try:
        wait_until_some_copied(scene.target, other, SECONDS)
        time.sleep(5)
    finally:
        other.end()


def rolling_restart(scene: Scene, _chance: random.Random) -> None:
    for cluster in scene.clusters.values():
        for node in (1, 2, 3):
            cluster.stop_broker(node)
            cluster.start_broker(node)
            _await_replicas(cluster)


def leaders_moved(scene: Scene, chance: random.Random) -> None:
    """By reassignment, on both sides."""
    names = {"source": list(scene.topics), "target": [f"east.{topic}" for topic in scene.topics]}
    for side, cluster in scene.clusters.items():
        client = KafkaAdminClient(
            bootstrap_servers=cluster.bootstrap.split(","),
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_plain_username="admin",
            sasl_plain_password=USERS["admin"],
        )
        try:
            order = {}
            for topic in names[side]:
                for number in range(PARTITIONS):
                    order[TopicPartition(topic, number)] = chance.sample((1, 2, 3), 3)
            refused = [one for one in client.alter_partition_reassignments(order).values() if one is not None]
            assert not refused, refused
            _await_replicas(cluster)
            client.elect_leaders(_PREFERRED, {topic: list(range(PARTITIONS)) for topic in names[side]})
        finally:
            client.close()


def line_cut(scene: Scene, _chance: random.Random) -> None:
    scene.relay.cut()
    time.sleep(CUT_SECONDS)
    scene.relay.mend()


def line_slow(scene: Scene, _chance: random.Random) -> None:
    scene.relay.seconds, scene.relay.loss = 0.05, 0.01
    time.sleep(CUT_SECONDS)
    scene.goes_on(time.time())
    scene.relay.seconds = scene.relay.loss = 0.0


def coordinators_restarted(scene: Scene, _chance: random.Random) -> None:
    """Whoever leads our group and our transactions at the target, in order, twice."""
    cluster = scene.clusters["target"]
    for _ in range(2):
        for topic in ("__consumer_offsets", "__transaction_state"):
            described = admin(cluster).list_topics(topic, timeout=30).topics[topic].partitions
            node = described[0].leader
            cluster.stop_broker(node)
            cluster.start_broker(node)
            _await_replicas(cluster)


Fault = Callable[[Scene, random.Random], None]
FAULTS: Sequence[Fault] = (
    worker_killed,
    driver_killed,
    machine_killed,
    worker_stopped,
    target_broker_killed,
    source_broker_killed,
    most_of_the_target_killed,
    follower_stopped,
    second_copy,
    rolling_restart,
    leaders_moved,
    line_cut,
    line_slow,
    coordinators_restarted,
)


def _kill(cluster: EmbeddedCluster, node: int) -> None:
    cluster.kill_broker(node)
    time.sleep(2)
    cluster.start_broker(node)
    _await_replicas(cluster)


def _await_replicas(cluster: EmbeddedCluster) -> None:
    """Wait until every partition has all its replicas in sync: the next fault must not be one too many."""
    deadline = time.monotonic() + SECONDS
    client = admin(cluster)
    while True:
        topics = client.list_topics(timeout=30).topics
        described = client.describe_topics(TopicCollection(list(topics))).values()
        rows = [row for one in described for row in one.result(30).partitions]
        if all(row.leader is not None and len(row.isr) == len(row.replicas) for row in rows):
            return
        assert time.monotonic() < deadline, "some replicas never come back"
        time.sleep(0.5)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_is_lost_or_doubled(scene: Scene, seed: int) -> None:
    chance = random.Random(seed)
    for thread in scene.traffic:
        thread.start()
    scene.goes_on(0.0)
    for fault in chance.sample(FAULTS, len(FAULTS)):
        began = time.time()
        fault(scene, chance)
        scene.goes_on(time.time())
        print(f"{fault.__name__}: {time.time() - began:.0f} s until all partitions run")
    scene.check()
