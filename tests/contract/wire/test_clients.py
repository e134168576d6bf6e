"""Settings of clients do what they say, on a real broker, behind a line on which every request is heard."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import Producer

from reconciler.embedded import ClusterOptions, EmbeddedCluster
from reconciler.embedded.ports import HOST
from reconciler.model.base.errors import Unreachable
from reconciler.model.declared.clients import AdminSettings, Clients, ConsumerSettings, LineSettings, ProducerSettings
from reconciler.model.declared.cluster import Cluster
from reconciler.observe.connection import Connection
from reconciler.replicator.task.connections import Connections
from reconciler.wire import ConnectionLost, Job, Loop, Wire
from tests.support.clusters.kafka import create, declared
from tests.support.clusters.relay import Relay
from tests.support.replicator.copying import REMOTE, copy, fill, identical, spec_of
from tests.support.wire.tap import METADATA, Tap

SECONDS = 300.0
KIB = 1024
RECORDS, PARTITIONS = 8_000, 8
_BUFFERS = (socket.SO_SNDBUF, socket.SO_RCVBUF)


class Line:
    """A cluster of one broker and the line to it.

    Attributes:
        cluster: the broker.
        relay: the line.
        tap: all requests that it has carried since the test began.
    """

    def __init__(self, cluster: EmbeddedCluster, relay: Relay) -> None:
        self.cluster = cluster
        self.relay = relay
        self.tap = Tap()
        relay.heard = self.tap.hear

    def declared(self, alias: str, clients: Clients | None = None) -> Cluster:
        return Cluster(alias, (f"{HOST}:{self.relay.ports[0]}",), clients=clients or Clients())


@pytest.fixture(scope="module")
def known() -> Iterator[tuple[EmbeddedCluster, Relay]]:
    with Relay(1) as relay:
        cluster = EmbeddedCluster("heard", ClusterOptions(advertised=tuple(relay.ports)))
        cluster.launch()
        relay.upstream = [int(cluster.bootstrap.rpartition(":")[2])]
        try:
            cluster.await_ready()
            yield cluster, relay
        finally:
            cluster.stop()


@pytest.fixture
def line(known: tuple[EmbeddedCluster, Relay]) -> Line:
    return Line(*known)


class Wired:
    """A wire to a cluster with settings of its own, in a loop that runs until something is true."""

    def __init__(self, cluster: Cluster, timeout: float = 5.0, **settings: Any) -> None:
        self.loop = Loop()
        self.wire = Wire(self.loop, cluster, "tests", timeout, None, LineSettings(**settings))

    def __enter__(self) -> Wired:
        self.loop.run(self.wire.connect)
        return self

    def __exit__(self, *_: object) -> None:
        self.wire.close()
        self.loop.close()

    @property
    def connections(self) -> list[Any]:
        return [one for one in self.wire._manager._conns.values() if one.connected]

    def run_until(self, is_true: Callable[[], bool]) -> None:
        async def wait() -> None:
            deadline = time.monotonic() + SECONDS
            while not is_true():
                assert time.monotonic() < deadline, "it never came to that"
                await self.loop.sleep(0.02)

        self.loop.run(wait)

    def ask(self, topic: str) -> None:
        async def question() -> None:
            assert topic in await self.wire.topics([topic])

        self.loop.run(question)


def fill_with_small_batches(cluster: EmbeddedCluster, topic: str) -> None:
    producer = Producer(cluster.client_config() | {"batch.size": 15_000, "linger.ms": 50, "log_level": "2"})
    for number in range(RECORDS):
        producer.produce(topic, b"%d:" % number + b"body" * 100, partition=number % PARTITIONS)
    assert producer.flush(SECONDS) == 0


def test_a_copy_reads_writes_and_administers_as_it_is_declared(line: Line, topic_name: str) -> None:
    reads = ConsumerSettings(
        "reads", fetch_max_bytes=128 * KIB, max_partition_fetch_bytes=64 * KIB, fetch_max_wait_ms=111
    )
    writes = ProducerSettings("writes", request_timeout_ms=7_777, max_request_size=64 * KIB)
    clients = Clients(reads, writes, AdminSettings("admins"))
    source, target = line.declared("east", clients), line.declared("west", clients)
    create(line.cluster, topic_name, PARTITIONS)
    create(line.cluster, f"east.{topic_name}", PARTITIONS, REMOTE)
    fill_with_small_batches(line.cluster, topic_name)
    spec = spec_of(source, target, topic_name)
    copy(replace(spec, flow=replace(spec.flow, batch_size=0)))
    assert identical(spec, topic_name) == RECORDS

    fetches, produces = list(line.tap.fetches("reads")), list(line.tap.produces("writes"))
    copying = [one for one in fetches if one.wait_ms in {111, 20}]
    assert 111 in {one.wait_ms for one in copying}
    assert max(one.most for one in copying) == 128 * KIB
    assert max(size for one in copying for size in one.of_each.values()) == 64 * KIB
    assert {one.timeout_ms for one in produces} == {7_777}
    assert max(len(one.sizes) for one in produces) > 1
    assert max(sum(one.sizes.values()) for one in produces) <= 64 * KIB
    # Whoever has made and compared the topics is none of the product's.
    ids = {one.client for one in line.tap.requests} - {"rdkafka", "tests"}
    (lease,) = (name for name in ids if name.startswith("writes-lease@"))
    assert ids == {"reads", "writes", "admins", lease}


def test_sockets_have_the_declared_buffers(line: Line, topic_name: str) -> None:
    create(line.cluster, topic_name)
    with Wired(line.declared("east"), send_buffer_bytes=20_000, receive_buffer_bytes=30_000) as wired:
        wired.ask(topic_name)
        (connection,) = wired.connections
        buffers = [connection.transport._sock.getsockopt(socket.SOL_SOCKET, kind) for kind in _BUFFERS]
    # Linux doubles what it is told, for its own needs (socket(7)).
    assert buffers == [40_000, 60_000]


def test_a_connection_that_nobody_uses_is_closed_and_made_again(line: Line, topic_name: str) -> None:
    create(line.cluster, topic_name)
    with Wired(line.declared("east"), connections_max_idle_ms=500) as wired:
        wired.ask(topic_name)
        assert wired.connections
        wired.run_until(lambda: not wired.connections)
        wired.ask(topic_name)


def test_brokers_are_asked_again_who_is_there(line: Line) -> None:
    with Wired(line.declared("east"), metadata_max_age_ms=200) as wired:
        wired.run_until(lambda: len(line.tap.of(METADATA, "tests")) >= 5)


@pytest.mark.parametrize(
    ("backoff", "most", "is_once"), [(50, 1_000, False), (60_000, 60_000, True), (60_000, 10, False)]
)
def test_a_broker_that_does_not_let_us_in_is_left_alone(backoff: int, most: int, is_once: bool) -> None:
    """Attempts are counted, in two seconds of which each may last a minute."""
    with socket.create_server((HOST, 0)) as server:
        attempts: list[int] = []

        def hang_up() -> None:
            with suppress(OSError):
                while True:
                    there, _ = server.accept()
                    attempts.append(1)
                    there.close()

        thread = threading.Thread(target=hang_up, daemon=True)
        thread.start()
        wired = Wired(
            Cluster("closed", (f"{HOST}:{server.getsockname()[1]}",)),
            2.0,
            reconnect_backoff_ms=backoff,
            reconnect_backoff_max_ms=most,
        )
        with pytest.raises(ConnectionLost), wired:
            pass
        wired.__exit__()
        server.shutdown(socket.SHUT_RDWR)
    thread.join(SECONDS)
    assert (len(attempts) == 1) is is_once


def test_each_side_waits_for_answers_as_long_as_it_is_declared(
    target_cluster: EmbeddedCluster, target: Cluster, topic_name: str
) -> None:
    """Who waits for a second gives up while who waits for a minute still waits; the broker never says a word."""
    with socket.create_server((HOST, 0)) as silent:
        source = Cluster(
            "silent",
            (f"{HOST}:{silent.getsockname()[1]}",),
            clients=Clients(ConsumerSettings(request_timeout_ms=1_000)),
        )
        slow = replace(target, clients=Clients(producer=ProducerSettings(request_timeout_ms=20_000)))
        held = Connections(spec_of(source, slow, topic_name), 0)
        patient = Wire(held.loop, source, "tests", 20.0)
        seen: list[Job] = []

        async def both() -> None:
            one, other = held.loop.spawn(held.fetch(committed=True).connect), held.loop.spawn(patient.connect)
            while not one.is_done:
                await held.loop.sleep(0.05)
            assert not other.is_done
            seen.append(one)

        held.loop.run(both)
        with pytest.raises(ConnectionLost):
            seen[0].raise_failure()
        assert held.produce._timeout_ms == held.ask_target._timeout_ms == 20_000
        assert held.ask_source._timeout_ms == 1_000
        patient.close()
        held.close()


def test_commands_wait_as_long_as_it_is_declared(line: Line, topic_name: str) -> None:
    """Who waits for a second gives up while who waits as usual still does, and has an answer when there is one."""
    create(line.cluster, topic_name)
    hasty = Connection(line.declared("east", Clients(admin=AdminSettings("hasty", 1_000))))
    usual = Connection(line.declared("east"))
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(len(usual.describe_topics([topic_name]))))
    line.relay.cut()
    try:
        thread.start()
        with pytest.raises(Unreachable):
            hasty.describe_topics([topic_name])
        assert thread.is_alive()
    finally:
        line.relay.go_on()
    thread.join(SECONDS)
    assert found == [1]


def test_a_cluster_of_which_nothing_is_declared_is_as_before(line: Line, topic_name: str) -> None:
    create(line.cluster, topic_name, 1)
    create(line.cluster, f"east.{topic_name}", 1, REMOTE)
    fill(line.cluster, topic_name, 1_000)
    spec = spec_of(line.declared("east"), declared("west", line.cluster), topic_name)
    copy(spec)
    client = f"anabranch-{spec.flow.name}-0"
    assert 500 in {one.wait_ms for one in line.tap.fetches(client)}
    assert {one.timeout_ms for one in line.tap.produces(client)} == {4_000}
    assert {f"{client}-ask", client} <= {one.client for one in line.tap.requests}
