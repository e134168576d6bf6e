"""Logs that others wrote to are handed to the flow that copies back, and then to the flow itself."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest
from confluent_kafka import Producer

from reconciler.demo.compare import compare
from reconciler.embedded import EmbeddedCluster
from reconciler.failover.logs.handover import Handover, hand_over, log_states
from reconciler.model.base.errors import EnvironmentFault
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.names.renames import RenameRule
from reconciler.model.names.selection import Selection
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.model.tasks.spec import FlowSpec
from reconciler.model.tasks.status import PartitionState
from tests.support.clusters.kafka import create
from tests.support.replicator.copying import REMOTE, code, copy, fill, log_end, spec_of


def back(spec: FlowSpec, topic: str, remote: str) -> FlowSpec:
    """Return the flow that copies `remote` back into its original."""
    policy = ReplicationPolicy("rename", rules=(RenameRule(remote, topic),), otherwise="identity")
    flow = Flow("back", spec.flow.target, spec.flow.source, Selection((remote,)), policy, offsets="identical")
    return replace(spec, run=f"{spec.run}-back", flow=flow, source=spec.target, target=spec.source)


def write(cluster: EmbeddedCluster, topic: str, records: int, transactional: bool) -> None:
    """Produce as others do: idempotent, and in transactions of which the last one is aborted."""
    named = {"transactional.id": uuid.uuid4().hex} if transactional else {"enable.idempotence": True}
    producer = Producer(cluster.client_config() | named | {"linger.ms": 5, "log_level": "2"})
    if not transactional:
        _produce(producer, topic, records)
        assert producer.flush(300) == 0
        return
    producer.init_transactions(60)
    for part in (records // 2, records - records // 2):
        producer.begin_transaction()
        _produce(producer, topic, part)
        producer.commit_transaction(60)
    producer.begin_transaction()
    _produce(producer, topic, 7)
    producer.flush(300)
    producer.abort_transaction(60)


def _produce(producer: Producer, topic: str, records: int) -> None:
    for number in range(records):
        producer.produce(topic, key=b"key-%d" % number, value=b"%d" % number * (number % 9), partition=0)


@pytest.mark.parametrize("transactional", [False, True], ids=["plain", "transactions"])
def test_what_came_to_the_copy_goes_back_at_its_own_offsets_and_the_flow_goes_on(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    transactional: bool,
) -> None:
    remote = f"east.{topic_name}"
    create(source_cluster, topic_name)
    create(target_cluster, remote, 1, REMOTE)
    forward = spec_of(source, target, topic_name)
    backward = back(forward, topic_name, remote)
    for turn in range(2):
        write(source_cluster, topic_name, 300, transactional)
        copy(spec_of(source, target, topic_name))
        assert log_end(target, remote) == log_end(source, topic_name)
        write(target_cluster, remote, 200, transactional)
        if transactional and turn == 0:
            # Nobody has said that this log is ours.
            refused = copy(backward, lambda status: status.partitions[0].state is PartitionState.PARKED)
            assert code(refused.at(remote)) in ("AB209", "AB211"), refused.status
        log, copied = (topic_name, 0), (remote, 0)
        ours, theirs = log_states(source, [log])[log], log_states(target, [copied])[copied]
        hand_over(source, forward.topology, "back", {log: Handover(theirs.topic_id, ours)})
        copy(replace(backward, run=f"{backward.run}-{turn}"))
        ends = log_end(target, remote), log_end(source, topic_name)
        assert ends[0] == ends[1] > ours.end
        theirs = log_states(target, [copied])[copied]
        hand_over(target, forward.topology, forward.flow.name, {copied: Handover(ours.topic_id, theirs)})
    fill(source_cluster, topic_name, 100)
    copy(spec_of(source, target, topic_name))
    # What others aborted in the copy only readers of uncommitted records see.
    found = compare(source, topic_name, target, remote, "read_committed")
    assert (found.is_identical, found.records) == (True, 1100), found


def test_what_is_not_there_is_named(source: Cluster, topic_name: str) -> None:
    with pytest.raises(EnvironmentFault, match=f"topic {topic_name}, partition 0: the cluster answers UNKNOWN_TOPIC"):
        log_states(source, [(topic_name, 0)])
