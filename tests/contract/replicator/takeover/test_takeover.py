"""Takeover against brokers that forget, die and come back: each record still lands once, at its own offset."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from reconciler.checkpoints.translation.translate import Translator
from reconciler.embedded import ClusterOptions, EmbeddedCluster, running
from reconciler.model.declared.cluster import Cluster
from reconciler.model.offsets.translation import Question
from reconciler.model.tasks.status import PartitionState
from reconciler.records.batch import Batch
from reconciler.replicator.takeover import identical as takeover
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from tests.contract.replicator.task.test_parking import write
from tests.support.clusters.kafka import create, declared, delete, delete_records
from tests.support.clusters.traffic import WEEK_MS
from tests.support.replicator.copying import (
    REMOTE,
    Running,
    all_running,
    assert_counted,
    at,
    code,
    copy,
    fill,
    identical,
    log_end,
    spec_of,
    wait_until_forgotten,
)
from tests.support.replicator.two_ages import feed
from tests.support.wire.wires import batch_of

FORGETFUL = ClusterOptions(
    overrides={
        "log.cleaner.backoff.ms": "100",
        "producer.id.expiration.ms": "1000",
        "producer.id.expiration.check.interval.ms": "200",
        # A killed broker is back sooner.
        "broker.session.timeout.ms": "2000",
        "broker.heartbeat.interval.ms": "250",
    }
)
SECONDS = 300.0


@pytest.fixture(scope="module")
def forgetful() -> Iterator[EmbeddedCluster]:
    """A cluster that forgets producers whose records are older than a second, compacts at once, and may be killed."""
    with running(EmbeddedCluster("forgetful", FORGETFUL)) as (cluster,):
        yield cluster


@pytest.fixture
def target(forgetful: EmbeddedCluster) -> Cluster:
    return declared("west", forgetful)


def last_batch(cluster: Cluster, topic: str) -> Batch:
    return batch_of(cluster, topic, log_end(cluster, topic) - 1)


def test_a_forgotten_producer_goes_on_from_the_last_batch(
    source_cluster: EmbeddedCluster, forgetful: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    remote = f"east.{topic_name}"
    create(source_cluster, topic_name)
    create(forgetful, remote, 1, REMOTE)
    fill(source_cluster, topic_name, 300, age=WEEK_MS)
    copy(spec_of(source, target, topic_name))
    before = last_batch(target, remote)
    wait_until_forgotten(target, remote)

    fill(source_cluster, topic_name, 200, codec="lz4", age=WEEK_MS)
    copied = copy(spec_of(source, target, topic_name))
    assert_counted(copied.records, 200, copied.status)
    after = last_batch(target, remote)
    assert (
        (after.producer_id, after.producer_epoch)
        == (before.producer_id, before.producer_epoch)
        == (after.producer_id, 0)
    )
    # Every owner counts as the first one did: the sequence is the offset.
    assert before.base_sequence == before.base_offset
    assert after.base_sequence == after.base_offset
    assert identical(spec_of(source, target), topic_name) == 500


@pytest.mark.parametrize("dies", ["source", "target"])
def test_a_broker_that_is_killed_and_comes_back_costs_nothing(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    forgetful: EmbeddedCluster,
    topic_name: str,
    dies: str,
) -> None:
    source, target = (forgetful, target_cluster) if dies == "source" else (source_cluster, forgetful)
    traffic = feed(source, target, topic_name, 40_000)
    spec = spec_of(declared("east", source), declared("west", target), f"{topic_name}-.*")
    with Running(spec) as copying:
        for thread in traffic.values():
            thread.start()
        copying.wait(lambda status: status.records > 10_000)
        forgetful.kill_broker()
        if dies == "source":
            reasons = copying.wait(lambda status: {code(p) for p in status.partitions} == {"AB220"}).partitions
            assert f"cluster east ({forgetful.bootstrap})" in str(reasons[0].reason)
        forgetful.start_broker()
        for thread in traffic.values():
            thread.finish()
        copying.settled_again(running=True)
    # A source that forgets its producer while it is away may hold what was sent again twice; the copy is of that.
    assert identical(spec, *traffic) >= 80_000


def test_a_source_that_stays_behind_its_copy_parks(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(takeover, "_BEHIND_PATIENCE", 0.5)
    target = declared("west", target_cluster)
    create(source_cluster, topic_name)
    create(target_cluster, f"east.{topic_name}", 1, REMOTE)
    fill(source_cluster, topic_name, 10)
    copy(spec_of(source, target, topic_name))
    delete(source_cluster, topic_name)
    create(source_cluster, topic_name)
    fill(source_cluster, topic_name, 4)
    # Brokers that are too old to tell topics made anew leave only the ends to go by.
    forget = spec_of(source, target, topic_name).flow.name
    Journal(target, own("tests").copies).write(f"{forget}/east.{topic_name}/0", None)
    copied = copy(
        spec_of(source, target, topic_name), lambda status: status.partitions[0].state is PartitionState.PARKED
    )
    assert (code(copied.at(topic_name)), log_end(target, f"east.{topic_name}")) == ("AB210", 10)


def test_a_source_made_anew_with_more_partitions_is_noticed_while_it_runs_and_by_whoever_comes_next(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, topic_name: str
) -> None:
    """No partition is copied: not the one whose copy is empty, nor the one that the former topic had not.

    Groups that have read of the new one have no place in the copy.
    """
    target, remote = declared("west", target_cluster), f"east.{topic_name}"
    create(source_cluster, topic_name, 2)
    create(target_cluster, remote, 3, REMOTE)
    write(source_cluster, topic_name, *[b"old"] * 10)
    with Running(spec_of(source, target, topic_name)) as copying:
        copying.wait(lambda status: all_running(status.partitions) and at(status, topic_name).position == 10)
        delete(source_cluster, topic_name)
        create(source_cluster, topic_name, 3)
        fill(source_cluster, topic_name, 60, 3)
        status = copying.wait(lambda status: [code(one) for one in status.partitions] == ["AB218", "AB218"])
    assert {one.state for one in status.partitions} == {PartitionState.PARKED}
    spec = spec_of(source, target, topic_name)
    found = copy(spec, lambda status: [code(one) for one in status.partitions] == ["AB218"] * 3)
    (text,) = {one.reason.text for one in found.status.partitions if one.reason}
    assert text.startswith(f"topic {topic_name} was deleted at the source and created again; its copy {remote} ")
    assert [log_end(target, remote, partition) for partition in range(3)] == [10, 0, 0]
    with Translator(source, target, spec.flow, spec.topology) as translator:
        answers = translator.answers([Question(topic_name, partition, 1, "downstream") for partition in range(3)])
    assert [(one.how, "made anew" in one.why) for one in answers] == [("unknown", True)] * 3
    again = spec_of(source, target, topic_name)
    again = replace(again, flow=replace(again.flow, on_recreate="restart"))
    copy(again, lambda status: all_running(status.partitions) and all(one.lag == 0 for one in status.partitions))
    assert [log_end(target, remote, partition) for partition in range(3)] == [30, 20, 20]


def test_a_remote_topic_made_anew_while_it_runs_is_copied_from_the_start(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, topic_name: str
) -> None:
    """One partition notices at once, the other has nothing to send and still knows the topic that is gone."""
    target, remote = declared("west", target_cluster), f"east.{topic_name}"
    create(source_cluster, topic_name, 2)
    create(target_cluster, remote, 2, REMOTE)
    fill(source_cluster, topic_name, 100, 2)
    with Running(spec_of(source, target, topic_name)) as copying:
        copying.wait()
        delete(target_cluster, remote)
        create(target_cluster, remote, 2, REMOTE)
        fill(source_cluster, topic_name, 10, 1)
        copying.wait(lambda status: at(status, topic_name, 0).position == 60)
        fill(source_cluster, topic_name, 10, 2)
        copying.wait(lambda status: [at(status, topic_name, n).position for n in range(2)] == [65, 55])
    assert identical(copying.spec, topic_name) == 120


def test_what_was_deleted_before_the_first_record_was_copied_is_no_padding(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, topic_name: str
) -> None:
    """The copy stood at the original's beginning while that was empty: what came and went since was never copied."""
    target, remote = declared("west", target_cluster), f"east.{topic_name}"
    create(source_cluster, topic_name)
    create(target_cluster, remote, 1, REMOTE)
    copy(spec_of(source, target, topic_name), lambda status: all_running(status.partitions))
    fill(source_cluster, topic_name, 90)
    delete_records(source_cluster, topic_name, 50)
    spec = spec_of(source, target, topic_name)
    parked = copy(spec, lambda status: status.partitions[0].state is PartitionState.PARKED).at(topic_name)
    assert (code(parked), log_end(target, remote)) == ("AB208", 0)
    assert parked.reason is not None
    assert "50 offsets" in parked.reason.text
    spec = spec_of(source, target, topic_name)
    passing = replace(spec, flow=replace(spec.flow, on_data_loss="continue"))
    copy(passing, lambda status: status.partitions[0].position == 90)
    assert identical(passing, topic_name) == 40
