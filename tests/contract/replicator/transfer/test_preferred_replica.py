"""Records are read from the replica in our rack, from the leader while that one is away, and from it again."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace

import pytest

from reconciler.embedded import ClusterOptions, EmbeddedCluster
from reconciler.model.connection.references import Reference
from reconciler.model.declared.cluster import Cluster
from reconciler.replicator.transfer import preferred_replica
from reconciler.wire import FetchAnswer, FetchSession, Wire
from tests.conftest import MakeClusters
from tests.support.clusters.kafka import create, declared
from tests.support.replicator.copying import REMOTE, SECONDS, Running, fill, identical, spec_of
from tests.support.replicator.translated import assert_in_order

PARTITIONS = 3
OPTIONS = ClusterOptions(
    nodes=3,
    racks=("a", "b", "c"),
    overrides={"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "250"},
)


class Reads:
    """How many bytes of records each broker of the source has handed out."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bytes: Counter[int] = Counter()
        whole = Wire.fetch_more

        async def counted(wire: Wire, session: FetchSession, wait_ms: int, max_bytes: int) -> list[FetchAnswer]:
            answers = await whole(wire, session, wait_ms, max_bytes)
            self.bytes[session.node] += sum(len(answer.records) for answer in answers)
            return answers

        monkeypatch.setattr(Wire, "fetch_more", counted)

    def take(self) -> set[int]:
        """Return who has handed out records since the last call."""
        nodes = {node for node, count in self.bytes.items() if count}
        self.bytes.clear()
        return nodes


def test_a_replica_in_our_rack_is_read(
    make_clusters: MakeClusters,
    target_cluster: EmbeddedCluster,
    target: Cluster,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (three,) = make_clusters("three", options=OPTIONS)
    create(three, topic_name, PARTITIONS, replicas=3)
    create(target_cluster, f"east.{topic_name}", PARTITIONS, REMOTE)
    monkeypatch.setattr(preferred_replica, "_SHUNNED", 1.0)
    monkeypatch.setenv("OUR_RACK", "b")
    spec = spec_of(replace(declared("east", three), rack=Reference("env", "OUR_RACK")), target, topic_name)
    reads = Reads(monkeypatch)
    fill(three, topic_name, 3_000, PARTITIONS)
    with Running(spec) as copying:
        copying.wait()
        assert reads.take() == {2}
        fill(three, topic_name, 3_000, PARTITIONS)
        copying.settled_again()
        assert reads.take() == {2}
        three.kill_broker(2)
        fill(three, topic_name, 3_000, PARTITIONS)
        copying.settled_again(running=True)
        assert reads.take() == {1, 3}
        three.start_broker(2)
        deadline = time.monotonic() + SECONDS
        while reads.take() != {2}:
            assert time.monotonic() < deadline, "the replica is never read again"
            fill(three, topic_name, 300, PARTITIONS)
            copying.settled_again()
    assert identical(spec, topic_name) == assert_in_order(spec, topic_name, PARTITIONS) >= 9_300
