"""Owners of copies with offsets of their own: whoever stood still, died or was forgotten, every record counts once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from reconciler.embedded import EmbeddedCluster, running
from reconciler.model.declared.cluster import Cluster
from reconciler.model.names.own_names import lease_group, syncs_topic
from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.copy.producer_names import ProducerNames
from tests.contract.replicator.lease.test_two_owners import FORGETFUL
from tests.support.clusters.kafka import create, declared
from tests.support.clusters.traffic import WEEK_MS
from tests.support.replicator.copying import (
    REMOTE,
    SECONDS,
    Running,
    all_running,
    copy,
    fill,
    spec_of,
    wait_until_forgotten,
)
from tests.support.replicator.translated import assert_in_order, committed
from tests.support.replicator.two_ages import feed
from tests.support.replicator.two_runs import another, copy_while_one_dies, copy_while_one_stands_still


@pytest.fixture(scope="module")
def forgetful() -> Iterator[EmbeddedCluster]:
    """A cluster that forgets producers whose records are older than a second."""
    with running(EmbeddedCluster("forgetful", FORGETFUL)) as (cluster,):
        create(cluster, syncs_topic("east"), 1, {"cleanup.policy": "compact"})
        yield cluster


def translated(source: Cluster, target: EmbeddedCluster, *include: str) -> FlowSpec:
    spec = spec_of(source, declared("west", target), *include)
    return replace(spec, flow=replace(spec.flow, offsets="translated"))


def test_a_process_that_stood_still_commits_nothing_any_more(
    source_cluster: EmbeddedCluster, forgetful: EmbeddedCluster, source: Cluster, topic_name: str
) -> None:
    """What it had written under its lost lease is aborted, though it is a member of the group again."""
    traffic = feed(source_cluster, forgetful, topic_name, 20_000)
    spec = translated(source, forgetful, f"{topic_name}-.*")
    copy_while_one_stands_still(spec, traffic, source_cluster, topic_name, shares=False)
    assert sum(assert_in_order(spec, topic, 4) for topic in traffic) == 40_800


def test_a_dead_runs_partitions_are_taken_over(
    source_cluster: EmbeddedCluster, forgetful: EmbeddedCluster, source: Cluster, topic_name: str
) -> None:
    traffic = feed(source_cluster, forgetful, topic_name, 10_000)
    spec = translated(source, forgetful, f"{topic_name}-.*")
    copy_while_one_dies(spec, traffic, shares=False)
    assert sum(assert_in_order(spec, topic, 4) for topic in traffic) == 20_000


@pytest.mark.parametrize("holds_position", [False, True], ids=["records", "records-and-position"])
def test_what_a_run_that_died_before_its_first_commit_has_left_open_holds_nobody_up(
    source_cluster: EmbeddedCluster, forgetful: EmbeddedCluster, source: Cluster, topic_name: str, holds_position: bool
) -> None:
    """No position names it. Transactions of others in the same partition are left to them."""
    remote = f"east.{topic_name}"
    create(source_cluster, topic_name)
    create(forgetful, remote, 1, REMOTE)
    spec = translated(source, forgetful, topic_name)
    fill(source_cluster, topic_name, 100)
    copy(spec)
    dead = begun(forgetful, ProducerNames(spec.topology, spec.flow.name).committing_id("dead", 0), remote)
    if holds_position:
        reader = Consumer(forgetful.client_config() | {"group.id": lease_group(spec.topology, spec.flow.name)})
        dead.send_offsets_to_transaction([TopicPartition(remote, 0, 7)], reader.consumer_group_metadata(), SECONDS)
        reader.close()
    fill(source_cluster, topic_name, 50)
    assert all_running(copy(another(spec)).status.partitions)
    assert assert_in_order(spec, topic_name) == 150
    with pytest.raises(KafkaException):
        dead.commit_transaction(SECONDS)
    assert assert_in_order(spec, topic_name) == 150

    other = begun(forgetful, f"anabranch.tests.other-flow.{spec.run}.0", remote)
    fill(source_cluster, topic_name, 50)
    copy(another(spec))
    other.commit_transaction(SECONDS)
    found = [one.value() for one in committed(spec.target, remote)]
    assert (len(found), found.count(b"of a transaction")) == (201, 1)


def begun(cluster: EmbeddedCluster, transactional_id: str, topic: str) -> Producer:
    """Return a producer that has written one record in a transaction, and not ended it."""
    settings = {"transactional.id": transactional_id, "transaction.timeout.ms": 600_000, "log_level": "2"}
    producer = Producer(cluster.client_config() | settings)
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    producer.produce(topic, b"of a transaction", partition=0)
    assert producer.flush(SECONDS) == 0
    return producer


def test_what_the_target_forgets_of_the_producer_of_old_records_stops_nothing(
    source_cluster: EmbeddedCluster, forgetful: EmbeddedCluster, source: Cluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    create(forgetful, f"east.{topic_name}", 1, REMOTE)
    spec = translated(source, forgetful, topic_name)
    with Running(spec) as copying:
        for _ in range(3):
            fill(source_cluster, topic_name, 300, age=WEEK_MS)
            copying.settled_again()
            wait_until_forgotten(spec.target, f"east.{topic_name}")
    assert assert_in_order(spec, topic_name) == 900
