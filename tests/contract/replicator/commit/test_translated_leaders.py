"""Leaders at the target that die in the middle of transactions: no record is lost, and none is committed twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from reconciler.embedded import ClusterOptions, EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.model.names.own_names import syncs_topic
from reconciler.replicator.commit import hanging_transactions, unstable_offsets
from reconciler.replicator.takeover import translated
from reconciler.wire.requests import commits
from tests.conftest import MakeClusters
from tests.support.clusters.kafka import admin, create, declared, metadata, wait_until_seen
from tests.support.clusters.traffic import Traffic
from tests.support.replicator.copying import REMOTE, SECONDS, Running, all_running, spec_of
from tests.support.replicator.translated import assert_in_order

PARTITIONS = 6
# One replica of the positions, too: while its node is away nobody coordinates the group.
QUICK_RETURN = {
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "250",
    "offsets.topic.replication.factor": "1",
}


@pytest.mark.long
def test_leaders_that_die_in_the_middle_of_transactions(
    make_clusters: MakeClusters,
    source_cluster: EmbeddedCluster,
    source: Cluster,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each partition has one replica, so that with its node nobody leads it; some markers are missing then."""
    monkeypatch.setattr(translated, "end", ended := Counted(hanging_transactions.end))
    monkeypatch.setattr(unstable_offsets, "write_missing", written := Counted(hanging_transactions.write_missing))
    (three,) = make_clusters("three", options=ClusterOptions(nodes=3, overrides=QUICK_RETURN))
    create(source_cluster, topic_name, PARTITIONS)
    remote = f"east.{topic_name}"
    client = admin(three)
    wanted = [NewTopic(remote, PARTITIONS, 1, config=REMOTE), NewTopic(syncs_topic("east"), 1, 3)]
    for future in client.create_topics(wanted).values():
        future.result(SECONDS)
    wait_until_seen(client, remote, PARTITIONS)
    monkeypatch.setattr(commits, "end", killing := Killing(three, client))
    spec = spec_of(source, declared("west", three), topic_name)
    spec = replace(spec, flow=replace(spec.flow, offsets="translated"))
    # It lasts as long as it takes to kill all three.
    traffic = Traffic(source_cluster, topic_name, PARTITIONS, 90_000, 10_000, per_second=200)
    with Running(spec) as copying:
        copying.wait(lambda status: all_running(status.partitions))
        traffic.start()
        for node in (1, 2, 3):
            before = copying.wait().records
            copying.wait(lambda status, before=before: status.records > before)  # type: ignore[misc]
            killing.at(node)
            three.start_broker(node)
        traffic.finish()
        status = copying.settled_again()
    print(f"{ended.count} markers of records were missing, {written.count} of positions")
    assert all_running(status.partitions), [str(one.reason) for one in status.partitions]
    assert assert_in_order(spec, topic_name, PARTITIONS) == 90_000


class Counted:
    """Counts the calls of a function."""

    def __init__(self, function: Callable[..., Awaitable[None]]) -> None:
        self._function = function
        self.count = 0

    async def __call__(self, *given: Any, **named: Any) -> None:
        await self._function(*given, **named)
        self.count += 1


class Killing:
    """Ends transactions, and before one of them a broker: what it leads has no leader when markers are written."""

    def __init__(self, cluster: EmbeddedCluster, client: AdminClient) -> None:
        self._cluster = cluster
        self._client = client
        self._end = commits.end
        self._node: int | None = None
        self._done = threading.Event()

    def at(self, node: int) -> None:
        """Kill a node right before the next transaction ends, and wait until the others know that it is away."""
        self._done.clear()
        self._node = node
        assert self._done.wait(SECONDS), "no transaction ends"
        deadline = time.monotonic() + SECONDS
        while node in metadata(self._cluster).brokers:
            assert time.monotonic() < deadline, "a broker that is dead is still named"
            time.sleep(0.1)

    async def __call__(self, *given: Any, **named: Any) -> None:
        if self._node is not None:
            self._cluster.kill_broker(self._node)
            self._node = None
            self._done.set()
        await self._end(*given, **named)
