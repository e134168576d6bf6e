"""Which records of the source's transactions a copy gets, as its flow says, on real brokers."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from confluent_kafka import Producer

from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.model.tasks.status import PartitionState
from reconciler.replicator.task import open_transactions
from tests.contract.replicator.commit.test_translated import make
from tests.support.replicator.copying import Running, code, identical, spec_of, wait_until_ends_at
from tests.support.replicator.translated import contents


def transaction(cluster: EmbeddedCluster, name: str, topic: str, *values: bytes) -> Producer:
    """Write records in a transaction, and leave it open."""
    settings = {"transactional.id": name, "transaction.timeout.ms": 600_000, "log_level": "2"}
    producer = Producer(cluster.client_config() | settings)
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, b"k", 0)
    assert producer.flush(30) == 0
    return producer


def test_open_and_aborted_transactions_are_copied_only_where_that_is_asked_for(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    make(source_cluster, target_cluster, [topic_name])
    transaction(source_cluster, f"{topic_name}-1", topic_name, b"committed").commit_transaction(30)
    transaction(source_cluster, f"{topic_name}-2", topic_name, b"aborted").abort_transaction(30)
    waiting = transaction(source_cluster, f"{topic_name}-3", topic_name, b"open")
    spec = spec_of(source, target, topic_name)
    flow = replace(spec.flow, offsets="translated")
    with Running(replace(spec, flow=flow)) as running:
        running.wait(lambda status: all(one.lag == 0 and one.position > 0 for one in status.partitions))
    remote = flow.remote_topic(topic_name)
    assert [one[1] for one in contents(target, remote)] == [b"committed"]
    # The same copy goes on with all there is from where it stands: behind what was left out.
    everything = replace(flow, isolation_level="read_uncommitted")
    with Running(replace(spec_of(source, target, topic_name), flow=everything)) as running:
        running.wait(lambda status: all(one.lag == 0 for one in status.partitions))
        # Markers are written after a commit was answered.
        deadline = time.monotonic() + 30
        while len(found := contents(target, remote)) < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert [one[1] for one in found] == [b"committed", b"open"]
        waiting.abort_transaction(30)
        transaction(source_cluster, f"{topic_name}-4", topic_name, b"aborted, too").abort_transaction(30)
        transaction(source_cluster, f"{topic_name}-5", topic_name, b"last").commit_transaction(30)
        running.wait(lambda status: all(one.lag == 0 and one.position >= 10 for one in status.partitions))
    for isolation in ("read_committed", "read_uncommitted"):
        assert [one[1] for one in contents(target, remote, 0, isolation)] == [
            b"committed",
            b"open",
            b"aborted, too",
            b"last",
        ]


def test_a_transaction_that_nobody_ends_is_told_of_a_partition_without_lag(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(open_transactions, "LONGEST_OPEN", 0.5)
    monkeypatch.setattr(open_transactions, "ASK_IDLE_EVERY", 0.5)
    monkeypatch.setattr(open_transactions, "EVERY", 0.1)
    make(source_cluster, target_cluster, [topic_name])
    transaction(source_cluster, f"{topic_name}-1", topic_name, b"committed").commit_transaction(30)
    wait_until_ends_at(source, topic_name, 2)
    hanging = transaction(source_cluster, f"{topic_name}-2", topic_name, b"open", b"as well")
    plain = Producer(source_cluster.client_config() | {"log_level": "2"})
    plain.produce(topic_name, b"behind", b"k", 0)
    assert plain.flush(30) == 0
    spec = spec_of(source, target, topic_name)
    with Running(spec) as running:
        status = running.wait(lambda status: [code(one) for one in status.partitions] == ["AB234"])
        (one,) = status.partitions
        assert (one.state, one.position, one.lag) == (PartitionState.RUNNING, 2, 0)
        assert "3 offsets of" in str(one.reason)
        assert f"abort --topic {topic_name} --partition 0 --start-offset 2" in str(one.reason)
        hanging.commit_transaction(30)
        running.wait(lambda status: [(one.reason, one.position) for one in status.partitions] == [(None, 6)])
    assert identical(spec, topic_name) == 4
