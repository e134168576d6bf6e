"""What trickles in goes by express, every record once and at its own offset, whatever comes between."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from confluent_kafka import Producer

from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.driver import discovery
from reconciler.replicator.partition import channel
from reconciler.replicator.partition.shares import Shares
from reconciler.replicator.task import rounds
from reconciler.replicator.task.ledger import LedgerRow
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from tests.contract.replicator.commit.test_translated import make as make_translated
from tests.contract.replicator.transfer.test_merging import batches
from tests.support.clusters.kafka import set_config
from tests.support.clusters.traffic import CODECS, Transactions
from tests.support.replicator.copying import (
    ROUND_SECONDS,
    SECONDS,
    Running,
    assert_counted,
    close,
    fill,
    identical,
    log_end,
    spec_of,
)
from tests.support.replicator.translated import assert_in_order
from tests.support.replicator.trickles import PARTITIONS, Line, Trickle

LARGE = 200_000
_BOARDINGS = 4
# On a busy machine shorter rounds may be over before anything was read in them: for what is left at the end.
LONG_ENOUGH = 3.0
# Of flows that no express takes along.
OTHERS: dict[str, Callable[[Flow], Flow]] = {
    "unrested": lambda flow: replace(flow, linger=0.0),
    "bounded": lambda flow: replace(flow, quota=10_000_000),
    "recoded": lambda flow: replace(flow, compression="zstd"),
    "translated": lambda flow: replace(flow, offsets="translated"),
    "repeated": lambda flow: replace(flow, offsets="translated", delivery="at-least-once"),
}


def flow_of(source: Cluster, target: Cluster, topics: Sequence[str], round_seconds: float = ROUND_SECONDS) -> FlowSpec:
    """Return a flow with a name of its own, as a lease that a test gives up must not hold the next up."""
    spec = spec_of(source, target, *topics, round_seconds=round_seconds)
    return replace(spec, flow=replace(spec.flow, name=topics[0][-12:]))


def send_one_by_one(cluster: EmbeddedCluster, topic: str, values: list[bytes], codec: str = "none") -> None:
    """Produce records, each in a batch of its own."""
    settings = {"linger.ms": 0, "batch.num.messages": 1, "compression.type": codec, "log_level": "2"}
    producer = Producer(cluster.client_config() | settings)
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % PARTITIONS)
        producer.poll(0.002)
    assert producer.flush(SECONDS) == 0


def test_nothing_is_lost_or_doubled_where_rounds_meet(
    source_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topics: tuple[str, str], line: Line
) -> None:
    spec = flow_of(source, target, topics, round_seconds=0.5)
    for journal in (own(spec.topology).status, own(spec.topology).control):
        Journal(target, journal).ensure()
    (assignment,) = Shares().extended(discovery.matching(spec), 1).assignments()
    rows: list[LedgerRow] = []
    deadline = time.monotonic() + SECONDS
    with Trickle(source_cluster, topics) as trickle:
        # A busy machine boards none in some of them.
        while line.boardings.total() < _BOARDINGS and time.monotonic() < deadline:
            rows += rounds.run(spec, assignment)
        sent = trickle.finish()
    while sum(row.records for row in rows) < sent and time.monotonic() < deadline:
        rows += rounds.run(replace(spec, round_seconds=LONG_ENOUGH), assignment)
    (thread,) = [kept for key, kept in rounds._running.items() if key[0] == spec.run]
    close(spec)
    assert thread.connections is not None
    totals = thread.connections.totals.records
    assert line.boardings.total() >= _BOARDINGS
    assert line.records.total() > _BOARDINGS
    places = {(topic, number) for topic in topics for number in range(PARTITIONS)}
    counted = {place: [row for row in rows if (row.topic, row.partition) == place] for place in places}
    for (topic, number), of_place in counted.items():
        offsets = [offset for row in of_place for offset in range(row.first_offset, row.last_offset + 1)]
        assert offsets == list(range(log_end(source, topic, number)))
        assert {row.shift for row in of_place} == {0}
        assert sum(row.records for row in of_place) == len(offsets)
    assert totals == sum(row.records for row in rows) == sent
    assert identical(spec, *topics) == sent


def test_what_is_no_trickle_comes_between_and_the_express_is_boarded_again(
    source_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topics: tuple[str, str], line: Line
) -> None:
    spec = flow_of(source, target, topics)
    mixed, other = topics
    others = 0
    with Running(spec) as running, Trickle(source_cluster, topics) as trickle:
        line.await_records()
        for _ in range(3):
            # As long as they go on without a pause, a slow machine may find no time for an express between two of them.
            transactions = Transactions(source_cluster, mixed, PARTITIONS, per_second=20)
            transactions.start()
            transactions.finish(at_least=4)
            line.await_records()
        send_one_by_one(source_cluster, other, [bytes([number]) * LARGE for number in range(20)])
        others += 20
        line.await_records()
        fill(source_cluster, mixed, 5_000, PARTITIONS)
        others += 5_000
        line.await_records()
        for codec in CODECS:
            send_one_by_one(source_cluster, mixed, [b"%d:" % number + b"body" * 40 for number in range(40)], codec)
            fill(source_cluster, other, 200, PARTITIONS, codec)
            others += 240
        line.await_records()
        others += trickle.finish()
        status = running.settled_again()
        running.stop()
        last = running.last()
    committed = identical(spec, *topics)
    # Each transaction holds one to three records in each partition; three of twelve are aborted.
    assert committed >= others + 8 * PARTITIONS
    assert_counted(sum(row.records for row in running.rows), committed, status)
    assert_counted(last.records, committed, status)
    for place in last.partitions:
        theirs = sum(r.records for r in running.rows if (r.topic, r.partition) == (place.topic, place.partition))
        assert place.metrics.records == theirs


def test_what_is_quiet_for_a_while_goes_by_express_again(
    source_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topics: tuple[str, str],
    line: Line,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever was quiet for long sends one batch alone, and the next only when that was answered."""
    monkeypatch.setattr(channel, "_FORGOTTEN", 0.3)
    spec = flow_of(source, target, topics)
    with Running(spec) as running, Trickle(source_cluster, topics) as trickle:
        line.await_records()
        for seconds in (0.1, 0.7, 0.7):
            trickle.rests.set()
            time.sleep(seconds)
            trickle.rests.clear()
            line.await_records()
        sent = trickle.finish()
        status = running.settled_again()
    assert_counted(sum(row.records for row in running.rows), sent, status)
    assert identical(spec, *topics) == sent


