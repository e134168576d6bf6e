"""Brokers that stand still and connections that break while records go by express: none is lost, none comes twice."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pytest
from confluent_kafka import Producer

from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.clients import Clients, ConsumerSettings, ProducerSettings
from reconciler.model.declared.cluster import Cluster
from reconciler.model.tasks.spec import FlowSpec
from reconciler.model.tasks.status import PartitionState
from reconciler.replicator.driver import discovery
from reconciler.replicator.partition import channel
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.shares import Shares
from reconciler.replicator.task import rounds
from reconciler.replicator.task.ledger import LedgerRow
from reconciler.replicator.transfer.fast_path import FastPath
from reconciler.replicator.transfer.fast_path_partition import FastPathBatch
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from reconciler.wire import Direct
from tests.contract.replicator.transfer.test_fast_path import LONG_ENOUGH, flow_of
from tests.support.replicator.copying import SECONDS, Running, all_running, assert_counted, close, identical, log_ends
from tests.support.replicator.trickles import PARTITIONS, Line, Trickle, cut
from tests.support.still import halt

# Of a request: less than a broker stands still here, or by far more.
SHORT_MS = 700
# Longer than the short time-out, and shorter than the usual one.
STILL = 1.2


@pytest.fixture
def spec(source: Cluster, target: Cluster, topics: tuple[str, str]) -> FlowSpec:
    return flow_of(source, target, topics)


@pytest.fixture
def hasty(spec: FlowSpec) -> FlowSpec:
    """A flow whose requests have little time."""
    settings = Clients(ConsumerSettings(request_timeout_ms=SHORT_MS), ProducerSettings(request_timeout_ms=SHORT_MS))
    return replace(spec, source=replace(spec.source, clients=settings), target=replace(spec.target, clients=settings))


@pytest.fixture(autouse=True)
def go_on(source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster) -> Iterator[None]:
    """Let brokers go on for the next test, whatever becomes of this one."""
    yield
    for cluster in (source_cluster, target_cluster):
        cluster.broker().signal(signal.SIGCONT)


def stand_still(cluster: EmbeddedCluster, seconds: float) -> None:
    halt(cluster.broker().pid)
    time.sleep(seconds)
    cluster.broker().signal(signal.SIGCONT)


def lose(direct: Direct, _: Sequence[FastPathBatch]) -> None:
    """Let nothing more be sent over a connection: what was to leave is lost, and the connection with it."""
    direct._transport.may_send = lambda: False


def test_what_waits_for_an_answer_leaves_when_that_has_come(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    spec: FlowSpec,
    topics: tuple[str, str],
    line: Line,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever was quiet sends one batch alone; the next one comes before that is answered, and then nothing more."""
    monkeypatch.setattr(channel, "_FORGOTTEN", 0.2)
    busy, quiet = topics
    times: list[float] = []

    def send() -> None:
        times.append(time.monotonic())
        for number in range(PARTITIONS):
            producer.produce(quiet, b"value", partition=number)
        assert producer.flush(10) == 0

    def send_again(*_: object) -> None:
        halt(target_cluster.broker().pid)
        send()

    producer = Producer(source_cluster.client_config() | {"linger.ms": 0, "log_level": "2"})
    with Running(spec) as running, Trickle(source_cluster, [busy]) as trickle:
        running.wait(lambda status: all_running(status.partitions))
        line.await_records()
        line.do_aboard(send_again, quiet, feed=send)
        time.sleep(0.5)
        target_cluster.broker().signal(signal.SIGCONT)
        everywhere = {len(times)}
        running.wait(lambda status: {p.position for p in status.partitions if p.topic == quiet} == everywhere, 10)
        sent = trickle.finish() + len(times) * PARTITIONS
        status = running.settled_again()
    assert_counted(sum(row.records for row in running.rows), sent, status)
    assert identical(spec, *topics) == sent


def test_brokers_stand_still_for_a_while(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    spec: FlowSpec,
    topics: tuple[str, str],
    line: Line,
) -> None:
    """For less than a request may take: no answer is lost."""
    with Running(spec) as running, Trickle(source_cluster, topics) as trickle:
        for cluster in (target_cluster, source_cluster):
            line.await_records()
            stand_still(cluster, STILL)
        line.await_records()
        sent = trickle.finish()
        status = running.settled_again()
    assert_counted(sum(row.records for row in running.rows), sent, status)
    assert identical(spec, *topics) == sent


def test_brokers_stand_still_for_longer_than_requests_may_take(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    hasty: FlowSpec,
    topics: tuple[str, str],
    line: Line,
) -> None:
    with Running(hasty) as running, Trickle(source_cluster, topics) as trickle:
        for cluster in (target_cluster, source_cluster):
            line.await_records()
            stand_still(cluster, STILL)
        line.await_records()
        sent = trickle.finish()
        status = running.settled_again()
    assert sum(row.records for row in running.rows) <= sent
    assert any(partition.metrics.retries for partition in status.partitions)
    assert identical(hasty, *topics) == sent


