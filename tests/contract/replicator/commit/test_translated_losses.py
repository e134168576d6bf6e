"""What is lost to a copy with offsets of its own: found, counted, and treated as its flow declares."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import OnRecreate
from reconciler.model.declared.start import Start
from reconciler.model.recorded.pauses import PauseScope
from reconciler.model.tasks.spec import FlowSpec
from reconciler.model.tasks.status import PartitionState
from reconciler.replicator.copy import recreated
from reconciler.replicator.takeover import translated as arrival
from reconciler.state import control
from tests.contract.replicator.commit.test_translated import make, translated
from tests.contract.replicator.task.test_parking import write
from tests.support.clusters.kafka import create, delete, delete_records, grow, set_config
from tests.support.replicator.copying import REMOTE, Running, all_running, at, code, copy, fill, log_end
from tests.support.replicator.translated import assert_in_order, contents

PARKED = PartitionState.PARKED


def again(spec: FlowSpec, number: int = 1) -> FlowSpec:
    """Return another run of a flow."""
    return replace(spec, run=f"{spec.run}-{number}")


def test_records_lost_to_retention_are_counted_and_passed_over_where_that_is_declared(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    make(source_cluster, target_cluster, [topic_name])
    fill(source_cluster, topic_name, 100)
    copy(translated(source, target, topic_name))
    fill(source_cluster, topic_name, 100)
    delete_records(source_cluster, topic_name, 150)
    found = copy(translated(source, target, topic_name)).at(topic_name)
    assert (found.state, code(found)) == (PartitionState.PARKED, "AB208")
    assert "50 offsets" in str(found.reason)
    spec = translated(source, target, topic_name)
    again = replace(spec, flow=replace(spec.flow, on_data_loss="continue"))
    assert all_running(copy(again).status.partitions)
    assert len(contents(target, f"east.{topic_name}")) == 150


@pytest.mark.parametrize("declared", ["park", "restart"])
def test_a_source_topic_made_anew(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    declared: OnRecreate,
) -> None:
    """It parks and says how far the old one was copied, or the new records come behind the old ones.

    A partition that the old one had not does the same, and begins with its first record.
    """
    make(source_cluster, target_cluster, [topic_name])
    fill(source_cluster, topic_name, 100)
    spec = translated(source, target, topic_name)
    spec = replace(spec, flow=replace(spec.flow, on_recreate=declared))
    copy(spec)
    old = contents(target, f"east.{topic_name}")
    delete(source_cluster, topic_name)
    create(source_cluster, topic_name, 2)
    grow(target_cluster, f"east.{topic_name}", 2)
    # More than there were: nothing but the topic's id tells that it is another one.
    fill(source_cluster, topic_name, 300, 2)
    second = copy(again(replace(spec, flow=replace(spec.flow, start=Start("latest")))))
    if declared == "park":
        assert [(one.state, code(one)) for one in second.status.partitions] == [(PARKED, "AB218")] * 2
        assert contents(target, f"east.{topic_name}") == old
        assert contents(target, f"east.{topic_name}", 1) == []
        return
    fill(source_cluster, topic_name, 100, 2)
    copy(again(spec, 2))
    assert contents(target, f"east.{topic_name}") == old + contents(source, topic_name)
    assert contents(target, f"east.{topic_name}", 1) == contents(source, topic_name, 1)


def test_a_source_that_ends_before_the_position_parks(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As after an unclean election; where brokers have no topic ids also when the topic was made anew."""
    monkeypatch.setattr(arrival, "_BEHIND_PATIENCE", 0.5)
    make(source_cluster, target_cluster, [topic_name])
    fill(source_cluster, topic_name, 100)
    spec = translated(source, target, topic_name)
    copy(spec)
    delete(source_cluster, topic_name)
    create(source_cluster, topic_name)
    fill(source_cluster, topic_name, 60)
    for module in (arrival, recreated):
        monkeypatch.setattr(module, "topic_id", lambda _topic: None)
    with Running(again(spec)) as copying:
        status = copying.wait(lambda status: at(status, topic_name).state is PARKED)
    found = at(status, topic_name)
    assert code(found) == "AB210"
    assert "40 offsets" in str(found.reason)
    assert log_end(target, f"east.{topic_name}") == 101