def test_flows_that_want_more_never_go_by_express(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    line: Line,
) -> None:
    topics = {other: f"{topic_name}-{other}" for other in OTHERS}
    make_translated(source_cluster, target_cluster, list(topics.values()), PARTITIONS)
    specs = {}
    for other, topic in topics.items():
        spec = spec_of(source, target, topic)
        specs[other] = replace(spec, flow=replace(OTHERS[other](spec.flow), name=other))
    with contextlib.ExitStack() as stack:
        copying = [stack.enter_context(Running(spec)) for spec in specs.values()]
        trickle = stack.enter_context(Trickle(source_cluster, list(topics.values()), per_second=800))
        for running in copying:
            running.wait(lambda status: status.records > 150)
        sent = trickle.finish()
        for running in copying:
            running.settled_again()
    copied = 0
    for other, spec in specs.items():
        assert (other, line.records[spec.run]) == (other, 0)
        if spec.flow.offsets == "translated":
            copied += assert_in_order(spec, topics[other], PARTITIONS)
        else:
            copied += identical(spec, topics[other])
    assert copied == sent
    # Whoever gives them another codec finds out aboard.
    assert {run for run, times in line.boardings.items() if times} <= {specs["recoded"].run}


def test_a_target_with_small_batches_gets_what_fits(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topics: tuple[str, str],
    line: Line,
) -> None:
    """What was put together on the way is refused, and goes once more in parts."""
    spec = flow_of(source, target, topics)
    for topic in topics:
        set_config(target_cluster, f"east.{topic}", "max.message.bytes", "1500")
    with Running(spec) as running, Trickle(source_cluster, topics) as trickle:
        line.await_records()
        for _ in range(3):
            send_one_by_one(source_cluster, topics[0], [b"value" * 140] * 16)
        sent = trickle.finish() + 48
        running.settled_again()
    assert sum(row.records for row in running.rows) <= sent
    assert identical(spec, *topics) == sent


def test_a_flow_that_merges_nothing_still_copies_a_trickle(
    source_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topics: tuple[str, str], line: Line
) -> None:
    """Each batch of the source is one at the target, and several at once are none of the express's."""
    spec = flow_of(source, target, topics)
    spec = replace(spec, flow=replace(spec.flow, batch_size=0))
    with Running(spec) as running, Trickle(source_cluster, topics) as trickle:
        line.await_records()
        send_one_by_one(source_cluster, topics[1], [b"%d" % number for number in range(100)])
        line.await_records()
        sent = trickle.finish()
        status = running.settled_again()
    assert_counted(sum(row.records for row in running.rows), sent + 100, status)
    assert identical(spec, *topics) == sent + 100
    for number in range(PARTITIONS):
        assert len(batches(target, f"east.{topics[0]}", number)) == log_end(source, topics[0], number)
