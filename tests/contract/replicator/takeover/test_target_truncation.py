"""A target that loses what it had: identical copies are copied again from there, translated ones wait for somebody."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace

from confluent_kafka.admin import NewTopic

from reconciler.embedded import ClusterOptions, EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.model.names.own_names import syncs_topic
from reconciler.model.tasks.status import PartitionState
from reconciler.replicator.partition.shares import Place
from tests.conftest import MakeClusters
from tests.contract.replicator.copy.test_truncation import QUICK_RETURN, UNCLEAN
from tests.support.clusters.kafka import admin, create, declared, metadata, wait_until_seen
from tests.support.replicator.copying import REMOTE, SECONDS, Running, at, code, fill, log_end, spec_of
from tests.support.replicator.translated import contents


def leader_of(cluster: EmbeddedCluster, topics: list[str], among: set[int], others: int) -> int:
    """Return who of some nodes leads some topics, once so many of their other replicas are in sync with it."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        time.sleep(0.1)
        known = metadata(cluster).topics
        found = [known[topic].partitions[0] for topic in topics]
        leaders = {one.leader for one in found}
        if len(leaders) == 1 and leaders <= among and all(len(one.isrs) == 1 + others for one in found):
            return int(leaders.pop())
    message = "the target never looked so"
    raise AssertionError(message)


def test_a_target_whose_leader_changes_uncleanly(
    make_clusters: MakeClusters, source_cluster: EmbeddedCluster, source: Cluster, topic_name: str
) -> None:
    (three,) = make_clusters("three", options=ClusterOptions(nodes=3, overrides=QUICK_RETURN))
    same, other = f"{topic_name}-same", f"{topic_name}-other"
    places = [Place(same, 0, f"east.{same}", "identical"), Place(other, 0, f"east.{other}", "translated")]
    remotes = [place.remote for place in places]
    client = admin(three)
    new = [NewTopic(remote, 1, replica_assignment=[[1, 2]], config=REMOTE | UNCLEAN) for remote in remotes]
    for future in client.create_topics(new).values():
        future.result(SECONDS)
    for remote in remotes:
        wait_until_seen(client, remote, 1)
    create(three, syncs_topic("east"), 1, {"cleanup.policy": "compact"}, replicas=3)
    for topic in (same, other):
        create(source_cluster, topic)
    spec = spec_of(source, declared("west", three), f"{topic_name}-.*")

    def run() -> Running:
        return Running(replace(spec, run=uuid.uuid4().hex), places)

    for records in (100, 40):
        for topic in (same, other):
            fill(source_cluster, topic, records)
        with run() as copying:
            copying.wait()
        if records == 100:
            leader = leader_of(three, remotes, {1, 2}, 1)
            # What is written now has one replica.
            three.kill_broker(3 - leader)
            leader_of(three, remotes, {leader}, 0)
    ends = [log_end(spec.target, remote) for remote in remotes]
    three.kill_broker(leader)
    three.start_broker(3 - leader)
    # Those who have not heard yet name the one that was killed.
    leader_of(three, remotes, {3 - leader}, 0)
    left = [log_end(spec.target, remote) for remote in remotes]
    assert all(now < before for now, before in zip(left, ends, strict=True)), (left, ends)
    three.start_broker(leader)
    with run() as copying:
        status = copying.wait(
            lambda status: at(status, other).state is PartitionState.PARKED and at(status, same).position == 140
        )
    assert code(at(status, other)) == "AB225"
    assert f"ends at {left[1]}" in str(at(status, other).reason)
    assert contents(spec.target, remotes[0]) == contents(source, same)
    assert log_end(spec.target, remotes[1]) == left[1]
