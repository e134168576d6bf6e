"""A task is told to pause, to begin anew and what it gets, while records go by express."""

from __future__ import annotations

import time
from dataclasses import replace

from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.model.recorded.pauses import PauseScope
from reconciler.replicator.driver import discovery
from reconciler.replicator.partition.shares import Shares
from reconciler.state import control
from tests.contract.replicator.task.test_steering import PAUSED, announce, states, told
from tests.contract.replicator.transfer.test_fast_path import flow_of
from tests.support.clusters.kafka import create, delete, grow
from tests.support.replicator.copying import (
    REMOTE,
    SECONDS,
    Running,
    all_running,
    assert_counted,
    at,
    identical,
    log_end,
    spec_of,
)
from tests.support.replicator.trickles import PARTITIONS, Line, Trickle


def test_partitions_are_paused_resumed_and_begun_anew(
    source_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topics: tuple[str, str], line: Line
) -> None:
    spec = flow_of(source, target, topics)
    flow, (first, second) = spec.flow.name, topics
    times = 3
    with Running(spec) as running, Trickle(source_cluster, topics) as trickle:
        line.await_records()
        heard = control.pause(target, spec.topology, [PauseScope(flow, first, 1)])
        # It is paused once what was in flight is answered.
        running.wait(lambda status: status.heard >= heard and states(status).count(PAUSED) == 1)
        stands_at = log_end(target, f"east.{first}", 1)
        line.await_records(200)
        assert log_end(target, f"east.{first}", 1) == stands_at
        told(running, control.resume(target, spec.topology, [PauseScope(flow, first, 1)]))
        line.await_records()
        for number in range(times):
            scope = PauseScope(flow, second, number % PARTITIONS) if number % 2 else PauseScope(flow)
            told(running, control.restart(target, spec.topology, [scope], parked_only=False))
            line.await_records(20)
        told(running, control.pause(target, spec.topology, [PauseScope(flow)]))
        told(running, control.resume(target, spec.topology, [PauseScope(flow)]))
        line.await_records()
        sent = trickle.finish()
        status = running.settled_again()
        assert all_running(status.partitions)
    assert_counted(sum(row.records for row in running.rows), sent, status, retries=times + 2)
    assert identical(spec, *topics) == sent


def test_partitions_and_topics_come_while_an_express_goes(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    line: Line,
) -> None:
    first, second = f"{topic_name}-a", f"{topic_name}-b"
    create(source_cluster, first)
    create(target_cluster, f"east.{first}", 1, REMOTE)
    spec = spec_of(source, target, f"{topic_name}.*")
    spec = replace(spec, flow=replace(spec.flow, name=topic_name[-8:]))
    shares = Shares().extended(discovery.matching(spec), 1)
    with Running(spec) as running, Trickle(source_cluster, [first], partitions=1) as trickle:
        announce(spec, shares)
        line.await_records()
        grow(source_cluster, first, 2)
        grow(target_cluster, f"east.{first}", 2)
        create(source_cluster, second, 2)
        create(target_cluster, f"east.{second}", 2, REMOTE)
        # The client that lists topics may be slower than the broker.
        deadline = time.monotonic() + SECONDS
        while len(shares.of(0)) < 4 and time.monotonic() < deadline:
            shares = shares.extended(discovery.matching(spec), 1)
        with Trickle(source_cluster, [first, second], partitions=2) as more:
            line.await_records()
            announce(spec, shares)
            running.wait(lambda status: len(status.partitions) == 4 and all_running(status.partitions))
            line.await_records(200)
            sent = trickle.finish() + more.finish()
        grown = running.wait(
            lambda status: len(status.partitions) == 4 and sum(p.position for p in status.partitions) == sent
        )
        assert at(grown, second, 1).position > 0
    assert_counted(sum(row.records for row in running.rows), sent, grown)
    assert identical(spec, first, second) == sent


def test_a_remote_topic_is_made_anew_while_its_copy_is_aboard(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topics: tuple[str, str],
    line: Line,
) -> None:
    spec = flow_of(source, target, topics)
    remote = f"east.{topics[0]}"
    with Running(spec) as running, Trickle(source_cluster, topics) as trickle:
        line.await_records()
        delete(target_cluster, remote)
        create(target_cluster, remote, PARTITIONS, REMOTE)
        line.await_records(200)
        sent = trickle.finish()
        running.settled_again()
    assert identical(spec, *topics) == sent
