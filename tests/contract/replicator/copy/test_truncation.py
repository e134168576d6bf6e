"""A source that loses what was copied: leader epochs tell (KIP-320), and clean moves are not taken for a loss."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace

from confluent_kafka.admin import NewTopic, PartitionMetadata

from reconciler.embedded import ClusterOptions, EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import OnDataLoss
from reconciler.model.names.own_names import syncs_topic
from reconciler.model.tasks.spec import FlowSpec
from reconciler.model.tasks.status import PartitionState, TaskStatus
from reconciler.replicator.partition.shares import Place
from reconciler.state.copies import Copies
from tests.conftest import MakeClusters
from tests.support.clusters.kafka import admin, create, declared, metadata, wait_until_seen
from tests.support.replicator.copying import (
    REMOTE,
    SECONDS,
    Running,
    all_running,
    at,
    code,
    fill,
    identical,
    log_end,
    spec_of,
)
from tests.support.replicator.translated import assert_translates, contents

QUICK_RETURN = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "250"}
UNCLEAN = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}
PARKED = PartitionState.PARKED


class Topics:
    """A topic for each mode of offsets and one for another flow, with replicas on two nodes; two with one replica."""

    def __init__(self, source: EmbeddedCluster, target: EmbeddedCluster, name: str) -> None:
        self.source = source
        self.same, self.other, self.again = f"{name}-same", f"{name}-other", f"{name}-again"
        self.singles = f"{name}-single-same", f"{name}-single-other"
        self._client = admin(source)
        both = [NewTopic(topic, 1, replica_assignment=[[1, 2]], config=UNCLEAN) for topic in self.pairs]
        single = [NewTopic(topic, 1, replica_assignment=[[1]]) for topic in self.singles]
        for future in self._client.create_topics(both + single).values():
            future.result(SECONDS)
        for topic in self.all:
            wait_until_seen(self._client, topic, 1)
            create(target, f"east.{topic}", 1, REMOTE)
        if syncs_topic("east") not in admin(target).list_topics(timeout=SECONDS).topics:
            create(target, syncs_topic("east"), 1, {"cleanup.policy": "compact"})

    @property
    def pairs(self) -> tuple[str, ...]:
        return self.same, self.other, self.again

    @property
    def all(self) -> tuple[str, ...]:
        return *self.pairs, *self.singles

    def places(self, *topics: str) -> list[Place]:
        return [
            Place(topic, 0, f"east.{topic}", "identical" if topic.endswith("same") else "translated")
            for topic in topics or (self.same, self.other, *self.singles)
        ]

    def fill(self, records: int, topics: Iterable[str]) -> None:
        for topic in topics:
            fill(self.source, topic, records)

    def wait(self, until: Callable[[PartitionMetadata], bool], *topics: str) -> int:
        """Wait until it holds for the partitions that have two replicas; return who leads them."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            known = metadata(self.source).topics
            found = [known[topic].partitions[0] for topic in topics or self.pairs if topic in known]
            if all(one.error is None and until(one) for one in found) and len({one.leader for one in found}) == 1:
                return int(found[0].leader)
            time.sleep(0.1)
        message = "the source never looked so"
        raise AssertionError(message)


def declaring(spec: FlowSpec, on_data_loss: OnDataLoss) -> FlowSpec:
    """Return another run of a flow, with what is declared of data loss."""
    return replace(spec, run=uuid.uuid4().hex, flow=replace(spec.flow, on_data_loss=on_data_loss))


def has_stopped(status: TaskStatus) -> bool:
    return all(partition.state is PARKED for partition in status.partitions)


