"""Logs with gaps are copied at their own offsets: transactions, compaction, and fillings that came out too long."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Fill
from reconciler.model.offsets.runs import Runs
from reconciler.model.tasks.spec import FlowSpec
from reconciler.model.tasks.status import PartitionState
from reconciler.replicator.gaps.fill import Filler
from reconciler.replicator.gaps.padding import pad
from reconciler.replicator.partition.place import LogEnd
from reconciler.replicator.partition.shares import Place
from reconciler.replicator.takeover import identical as takeover
from reconciler.wire import BrokerError, ConnectionLost, TopicInfo, Wire
from reconciler.wire.requests import transactions
from reconciler.wire.requests.transactions import Markers
from tests.support.clusters.kafka import admin, create, delete, patient
from tests.support.replicator.copying import REMOTE, Running, all_running, code, copy, fill, identical, log_end, spec_of
from tests.support.replicator.filling import fill_in_parts
from tests.support.replicator.translated import assert_translated, committed, runs_of
from tests.support.wire.wires import ask

SECONDS = 300.0
PARTITIONS = 8


def spec_with(spec: FlowSpec, **declared_fields: object) -> FlowSpec:
    return replace(spec, flow=replace(spec.flow, **declared_fields))  # type: ignore[arg-type]


def transact(cluster: EmbeddedCluster, topic: str, partitions: Sequence[int], rounds: int) -> None:
    """Write `rounds` transactions to each of some partitions, every third of them aborted, plain records in between."""
    plain = Producer(cluster.client_config() | {"linger.ms": 0, "log_level": "2"})
    busy = Producer(cluster.client_config() | {"transactional.id": f"tests-{topic}", "log_level": "2"})
    busy.init_transactions(SECONDS)
    for number in range(rounds):
        busy.begin_transaction()
        for partition in partitions:
            for part in range(1 + number % 3):
                busy.produce(topic, key=b"k%d" % number, value=b"%d-%d" % (number, part), partition=partition)
        busy.flush(SECONDS)
        if number % 3 == 2:
            busy.abort_transaction(SECONDS)
        else:
            busy.commit_transaction(SECONDS)
        if number % 2:
            for partition in partitions:
                plain.produce(topic, value=b"plain-%d" % number, partition=partition)
            plain.flush(SECONDS)


def runs(spec: FlowSpec, topic: str, partitions: int = 1) -> list[Runs]:
    return runs_of(spec.target, spec.flow.name, spec.flow.remote_topic(topic), partitions)


@pytest.mark.parametrize("fill", ["markers", "transactions"])
def test_transactions_are_copied_at_their_own_offsets(
    fill: Fill,
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
) -> None:
    """A backlog, and more while it runs; a second run goes on behind markers."""
    create(source_cluster, topic_name, PARTITIONS)
    create(target_cluster, f"east.{topic_name}", PARTITIONS, REMOTE)
    spec = spec_with(spec_of(source, target, topic_name), fill=fill)
    transact(source_cluster, topic_name, range(PARTITIONS), 6)
    with Running(spec) as copying:
        transact(source_cluster, topic_name, range(PARTITIONS), 6)
        copying.settled_again(running=True)
    transact(source_cluster, topic_name, range(PARTITIONS), 4)
    again = spec_with(spec_of(source, target, topic_name), fill=fill)
    copied = copy(again)
    assert all_running(copied.status.partitions)
    for told in copied.status.partitions:
        first = next(row for row in copied.rows if row.partition == told.partition)
        counted = first.first_offset - first.fills + told.metrics.records + told.metrics.fills
        assert told.metrics.fills > 0
        # An answer that is lost on a busy machine is in no account.
        assert counted == told.position or told.metrics.retries
    assert identical(spec, topic_name) > 100
    assert runs(spec, topic_name, PARTITIONS) == [Runs()] * PARTITIONS


def test_what_a_predecessor_left_of_a_filling_is_gone_on_with(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each filling writes a part, then its connection is lost: the next owner counts what stands there."""
    create(source_cluster, topic_name)
    create(target_cluster, f"east.{topic_name}", 1, REMOTE)
    lost = fill_in_parts(monkeypatch)
    transact(source_cluster, topic_name, [0], 9)
    spec = spec_of(source, target, topic_name)
    assert all_running(copy(spec).status.partitions)
    assert next(lost) > 2
    assert identical(spec, topic_name) > 10