def test_connections_break_again_and_again(
    source_cluster: EmbeddedCluster, spec: FlowSpec, topics: tuple[str, str], line: Line
) -> None:
    with Running(spec) as running, Trickle(source_cluster, topics) as trickle:
        for number in range(6):
            line.await_records(more=20)
            if number % 3 != 1:
                line.break_target()
            if number % 3 != 0:
                line.break_source()
        for todo in (lose, cut):
            line.await_records(more=20)
            line.do_aboard(todo)
        line.await_records()
        sent = trickle.finish()
        status = running.settled_again()
    assert sum(row.records for row in running.rows) <= sent
    assert any(partition.metrics.retries for partition in status.partitions)
    assert identical(spec, *topics) == sent


def test_sessions_are_begun_anew(
    source_cluster: EmbeddedCluster, spec: FlowSpec, topics: tuple[str, str], line: Line
) -> None:
    """The broker does not know the session of an express, or another number of it."""

    def skip(*_: object) -> None:
        assert line.express is not None
        line.express._session._epoch += 5

    def rename(*_: object) -> None:
        assert line.express is not None
        line.express._session._id += 1

    with Running(spec) as running, Trickle(source_cluster, topics) as trickle:
        for harm in (skip, rename, skip):
            line.await_records(50)
            line.do_aboard(harm)
        line.await_records()
        sent = trickle.finish()
        status = running.settled_again()
    assert_counted(sum(row.records for row in running.rows), sent, status)
    assert identical(spec, *topics) == sent


def test_brokers_stand_still_where_rounds_meet(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topics: tuple[str, str],
    line: Line,
) -> None:
    """An express of a round that is over hears its last answer in the next one, and sends nothing of it."""
    spec = flow_of(source, target, topics)
    length = 0.8
    for journal in (own(spec.topology).status, own(spec.topology).control):
        Journal(target, journal).ensure()
    (assignment,) = Shares().extended(discovery.matching(spec), 1).assignments()
    rows: list[LedgerRow] = []
    deadline = time.monotonic() + SECONDS
    with Trickle(source_cluster, topics) as trickle:
        for cluster in (source_cluster, target_cluster):
            line.records.clear()
            while not line.records and time.monotonic() < deadline:
                rows += rounds.run(replace(spec, round_seconds=length), assignment)
                # On a busy machine a round of that length may be over before anything is opened.
                length *= 1.0 if line.records else 1.2
            for seconds in (length - 0.1, 0.1):
                still = threading.Timer(seconds, stand_still, (cluster, 0.4))
                still.start()
                rows += rounds.run(replace(spec, round_seconds=length), assignment)
                still.join()
        sent = trickle.finish()
    assert time.monotonic() < deadline, "no record went the fast path"
    # A record whose answer is lost stands in the log and in no account.
    while sum(log_ends(target, f"east.{topic}", PARTITIONS) for topic in topics) < sent:
        assert time.monotonic() < deadline + SECONDS
        rows += rounds.run(replace(spec, round_seconds=LONG_ENOUGH), assignment)
    close(spec)
    assert identical(spec, *topics) == sent
    counted = sum(row.records for row in rows)
    assert 0 < counted <= sent


def test_an_answer_that_comes_late_is_none_for_what_was_opened_anew(
    source_cluster: EmbeddedCluster,
    spec: FlowSpec,
    topics: tuple[str, str],
    line: Line,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first records of an express are lost, and while its next question is on its way all begins again at them.

    Its broker was asked for what is behind them, and must be asked for them again.
    """
    ask = FastPath._ask
    lost: list[tuple[Channel, int]] = []
    late: list[int] = []

    def lose_first(direct: Direct, sent_batches: Sequence[FastPathBatch]) -> None:
        line.aboard = None
        lost.extend((entry.channel, entry.opening) for entry, _ in sent_batches)
        lose(direct, sent_batches)

    def asking(express: FastPath, asks: Mapping[bytes, Sequence[bytes]]) -> None:
        if not lost:
            line.aboard = lose_first
        elif not late:
            late.append(len(asks))
            wait(express, asks)
            return
        ask(express, asks)

    def wait(express: FastPath, asks: Mapping[bytes, Sequence[bytes]]) -> None:
        if all(one.opening > opening and one.state is PartitionState.RUNNING for one, opening in lost):
            ask(express, asks)
        else:
            express._over.source._net.call_later(0.01, lambda: wait(express, asks))

    monkeypatch.setattr(FastPath, "_ask", asking)
    with Running(spec) as running, Trickle(source_cluster, topics) as trickle:
        line.await_records(200)
        sent = trickle.finish()
        status = running.settled_again()
    assert lost
    assert late
    assert any(partition.metrics.retries for partition in status.partitions)
    assert identical(spec, *topics) == sent