def test_a_source_whose_leader_changes_uncleanly(
    make_clusters: MakeClusters, target_cluster: EmbeddedCluster, target: Cluster, topic_name: str
) -> None:
    (two,) = make_clusters("two", options=ClusterOptions(nodes=3, overrides=QUICK_RETURN))
    topics = Topics(two, target_cluster, topic_name)
    same, other = topics.same, topics.other
    spec = spec_of(declared("east", two), target, f"{topic_name}-.*")
    flow = replace(spec.flow, name="again", offsets="translated", delivery="at-least-once")
    repeating = declaring(replace(spec, flow=flow), "park")
    with (
        Running(spec, topics.places()) as copying,
        Running(repeating, topics.places(topics.again)) as again,
    ):
        topics.fill(100, topics.all)
        copying.settled_again()
        leader = _move_cleanly(copying, topics)
        # The follower is away; what is written now has one replica, and is copied.
        follower = 3 - leader
        two.kill_broker(follower)
        topics.wait(lambda one: one.isrs == [leader])
        topics.fill(40, topics.pairs)
        copying.wait(lambda status: {at(status, topic).position for topic in (same, other)} == {190})
        again.wait(lambda status: at(status, topics.again).position == 190)
        # It comes back alone and leads, without all that.
        two.kill_broker(leader)
        two.start_broker(follower)
        topics.wait(lambda one: one.leader == follower)
        status = copying.wait(lambda status: all(at(status, topic).state is PARKED for topic in (same, other)))
        assert code(at(again.wait(has_stopped), topics.again)) == "AB219"
    for topic in (same, other):
        found = at(status, topic)
        assert (code(found), found.position) == ("AB219", 190)
        assert f"40 offsets of {topic}/0 that were copied, 150 to 189" in str(found.reason)
    assert log_end(target, f"east.{same}") == 190
    copied = {topic: contents(target, f"east.{topic}") for topic in (same, other)}
    assert {topic: len(found) for topic, found in copied.items()} == {same: 190, other: 190}
    # Nothing but epochs tells of it when the source has more again than was copied.
    topics.fill(70, topics.pairs)
    _other_runs(spec, topics, copied)
    _the_repeating_one(declaring(repeating, "continue"), topics)


def _the_repeating_one(spec: FlowSpec, topics: Topics) -> None:
    """Offsets that were copied before lead to the records that the source has there now, and not to the lost ones."""
    again, remote = topics.again, f"east.{topics.again}"
    copied = contents(spec.target, remote)
    for position in (220, 230):
        with Running(declaring(spec, "continue"), topics.places(again)) as copying:
            assert at(copying.wait(), again).position == position
        assert contents(spec.target, remote)[190:] == contents(spec.source, again)[150:]
        assert assert_translates(spec.source, again, spec.target, remote) == position
        topics.fill(10, [again])
    assert len(copied) == 190


def put_aside(spec: FlowSpec, topic: str, offset: int) -> None:
    """Remember a record as put aside."""
    copies = Copies(spec.target, spec.topology)
    copies.refresh()
    known = copies.get(spec.flow.name, f"east.{topic}", 0)
    assert known is not None
    copies.put(spec.flow.name, f"east.{topic}", 0, known.without(offset))
    copies.close()


def _move_cleanly(copying: Running, topics: Topics) -> int:
    """Kill the leader and have it back: another one leads what has two, the same one what has one. Nothing is lost."""
    before = topics.wait(lambda one: len(one.isrs) == 2)
    topics.source.kill_broker(before)
    leader = topics.wait(lambda one: one.leader not in (-1, before))
    topics.source.start_broker(before)
    topics.wait(lambda one: len(one.isrs) == 2)
    topics.wait(lambda one: one.leader == before, *topics.singles)
    topics.fill(50, topics.all)
    status = copying.settled_again()
    assert all_running(status.partitions), [str(partition.reason) for partition in status.partitions]
    assert {partition.position for partition in status.partitions} == {150}
    assert {partition.reason for partition in status.partitions} == {None}
    assert identical(copying.spec, topics.same, topics.singles[0]) == 300
    return leader


def _other_runs(spec: FlowSpec, topics: Topics, copied: dict[str, list[tuple[object, ...]]]) -> None:
    """The runs that come later know of it by the position's note, or by comparing records."""
    same, other, target = topics.same, topics.other, spec.target
    places = topics.places(same, other)
    with Running(declaring(spec, "park"), places) as copying:
        status = copying.wait(has_stopped)
    assert {topic: code(at(status, topic)) for topic in (same, other)} == {same: "AB209", other: "AB219"}
    assert "150 to 189" in str(at(status, other).reason)
    assert {topic: contents(target, f"east.{topic}") for topic in copied} == copied
    # A record of the old log had been put aside: the new one has another at its offset.
    put_aside(spec, other, 160)
    with Running(declaring(spec, "continue"), places) as copying:
        status = copying.wait(lambda status: at(status, other).position == 220 and at(status, same).state is PARKED)
    found = at(status, other)
    assert (found.state, code(found)) == (PartitionState.RUNNING, "AB219")
    assert contents(target, f"east.{same}") == copied[same]
    theirs = contents(spec.source, other)
    assert len(theirs) == 220
    assert contents(target, f"east.{other}") == copied[other] + theirs[150:]
    # The position is the new log's now.
    topics.fill(10, [other])
    with Running(declaring(spec, "park"), topics.places(other)) as copying:
        status = copying.wait()
    assert all_running(status.partitions)
    assert contents(target, f"east.{other}") == copied[other] + contents(spec.source, other)[150:]
