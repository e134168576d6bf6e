"""A task against two brokers: what it copies, how it goes on, what it says, and how it hears."""

from __future__ import annotations

import itertools
import os
import time

import pytest

from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.model.tasks.seal import Seal, new_key
from reconciler.model.tasks.status import PartitionState
from reconciler.replicator.driver import discovery
from reconciler.replicator.partition.shares import Assignment, Shares
from reconciler.replicator.task import rounds
from reconciler.replicator.task.ledger import LedgerRow
from reconciler.replicator.task.task import OrphanError
from reconciler.state import control
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from reconciler.state.status import StatusReader
from reconciler.wire import ProducerState
from tests.support.clusters.kafka import create
from tests.support.clusters.traffic import CODECS, WEEK_MS
from tests.support.replicator.copying import (
    REMOTE,
    SECONDS,
    Running,
    assert_counted,
    close,
    copy,
    fill,
    identical,
    log_end,
    spec_of,
)
from tests.support.wire.wires import producers

# A run that is told to stop ends within three seconds; a busy machine gets three times that.
STOP_SECONDS = 10.0


def test_every_codec_and_age_is_copied_offset_by_offset(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    fresh, old = f"{topic_name}-fresh", f"{topic_name}-old"
    for topic, age in ((fresh, 0), (old, WEEK_MS)):
        create(source_cluster, topic, 2)
        create(target_cluster, f"east.{topic}", 2, REMOTE)
        for codec in CODECS:
            fill(source_cluster, topic, 500, 2, codec, age)
    spec = spec_of(source, target, fresh, old)
    copied = copy(spec)
    assert identical(spec, fresh, old) == 5_000
    for counted in (copied.records, copied.status.records):
        assert_counted(counted, 5_000, copied.status)
    assert {(p.state, p.lag, p.reason) for p in copied.status.partitions} == {(PartitionState.RUNNING, 0, None)}
    for told in copied.status.partitions:
        assert_counted(told.metrics.records, 1_250, copied.status)
        assert told.metrics.lag_seconds == 0.0
    assert sum(p.metrics.bytes for p in copied.status.partitions) == copied.status.bytes
    for told in copied.status.partitions:
        assert told.metrics.latency is not None
        assert told.metrics.record_age is not None
        assert (told.metrics.latency.min >= WEEK_MS) == (told.metrics.record_age >= WEEK_MS) == (told.topic == old)
    assert copied.status.latency is not None
    assert copied.status.latency.max >= WEEK_MS


def test_a_restart_goes_on_where_the_copy_ends_and_the_ledger_tells(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    remote = f"east.{topic_name}"
    create(source_cluster, topic_name, 2)
    create(target_cluster, remote, 2, REMOTE)
    spec = spec_of(source, target, topic_name)
    fill(source_cluster, topic_name, 600, 2)
    first, second = copy(spec).rows
    assert isinstance(first, LedgerRow)
    assert first[:9] == ("east-west", topic_name, 0, remote, 0, 299, 0, 299, 0)
    assert (first.records, first.fills) == (300, 0)
    assert first.latency_avg is not None
    assert first.latency_max is not None
    assert 0 < first.latency_avg <= first.latency_max
    assert (second.partition, second.first_offset, second.last_offset, second.records) == (1, 0, 299, 300)
    assert first.bytes > 300 * 20
    assert 0 <= time.time() * 1_000 - first.newest_timestamp < 600_000
    known = producers(target, remote)

    assert copy(spec_of(source, target, topic_name)).rows == []
    fill(source_cluster, topic_name, 400, 2, "zstd")
    again = copy(spec_of(source, target, topic_name)).rows
    assert [(row.first_offset, row.last_offset, row.first_target_offset) for row in again] == [(300, 499, 300)] * 2
    # The producer is the one that the log has: nobody begins a new one.
    assert [(p.epoch, p.last_sequence) for p in known] == [(0, 299)]
    assert producers(target, remote) == [ProducerState(known[0].producer_id, 0, 499, open_transaction=False)]
    assert identical(spec, topic_name) == 1_000


def test_rounds_follow_each_other_over_the_same_connections(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    create(target_cluster, f"east.{topic_name}", 1, REMOTE)
    spec = spec_of(source, target, topic_name, round_seconds=1.5)
    for journal in (own(spec.topology).status, own(spec.topology).control):
        Journal(target, journal).ensure()
    (assignment,) = Shares().extended(discovery.matching(spec), 1).assignments()
    rows: list[LedgerRow] = []
    kept: set[object] = set()
    deadline = time.monotonic() + SECONDS
    for upto in (50, 100):
        fill(source_cluster, topic_name, 50)
        # One round is enough unless the machine is busy.
        while log_end(target, f"east.{topic_name}") < upto:
            assert time.monotonic() < deadline
            rows += rounds.run(spec, assignment)
            kept.update(thread.connections for key, thread in rounds._running.items() if key[0] == spec.run)
    # A round that begins when the run is to end opens nothing, and the last word is what the one before has found.
    control.stop(target, [spec.seal])
    rows += rounds.run(spec, assignment)
    reader = StatusReader(target, spec.topology)
    (word,) = [word for word in reader.current() if word.run == spec.run]
    reader.close()
    assert word.stopped
    assert [(one.state, one.position, one.reason) for one in word.partitions] == [(PartitionState.RUNNING, 100, None)]
    close(spec)
    assert len(kept) == 1
    assert [offset for row in rows for offset in range(row.first_offset, row.last_offset + 1)] == list(range(100))


def test_new_records_are_copied_while_it_runs(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    create(source_cluster, topic_name, 4)
    create(target_cluster, f"east.{topic_name}", 4, REMOTE)
    with Running(spec_of(source, target, topic_name)) as running:
        running.wait(lambda status: {p.state for p in status.partitions} == {PartitionState.RUNNING})
        for so_far in (50, 100):
            fill(source_cluster, topic_name, 200, 4)
            assert {(p.position, p.lag) for p in running.settled_again().partitions} == {(so_far, 0)}


def test_it_speaks_every_second_and_hears_a_command_at_once(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    create(target_cluster, f"east.{topic_name}", 1, REMOTE)
    fill(source_cluster, topic_name, 20)
    times: set[float] = set()
    another = Seal("tests", "another-run", "east-west", new_key())
    with Running(spec_of(source, target, topic_name)) as running:
        control.stop(target, [another])
        while len(times) < 4:
            status = running.wait(lambda status: status.time not in times)
            assert not status.stopped
            times.add(status.time)
        control.withdraw(target, [another])
        told = time.time()
        control.stop(target, [running.spec.seal])
        last = running.last()
        # By the time that the last word bears: what comes behind it is not what was promised.
        assert last.time - told < STOP_SECONDS
    spoken = sorted(times)
    # Every second; words that a busy machine has not read in time are missing in between.
    assert min(after - before for before, after in itertools.pairwise(spoken)) < 3.0
    assert (last.flow, last.source, last.target, last.task, last.tasks) == ("east-west", "east", "west", 0, 1)
    assert (last.records, last.waiting) == (20, None)


def test_a_run_that_was_told_before_it_began_ends_at_once(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    create(target_cluster, f"east.{topic_name}", 1, REMOTE)
    fill(source_cluster, topic_name, 5)
    running = Running(spec_of(source, target, topic_name))
    control.stop(target, [running.spec.seal])
    with running:
        assert running.last().records == 0
    assert running.rows == []


def test_it_ends_when_the_process_that_started_it_is_gone(
    source: Cluster, target: Cluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = spec_of(source, target, topic_name)
    Journal(target, own(spec.topology).status).ensure()
    parents = iter([1_000])
    monkeypatch.setattr(os, "getppid", lambda: next(parents, 1))
    with pytest.raises(OrphanError):
        rounds.run(spec, Assignment(0, 1, ()))
    assert not [key for key in rounds._running if key[0] == spec.run]
