"""Brokers that come back are known again as soon as somebody wants to speak to them."""

from __future__ import annotations

import time

from reconciler.embedded import ClusterOptions
from reconciler.wire import ConnectionLost, Loop, Wire, stable_ends
from tests.conftest import MakeClusters
from tests.support.clusters.kafka import create, declared, metadata

SECONDS = 300.0
QUICK_RETURN = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "250"}


def test_a_broker_that_was_away_when_we_asked_who_is_there(make_clusters: MakeClusters, topic_name: str) -> None:
    (three,) = make_clusters("three", options=ClusterOptions(nodes=3, overrides=QUICK_RETURN))
    create(three, topic_name, 3, replicas=3)
    three.kill_broker(2)
    deadline = time.monotonic() + SECONDS
    while 2 in metadata(three).brokers:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    loop = Loop()
    wire = Wire(loop, declared("east", three), "tests", 5.0)
    tries: list[str] = []

    async def connect() -> None:
        await wire.connect()

    async def speak() -> None:
        """Say anything to node 2 alone."""
        while True:
            try:
                await stable_ends(wire, 2, [(topic_name, 0)])
            except ConnectionLost as lost:
                tries.append(str(lost))
                assert time.monotonic() < deadline, tries[-1]
                await loop.sleep(0.2)
            else:
                return

    loop.run(connect)
    three.start_broker(2)
    deadline = time.monotonic() + SECONDS
    loop.run(speak)
    wire.close()
    loop.close()
    assert "unknown broker id" in tries[0]
