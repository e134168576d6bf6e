"""Faults, each done to a scene while records flow; the next one comes when everything runs again."""

from __future__ import annotations

import random
import resource
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka import TopicCollection, TopicPartitionInfo
from kafka.admin import KafkaAdminClient
from kafka.errors import PreferredLeaderNotAvailableError
from kafka.structs import TopicPartition

from reconciler.embedded import EmbeddedCluster
from tests.support.clusters.kafka import admin, metadata, settled
from tests.support.clusters.scene import SECONDS, USERS, Scene
from tests.support.replicator.replicating import Replicator, wait_until_some_copied
from tests.support.still import halt

CUT_SECONDS = 30.0
STILL_SECONDS = 60.0
NODES = (1, 2, 3)
_PREFERRED = 0

Fault = Callable[[Scene, random.Random], None]


def worker_killed(scene: Scene, _chance: random.Random) -> None:
    scene.running.kill_worker()


def driver_killed(scene: Scene, _chance: random.Random) -> None:
    scene.running.kill_driver()
    scene.start_again()


def machine_killed(scene: Scene, _chance: random.Random) -> None:
    """The virtual machine: its workers and the driver end with it."""
    scene.running.kill_jvm()
    scene.running.wait(SECONDS)
    scene.start_again()


def executor_killed(scene: Scene, chance: random.Random) -> None:
    """On a Spark cluster: the tasks that it ran begin anew on another."""
    assert scene.spark is not None
    chance.choice([one for executors in scene.spark.executors() for one in executors]).kill()


def worker_stopped(scene: Scene, _chance: random.Random) -> None:
    """For a minute, in which its successor takes over."""
    worker = scene.running.worker()
    halt(worker.pid)
    time.sleep(STILL_SECONDS)
    if worker.is_running():
        worker.send_signal(signal.SIGCONT)


def target_broker_killed(scene: Scene, chance: random.Random) -> None:
    _kill(scene.clusters["target"], chance.choice(NODES))


def source_broker_killed(scene: Scene, chance: random.Random) -> None:
    _kill(scene.clusters["source"], chance.choice(NODES))


def most_of_the_target_killed(scene: Scene, chance: random.Random) -> None:
    """Two of three brokers: there is no quorum, partitions have no leader, and neither has what we commit to."""
    cluster = scene.clusters["target"]
    nodes = chance.sample(NODES, 2)
    for node in nodes:
        cluster.kill_broker(node)
    time.sleep(10)
    for node in nodes:
        cluster.start_broker(node)
    _await_replicas(cluster)


def follower_stopped(scene: Scene, chance: random.Random) -> None:
    """While a takeover happens: the high watermarks stand behind the log ends."""
    broker = scene.clusters["target"].broker(chance.choice(NODES))
    halt(broker.pid)
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
        for node in NODES:
            cluster.stop_broker(node)
            cluster.start_broker(node)
            _await_replicas(cluster)


def leaders_moved(scene: Scene, chance: random.Random) -> None:
    """By reassignment, on both sides, where there are several brokers."""
    names = {"source": list(scene.topics), "target": [f"east.{topic}" for topic in scene.topics]}
    for side, cluster in scene.clusters.items():
        if cluster.options.nodes == 1:
            continue
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
                for number in range(scene.partitions):
                    order[TopicPartition(topic, number)] = chance.sample(NODES, 3)
            refused = [one for one in client.alter_partition_reassignments(order).values() if one is not None]
            assert not refused, refused
            _elect_the_first(cluster, client, {topic: list(range(scene.partitions)) for topic in names[side]})
        finally:
            client.close()


def _elect_the_first(cluster: EmbeddedCluster, client: KafkaAdminClient, partitions: dict[str, list[int]]) -> None:
    """Have each partition's first replica lead it, as soon as it may."""
    deadline = time.monotonic() + SECONDS
    while True:
        _await_replicas(cluster)
        try:
            client.elect_leaders(_PREFERRED, partitions)
        except PreferredLeaderNotAvailableError:
            # What brokers tell of replicas is a moment old, and under load one of them falls back again.
            assert time.monotonic() < deadline, "the first replicas never have all records"
        else:
            return


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
    """Twenty times, in order: whoever leads our group or our transactions at the target."""
    cluster = scene.clusters["target"]
    for _ in range(10):
        for topic in ("__consumer_offsets", "__transaction_state"):
            described = metadata(cluster, topic).topics[topic].partitions
            node = described[0].leader
            cluster.stop_broker(node)
            cluster.start_broker(node)
            _await_replicas(cluster)


def disk_full(scene: Scene, _chance: random.Random) -> None:
    """No broker of the target can write any more, and each ends as Kafka does then, until there is room again."""
    cluster = scene.clusters["target"]
    for node in NODES:
        process = cluster.broker(node).pid
        assert process is not None
        _let_write(process, 1)
    deadline = time.monotonic() + SECONDS
    while cluster.running_nodes:
        assert time.monotonic() < deadline, f"nodes {cluster.running_nodes} do not notice that they cannot write"
        time.sleep(0.2)
    time.sleep(5)
    assert scene.running.is_running
    _start_together(cluster, NODES)
    _await_replicas(cluster)


def _let_write(process: int, size: int) -> None:
    """Let a process write no file beyond a size: what it is told is another error, what Kafka does is the same."""
    _, hard = resource.prlimit(process, resource.RLIMIT_FSIZE)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (size, hard))


def _start_together(cluster: EmbeddedCluster, nodes: Sequence[int]) -> None:
    """Start nodes that need each other for a quorum: none of them is ready alone."""
    with ThreadPoolExecutor(len(nodes)) as pool:
        list(pool.map(cluster.start_broker, nodes))


def _kill(cluster: EmbeddedCluster, node: int) -> None:
    cluster.kill_broker(node)
    time.sleep(2)
    cluster.start_broker(node)
    _await_replicas(cluster)


def _await_replicas(cluster: EmbeddedCluster) -> None:
    """Wait until every partition has all its replicas in sync: the next fault must not be one too many."""
    deadline = time.monotonic() + SECONDS

    def rows_now() -> list[TopicPartitionInfo]:
        client = admin(cluster)
        topics = client.list_topics(timeout=30).topics
        described = client.describe_topics(TopicCollection(list(topics))).values()
        return [row for one in described for row in one.result(120).partitions]

    while True:
        rows = settled(rows_now)
        if all(row.leader is not None and len(row.isr) == len(row.replicas) for row in rows):
            return
        assert time.monotonic() < deadline, "some replicas never come back"
        time.sleep(0.5)


FAULTS: Sequence[Fault] = (
    worker_killed,
    driver_killed,
    machine_killed,
    worker_stopped,
    target_broker_killed,
    source_broker_killed,
    most_of_the_target_killed,
    disk_full,
    follower_stopped,
    second_copy,
    rolling_restart,
    leaders_moved,
    line_cut,
    line_slow,
    coordinators_restarted,
)
# Those that are over in seconds, and need no other start of Spark.
QUICK: Sequence[Fault] = (worker_killed, target_broker_killed, leaders_moved)
# Of tasks on a Spark cluster.
OF_EXECUTORS: Sequence[Fault] = (executor_killed, driver_killed, executor_killed, target_broker_killed, executor_killed)
