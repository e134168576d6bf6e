"""Clusters of Kafka's former versions: with a quorum of their own as embedded ones are, and one with ZooKeeper."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from bench.competitors.base import end
from reconciler.embedded import ClusterOptions, EmbeddedCluster
from reconciler.embedded.jars import KAFKA_VERSION, Coordinate, class_path, fetch_jars, java_executable, logging_of
from reconciler.embedded.launch import start_child
from reconciler.embedded.ports import HOST, PortLease
from reconciler.embedded.settings import QUICK_JVM
from reconciler.model.declared.cluster import Cluster
from tests.support.waiting import eventually

WITH_ZOOKEEPER = "2.8.2"
_END_SECONDS = 120.0
# Versions before 4.0 use classes of log4j 1 themselves.
_LOG4J_1 = Coordinate("ch.qos.reload4j", "reload4j", "1.2.25", transitive=False)


def jars_of(version: str, artifact: str = "kafka_2.13") -> Path:
    """Return the folder with the jars of a former version, by default a broker's, fetching them on first use."""
    wanted = (Coordinate("org.apache.kafka", artifact, version), _LOG4J_1, *logging_of("2.25.4"))
    return fetch_jars(f"former-{artifact}-{version}", wanted, None)


@contextmanager
def former_cluster(name: str, version: str, folder: Path) -> Iterator[Cluster]:
    """Run a cluster of one broker of a former version for the length of a block, and yield it as one declares it.

    Args:
        name: alias of the cluster.
        version: of Kafka; `WITH_ZOOKEEPER` has no quorum of its own yet.
        folder: for data and logs.
    """
    if version != WITH_ZOOKEEPER:
        jars = jars_of(version) if version != KAFKA_VERSION else None
        with EmbeddedCluster(name, ClusterOptions(jars=jars)) as cluster:
            yield Cluster(name, tuple(cluster.bootstrap.split(",")), "dc1")
        return
    lease = PortLease.take(2)
    zookeeper, port = lease.ports
    running = []
    try:
        java = [str(java_executable()), *QUICK_JVM, "-cp", class_path(jars_of(version))]
        server = [*java, "org.apache.zookeeper.server.ZooKeeperServerMain", str(zookeeper), str(folder / "zookeeper")]
        file = folder / "server.properties"
        file.write_text(_properties(folder / "data", zookeeper, port))
        running.append(start_child(server, folder / "zookeeper.log"))
        running.append(start_child([*java, "kafka.Kafka", str(file)], folder / "broker.log"))
        eventually("the broker answers", lambda: _answers(f"{HOST}:{port}"))
        yield Cluster(name, (f"{HOST}:{port}",), "dc1")
    finally:
        for process in reversed(running):
            end(process, signal.SIGKILL, _END_SECONDS)
        lease.release()
        shutil.rmtree(folder / "data", ignore_errors=True)


def _answers(bootstrap: str) -> bool:
    try:
        return bool(AdminClient({"bootstrap.servers": bootstrap, "log_level": "0"}).list_topics(timeout=5).brokers)
    except KafkaException:
        return False


def _properties(data: Path, zookeeper: int, port: int) -> str:
    settings = {
        "broker.id": "0",
        "zookeeper.connect": f"{HOST}:{zookeeper}",
        "zookeeper.connection.timeout.ms": "120000",
        "listeners": f"PLAINTEXT://{HOST}:{port}",
        "log.dirs": str(data),
        "auto.create.topics.enable": "false",
        "log.retention.ms": "-1",
        "offsets.topic.num.partitions": "3",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.num.partitions": "3",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        "log.cleaner.dedupe.buffer.size": str(8 << 20),
    }
    return "".join(f"{key}={value}\n" for key, value in settings.items())
