"""Leaders at the target that die in the middle of transactions: no record is lost, and none is committed twice."""

from __future__ import annotations

import time
from dataclasses import replace

from confluent_kafka.admin import NewTopic

from reconciler.embedded import ClusterOptions, EmbeddedCluster
from reconciler.model.cluster import Cluster
from reconciler.model.names import syncs_topic
from reconciler.model.status import PartitionState
from tests.conftest import MakeClusters
from tests.contract.kafka import admin, create, declared, wait_until_seen
from tests.support.copying import REMOTE, SECONDS, Running, all_running, at, code, spec_of
from tests.support.traffic import Traffic
from tests.support.translated import contents

PARTITIONS = 6
QUICK_RETURN = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "250"}


def test_leaders_that_die_in_the_middle_of_transactions(
    make_clusters: MakeClusters, source_cluster: EmbeddedCluster, source: Cluster, topic_name: str
) -> None:
    """Each partition has one replica, so that with its node nobody leads it."""
    (three,) = make_clusters("three", options=ClusterOptions(nodes=3, overrides=QUICK_RETURN))
    create(source_cluster, topic_name, PARTITIONS)
    remote = f"east.{topic_name}"
    client = admin(three)
    wanted = [NewTopic(remote, PARTITIONS, 1, config=REMOTE), NewTopic(syncs_topic("east"), 1, 3)]
    for future in client.create_topics(wanted).values():
        future.result(SECONDS)
    wait_until_seen(client, remote, PARTITIONS)
    spec = spec_of(source, declared("west", three), topic_name)
    spec = replace(spec, flow=replace(spec.flow, offsets="translated"))
    traffic = Traffic(source_cluster, topic_name, PARTITIONS, 90_000, 10_000, per_second=3_000)
    with Running(spec) as copying:
        copying.wait(lambda status: all_running(status.partitions))
        traffic.start()
        for node in (1, 2, 3):
            before = copying.wait().records
            copying.wait(lambda status, before=before: status.records > before)  # type: ignore[misc]
            three.kill_broker(node)
            time.sleep(1.5)
            three.start_broker(node)
        traffic.finish()
        status = copying.settled_again()
    for number in range(PARTITIONS):
        found = at(status, topic_name, number)
        theirs, ours = contents(source, topic_name, number), contents(spec.target, remote, number)
        print(number, found.state, code(found), len(ours), len(theirs))
        if found.state is PartitionState.RUNNING:
            assert ours == theirs
        else:
            assert code(found) == "AB228"
            assert ours == theirs[: len(ours)]