def test_a_remote_topic_made_anew_gets_every_record_again(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    remote = f"east.{topic_name}"
    make(source_cluster, target_cluster, [topic_name])
    fill(source_cluster, topic_name, 100)
    spec = translated(source, target, topic_name)
    copy(spec)
    delete(target_cluster, remote)
    found = copy(again(spec, 1), lambda status: at(status, topic_name).state is PARKED).at(topic_name)
    assert code(found) == "AB214"
    create(target_cluster, remote, 1, REMOTE)
    fill(source_cluster, topic_name, 50)
    assert all_running(copy(again(spec, 2)).status.partitions)
    assert assert_in_order(spec, topic_name) == 150
    fill(source_cluster, topic_name, 50)
    copy(again(spec, 3))
    assert assert_in_order(spec, topic_name) == 200


def test_a_remote_topic_that_is_deleted_meanwhile_stops_no_other(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    topics = gone, stays = f"{topic_name}-gone", f"{topic_name}-stays"
    make(source_cluster, target_cluster, topics)
    spec = translated(source, target, f"{topic_name}-.*")
    with Running(spec) as copying:
        for topic in topics:
            fill(source_cluster, topic, 100)
        copying.settled_again()
        delete(target_cluster, f"east.{gone}")
        for _ in range(3):
            for topic in topics:
                fill(source_cluster, topic, 100)
            status = copying.wait(lambda status: at(status, gone).state is PARKED)
            assert code(at(status, gone)) == "AB214"
            end = log_end(source, stays)
            copying.wait(lambda status, end=end: at(status, stays).position == end)  # type: ignore[misc]
    assert assert_in_order(spec, stays) == 400


@pytest.mark.parametrize("before", [0, 10])
def test_a_record_too_large_parks_its_partition_until_the_limit_is_raised(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    before: int,
) -> None:
    """What came before it counts, what came behind it waits, and another partition in the same transactions goes on."""
    remote = f"east.{topic_name}"
    make(source_cluster, target_cluster, [])
    create(source_cluster, topic_name, 2, {"max.message.bytes": "4000000"})
    create(target_cluster, remote, 2, REMOTE)
    if before:
        fill(source_cluster, topic_name, 2 * before, 2)
    write(source_cluster, topic_name, b"x" * 1_500_000, *[b"small-%d" % number for number in range(20)])
    spec = translated(source, target, topic_name)
    with Running(spec) as copying:
        # Parked as soon as the target refuses it; what came before it counts with the next commit.
        status = copying.wait(
            lambda status: at(status, topic_name).state is PARKED and at(status, topic_name).position == before
        )
        found = at(status, topic_name)
        assert code(found) == "AB212"
        assert f"offset {before} has 1,500," in str(found.reason)
        for _ in range(3):
            fill(source_cluster, topic_name, 200, 2)
            end = log_end(source, topic_name, 1)
            copying.wait(lambda status, end=end: at(status, topic_name, 1).position == end)  # type: ignore[misc]
        assert len(contents(target, remote)) == before
        assert contents(target, remote, 1) == contents(source, topic_name, 1)
        set_config(target_cluster, remote, "max.message.bytes", "4000000")
        heard = control.restart(target, spec.topology, [PauseScope(spec.flow.name)], parked_only=True)
        # Only then: a partition that is still parked counts as settled.
        copying.wait(lambda status: status.heard >= heard and all_running(status.partitions))
        copying.settled_again()
    assert assert_in_order(spec, topic_name, 2) == 2 * before + 21 + 600
