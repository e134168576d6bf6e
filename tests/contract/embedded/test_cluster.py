"""Embedded clusters: real brokers start, answer, crash, come back and leave nothing behind."""

from __future__ import annotations

import hashlib
import os
import select
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from reconciler.embedded import ClusterOptions, EmbeddedCluster, jars
from reconciler.embedded.ports import PORTS, PortLease
from reconciler.model.base.errors import EnvironmentFault

ANSWER_SECONDS = 120
# A killed broker may register again once its session has timed out: sooner here than by default.
QUICK_RETURN = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "250"}

MakeClusters = Callable[..., tuple[EmbeddedCluster, ...]]

PARENT = """
import sys
from reconciler.embedded import ClusterOptions, EmbeddedCluster
with EmbeddedCluster("orphan", ClusterOptions(nodes=2)) as cluster:
    print(*(cluster.broker(node).pid for node in cluster.running_nodes), cluster.folder, flush=True)
    sys.stdin.read()
"""


def test_the_jars_that_the_brokers_of_the_tests_run_are_the_known_ones() -> None:
    known = jars.known_jars()
    for path in jars.fetch_kafka().glob("*.jar"):
        assert known[path.name] == hashlib.sha256(path.read_bytes()).hexdigest(), path


def test_topic_and_records_survive_a_kill(make_clusters: MakeClusters, topic_name: str) -> None:
    (cluster,) = make_clusters("crash", options=ClusterOptions(overrides=QUICK_RETURN))
    _create_topic(cluster, topic_name)
    _produce(cluster, topic_name, [b"one", b"two"])
    before, first_pid = cluster.bootstrap, cluster.broker().pid
    cluster.kill_broker()
    assert cluster.broker().pid is None
    cluster.start_broker()
    assert cluster.bootstrap == before
    assert cluster.broker().pid not in (None, first_pid)
    assert _consume(cluster, topic_name, 2) == [b"one", b"two"]


def test_two_clusters_have_nothing_in_common(source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster) -> None:
    clusters = (source_cluster, target_cluster)
    admins = [AdminClient(cluster.client_config()) for cluster in clusters]
    told = [admin.describe_cluster().result(ANSWER_SECONDS) for admin in admins]
    assert [answer.cluster_id for answer in told] == [cluster.cluster_id for cluster in clusters]
    assert source_cluster.cluster_id != target_cluster.cluster_id
    ports = [int(cluster.bootstrap.rpartition(":")[2]) for cluster in clusters]
    assert ports[0] != ports[1]
    assert all(port in PORTS for port in ports)


def test_nodes_answer_together_and_outlive_the_loss_of_one(make_clusters: MakeClusters, topic_name: str) -> None:
    (cluster,) = make_clusters("three", options=ClusterOptions(nodes=3, overrides=QUICK_RETURN))
    _create_topic(cluster, topic_name, replication_factor=3)
    cluster.kill_broker(2)
    _produce(cluster, topic_name, [b"while one is away"])
    cluster.start_broker(2)
    assert cluster.running_nodes == (1, 2, 3)
    assert _consume(cluster, topic_name, 1) == [b"while one is away"]


def test_stop_leaves_no_process_and_no_folder() -> None:
    cluster = EmbeddedCluster("brief")
    cluster.start()
    pid = cluster.broker().pid
    assert pid is not None
    assert _is_there(pid)
    cluster.stop()
    assert not _is_there(pid)
    assert cluster.running_nodes == ()
    assert not cluster.folder.parent.exists()


def test_kept_folder_has_the_log_and_serves_a_later_cluster(tmp_path: Path, topic_name: str) -> None:
    with EmbeddedCluster("kept", folder=tmp_path / "kept") as first:
        _create_topic(first, topic_name)
        _produce(first, topic_name, [b"kept"])
    assert "Kafka Server started" in (tmp_path / "kept" / "node-1" / "broker.log").read_text()
    with EmbeddedCluster("kept", folder=tmp_path / "kept") as second:
        assert second.cluster_id == first.cluster_id
        assert _consume(second, topic_name, 1) == [b"kept"]


def test_broken_setting_is_told_with_the_end_of_the_log(tmp_path: Path) -> None:
    options = ClusterOptions(overrides={"log.segment.bytes": "x"})
    cluster = EmbeddedCluster("broken", options, folder=tmp_path)
    with pytest.raises(EnvironmentFault) as caught:
        cluster.start()
    (problem,) = caught.value.problems
    assert problem.code == "AB303"
    assert "broken" in problem.message
    assert "Invalid value x for configuration log.segment.bytes" in "\n".join(caught.value.log)
    assert str(tmp_path / "node-1" / "broker.log") in problem.remedy
    assert (tmp_path / "node-1" / "broker.log").is_file()
    assert not (tmp_path / "node-1" / "data").exists()


def test_broker_that_does_not_answer_in_time_is_ended(tmp_path: Path) -> None:
    cluster = EmbeddedCluster("late", ClusterOptions(start_seconds=0.0), folder=tmp_path)
    with pytest.raises(EnvironmentFault) as caught:
        cluster.start()
    assert caught.value.problems[0].code == "AB303"
    assert "no answer within 0 s" in caught.value.problems[0].message
    assert cluster.running_nodes == ()


def test_port_taken_between_lease_and_start_leads_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    leases: list[PortLease] = []
    real_take = PortLease.take
    with socket.socket() as thief:

        def take_then_lose_one(count: int) -> PortLease:
            lease = real_take(count)
            if not leases:
                thief.bind(("127.0.0.1", lease.ports[0]))
                thief.listen()
            leases.append(lease)
            return lease

        monkeypatch.setattr(PortLease, "take", take_then_lose_one)
        with EmbeddedCluster("robbed") as cluster:
            assert len(leases) == 2
            assert cluster.bootstrap == f"127.0.0.1:{leases[1].ports[0]}"


def test_cluster_started_in_a_thread_outlives_the_thread(topic_name: str) -> None:
    cluster = EmbeddedCluster("threaded")
    starting = threading.Thread(target=cluster.start)
    starting.start()
    starting.join()
    try:
        _create_topic(cluster, topic_name)
        assert cluster.running_nodes == (1,)
    finally:
        cluster.stop()


def test_brokers_end_with_a_killed_parent() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        *pids, folder = parent.stdout.readline().split()
        watches = [os.pidfd_open(int(pid)) for pid in pids]
        try:
            parent.kill()
            assert len(watches) == 2
            assert all(select.select([watch], [], [], ANSWER_SECONDS)[0] for watch in watches)
        finally:
            for watch in watches:
                os.close(watch)
            shutil.rmtree(Path(folder).parent)


def _create_topic(cluster: EmbeddedCluster, topic: str, replication_factor: int = 1, user: str | None = None) -> None:
    admin = AdminClient(cluster.client_config(user))
    admin.create_topics([NewTopic(topic, 1, replication_factor)])[topic].result(ANSWER_SECONDS)


def _produce(cluster: EmbeddedCluster, topic: str, values: Sequence[bytes]) -> None:
    producer = Producer({**cluster.client_config(), "acks": "all"})
    refused: list[object] = []
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: refused.append(error) if error else None)
    assert producer.flush(ANSWER_SECONDS) == 0
    assert refused == []


def _consume(cluster: EmbeddedCluster, topic: str, count: int) -> list[bytes]:
    consumer = Consumer({**cluster.client_config(), "group.id": topic, "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([topic])
        messages = consumer.consume(count, ANSWER_SECONDS)
        for message in messages:
            if message.error():
                raise KafkaException(message.error())
        return [message.value() for message in messages]
    finally:
        consumer.close()


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