def test_a_filling_too_long_shifts_what_follows_and_the_next_gap_heals_it(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As when a broker writes a transaction's marker twice; every record is found through the recorded runs."""
    create(source_cluster, topic_name)
    remote = f"east.{topic_name}"
    create(target_cluster, remote, 1, REMOTE)
    whole, calls = Filler.fill, itertools.count()

    async def sometimes_too_long(self: Filler, place: Place, info: TopicInfo, start: int, count: int) -> int:
        overrun = 2 if next(calls) % 4 == 1 else 0
        return await whole(self, place, info, start, count + overrun)

    monkeypatch.setattr(Filler, "fill", sometimes_too_long)
    transact(source_cluster, topic_name, [0], 10)
    spec = spec_of(source, target, topic_name)
    copied = copy(spec)
    assert all_running(copied.status.partitions)
    transact(source_cluster, topic_name, [0], 10)
    copy(spec_of(source, target, topic_name))
    (found,) = runs(spec, topic_name)
    assert found.shifted > 1
    moved = assert_translated(source, topic_name, target, [found])
    assert 0 < moved < len(committed(source, topic_name)), "some are shifted, and healed"


def test_a_marker_too_many_that_nobody_noticed_is_found_by_the_next_owner(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    create(source_cluster, topic_name)
    remote = f"east.{topic_name}"
    create(target_cluster, remote, 1, REMOTE)
    whole, calls = Filler.fill, itertools.count()

    async def too_long_and_lost(self: Filler, place: Place, info: TopicInfo, start: int, count: int) -> int:
        if next(calls) == 0:
            await whole(self, place, info, start, count + 1)
            message = "cut off"
            raise ConnectionLost(message)
        return await whole(self, place, info, start, count)

    monkeypatch.setattr(Filler, "fill", too_long_and_lost)
    transact(source_cluster, topic_name, [0], 2)
    spec = spec_of(source, target, topic_name)
    copy(spec)
    (found,) = runs(spec, topic_name)
    assert found.shifted == 1
    assert assert_translated(source, topic_name, target, [found]) > 0


def test_a_gap_of_a_compacted_log_is_filled(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    """Whole batches are compacted away, at the start and in the middle."""
    compacted = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.001"}
    create(source_cluster, topic_name, 1, compacted)
    create(target_cluster, f"east.{topic_name}", 1, REMOTE)
    producer = patient(source_cluster, topic_name)
    for number in range(12):
        producer.produce(topic_name, key=b"b" if number == 4 else b"a", value=b"%d" % number)
        producer.flush(SECONDS)
    deadline = time.monotonic() + 2 * SECONDS
    while [m.offset() for m in committed(source, topic_name)][:2] != [4, 11]:
        assert time.monotonic() < deadline, "nothing is compacted"
        # Only segments that are not written to any more are compacted.
        producer.produce(topic_name, key=b"z", value=b"")
        producer.flush(SECONDS)
        time.sleep(0.2)
    spec = spec_of(source, target, topic_name)
    assert all_running(copy(spec).status.partitions)
    assert identical(spec, topic_name) >= 2


def test_a_foreign_marker_where_the_original_has_a_record_parks(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    remote = f"east.{topic_name}"
    create(target_cluster, remote, 1, REMOTE)
    transact(source_cluster, topic_name, [0], 2)
    copy(spec_of(source, target, topic_name))
    plain = Producer(source_cluster.client_config() | {"linger.ms": 0, "log_level": "2"})
    plain.produce(topic_name, value=b"before")
    plain.flush(SECONDS)
    copy(spec_of(source, target, topic_name))

    async def mark(wire: Wire) -> None:
        info = (await wire.topics([remote]))[remote]
        await transactions.write_markers(wire, info.partitions[0].node, Markers(remote, 0, 12_345, 0, 0, 1))

    ask(target, mark)
    plain.produce(topic_name, value=b"behind")
    plain.flush(SECONDS)
    end = log_end(target, remote)
    copied = copy(
        spec_of(source, target, topic_name), lambda status: status.partitions[0].state is PartitionState.PARKED
    )
    assert code(copied.at(topic_name)) == "AB211"
    assert log_end(target, remote) == end


def test_lost_records_are_passed_over_when_that_is_declared(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    create(target_cluster, f"east.{topic_name}", 1, REMOTE)
    transact(source_cluster, topic_name, [0], 2)
    spec = spec_with(spec_of(source, target, topic_name), on_data_loss="continue")
    copy(spec)
    copied_to = log_end(target, f"east.{topic_name}")
    transact(source_cluster, topic_name, [0], 12)
    transact_end = committed(source, topic_name)[-3].offset()
    _delete_records(source_cluster, topic_name, transact_end)
    assert transact_end > copied_to + 10
    again = replace(spec, run=f"{spec.run}-again")
    assert all_running(copy(again).status.partitions)
    left = [(m.offset(), m.value()) for m in committed(source, topic_name)]
    assert [(m.offset(), m.value()) for m in committed(target, f"east.{topic_name}")][-len(left) :] == left


def test_a_topic_made_anew_goes_on_behind_the_old_one_when_that_is_declared(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    remote = f"east.{topic_name}"
    create(source_cluster, topic_name)
    create(target_cluster, remote, 1, REMOTE)
    fill(source_cluster, topic_name, 10)
    spec = spec_with(spec_of(source, target, topic_name), on_recreate="restart")
    copy(spec)
    old = [m.value() for m in committed(target, remote)]
    delete(source_cluster, topic_name)
    create(source_cluster, topic_name)
    fill(source_cluster, topic_name, 6)
    for number in (1, 2):
        again = replace(spec, run=f"{spec.run}-{number}")
        assert all_running(copy(again).status.partitions)
        fill(source_cluster, topic_name, 4)
    originals = committed(source, topic_name)[:10]
    copies = committed(target, remote)
    assert [m.value() for m in copies] == old + [m.value() for m in originals]
    (found,) = runs(spec, topic_name)
    assert [copies[found.to_target(m.offset())].value() for m in originals] == [m.value() for m in originals]


def _delete_records(cluster: EmbeddedCluster, topic: str, before: int) -> None:
    client = admin(cluster)
    (future,) = client.delete_records([TopicPartition(topic, 0, before)]).values()
    future.result(SECONDS)


@pytest.mark.parametrize("begins", [7, 1_200_004])
def test_a_log_that_begins_later_is_copied_at_its_offsets(
    begins: int,
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
) -> None:
    """The log may begin in the middle of a batch; right after the padding, lookups by timestamp find what follows."""
    remote = f"east.{topic_name}"
    create(source_cluster, topic_name)
    create(target_cluster, remote, 1, REMOTE)
    if begins > 100:
        begin_at(source, topic_name, begins - 4)
    producer = patient(source_cluster, topic_name)
    now = int(time.time() * 1000)
    for number in range(12):
        producer.produce(topic_name, value=b"%d" % number, timestamp=now + 1_000 * number)
    producer.flush(SECONDS)
    _delete_records(source_cluster, topic_name, begins)
    spec = spec_of(source, target, topic_name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(takeover, "_PADDING_PIECE", 500_000)
        assert all_running(copy(spec).status.partitions)
    assert identical(spec, topic_name) == (5 if begins == 7 else 8)
    assert committed(target, remote)[0].offset() == begins
    for cluster, topic in ((source, topic_name), (target, remote)):
        assert offset_at(cluster, topic, now + 9_500) == begins + (3 if begins == 7 else 6)
        assert offset_at(cluster, topic, 1) == begins


def begin_at(cluster: Cluster, topic: str, offset: int) -> None:
    """Make the source's own empty log begin at `offset`, as if all before had been deleted."""

    async def work(wire: Wire) -> None:
        info = (await wire.topics([topic]))[topic]
        await pad(wire, Place(topic, 0, topic), info, LogEnd(0, 900, 0, 0), offset)

    deadline = time.monotonic() + SECONDS
    while True:
        try:
            return ask(cluster, work)
        except BrokerError:
            # The first transactional id of a cluster waits for its coordinator to be made.
            assert time.monotonic() < deadline
            time.sleep(0.2)


def offset_at(cluster: Cluster, topic: str, timestamp: int) -> int:
    consumer = Consumer(cluster.librdkafka() | {"group.id": "tests", "log_level": "2"})
    (found,) = consumer.offsets_for_times([TopicPartition(topic, 0, timestamp)], SECONDS)
    consumer.close()
    return int(found.offset)
