"""A running task is told to pause, to go on, to try again, and which partitions it has; nothing else is disturbed."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

import pytest

from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.model.names.selection import Selection
from reconciler.model.recorded.pauses import PauseScope
from reconciler.model.tasks.seal import Seal, new_key
from reconciler.model.tasks.spec import FlowSpec
from reconciler.model.tasks.status import PartitionState, PartitionStatus, TaskStatus
from reconciler.replicator.driver import discovery
from reconciler.replicator.driver.refresh import Refresh
from reconciler.replicator.partition.shares import Shares
from reconciler.state import control
from tests.support.clusters.kafka import create, grow
from tests.support.replicator.copying import (
    REMOTE,
    Running,
    assert_counted,
    at,
    code,
    fill,
    identical,
    log_end,
    spec_of,
)

PAUSED, RUNNING, PARKED = PartitionState.PAUSED, PartitionState.RUNNING, PartitionState.PARKED


def states(status: TaskStatus) -> list[PartitionState]:
    return [partition.state for partition in status.partitions]


def flow_of(source: Cluster, target: Cluster, topic: str) -> FlowSpec:
    """Return a flow with a name of its own: what it is told must not reach another test's."""
    spec = spec_of(source, target, f"{topic}.*")
    return replace(spec, flow=replace(spec.flow, name=topic[-8:]))


def told(running: Running, heard: int) -> TaskStatus:
    """Wait until the task has obeyed a command."""
    return running.wait(lambda status: status.heard >= heard)


def announce(spec: FlowSpec, shares: Shares) -> None:
    control.announce(spec.target, spec.seal, shares.to_json())


def test_a_paused_partition_stands_still_and_goes_on_when_resumed(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    create(source_cluster, topic_name, 2)
    create(target_cluster, f"east.{topic_name}", 2, REMOTE)
    fill(source_cluster, topic_name, 100, 2)
    spec = flow_of(source, target, topic_name)
    with Running(spec) as running:
        running.wait()
        paused = told(running, control.pause(target, spec.topology, [PauseScope(spec.flow.name, topic_name, 0)]))
        assert states(paused) == [PAUSED, RUNNING]
        fill(source_cluster, topic_name, 100, 2)
        running.wait(lambda status: at(status, topic_name, 1).position == 100)
        assert log_end(target, f"east.{topic_name}", 0) == 50
        behind = at(running.wait(lambda status: at(status, topic_name, 0).lag == 50), topic_name, 0)
        assert (behind.state, behind.metrics.lag_seconds is None) == (PAUSED, False)
        running.stop()
    # A pause is nothing of a run: the next one finds it.
    again = flow_of(source, target, topic_name)
    with Running(again) as running:
        running.wait(lambda status: states(status) == [PAUSED, RUNNING])
        heard = control.resume(target, spec.topology, [PauseScope(spec.flow.name)])
        resumed = running.wait(lambda status: status.heard >= heard and at(status, topic_name, 0).position == 100)
        assert states(resumed) == [RUNNING, RUNNING]
    assert identical(spec, topic_name) == 200


def test_what_is_in_flight_at_a_pause_is_answered(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    create(target_cluster, f"east.{topic_name}", 1, REMOTE)
    spec = flow_of(source, target, topic_name)
    with Running(spec) as running:
        running.wait()
        for _ in range(3):
            fill(source_cluster, topic_name, 10_000)
            told(running, control.pause(target, spec.topology, [PauseScope(spec.flow.name)]))
            # The position that is told is the log end: no answer was given up.
            running.wait(lambda status: at(status, topic_name).position == log_end(target, f"east.{topic_name}"))
            told(running, control.resume(target, spec.topology, [PauseScope(spec.flow.name)]))
        running.settled_again()
        running.stop()
        # Going on after a pause is an opening of its own.
        assert_counted(sum(row.records for row in running.rows), 30_000, running.last(), retries=3)
    assert identical(spec, topic_name) == 30_000


def test_a_restart_ends_a_long_wait_at_once(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reconciler.replicator.partition.backoff._PARKED", (3_600.0, 3_600.0))
    create(source_cluster, topic_name)
    fill(source_cluster, topic_name, 10)
    spec = flow_of(source, target, topic_name)
    with Running(spec) as running:
        running.wait(lambda status: code(at(status, topic_name)) == "AB214")
        create(target_cluster, f"east.{topic_name}", 1, REMOTE)
        control.restart(
            target,
            spec.topology,
            [PauseScope("another-flow"), PauseScope(spec.flow.name, "another-topic")],
            parked_only=False,
        )
        heard = control.restart(target, spec.topology, [PauseScope(spec.flow.name)], parked_only=True)
        status = running.wait(lambda status: status.heard >= heard and states(status) == [RUNNING])
        assert at(status, topic_name).reason is None
        running.settled_again()
    assert identical(spec, topic_name) == 10


def test_partitions_that_are_announced_are_taken_within_the_round(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    first, second = f"{topic_name}-a", f"{topic_name}-b"
    create(source_cluster, first)
    create(target_cluster, f"east.{first}", 1, REMOTE)
    fill(source_cluster, first, 100)
    spec = flow_of(source, target, topic_name)
    shares = Shares().extended(discovery.matching(spec), 1)
    with Running(spec) as running:
        announce(spec, shares)
        running.wait()
        grow(source_cluster, first, 3)
        grow(target_cluster, f"east.{first}", 3)
        create(source_cluster, second, 2)
        create(target_cluster, f"east.{second}", 2, REMOTE)
        # The client that lists topics may be slower than the broker.
        deadline = time.monotonic() + 60
        while len(shares.of(0)) < 5 and time.monotonic() < deadline:
            shares = shares.extended(discovery.matching(spec), 1)
        announce(spec, shares)
        fill(source_cluster, first, 300, 3)
        fill(source_cluster, second, 100, 2)
        grown = running.wait(lambda status: len(status.partitions) == 5 and {p.lag for p in status.partitions} == {0})
        assert at(grown, first, 0).position == 200
        assert not grown.stopped
    assert identical(spec, first, second) == 500


def test_a_new_partition_of_a_paused_flow_is_paused(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    create(source_cluster, topic_name, 2)
    create(target_cluster, f"east.{topic_name}", 2, REMOTE)
    fill(source_cluster, topic_name, 10, 2)
    spec = flow_of(source, target, topic_name)
    control.pause(target, spec.topology, [PauseScope(spec.flow.name, topic_name)])
    with Running(spec, places=[]) as running:
        assert running.wait(lambda status: True).waiting == "no topic matches yet"
        announce(spec, Shares().extended(discovery.matching(spec), 1))
        running.wait(lambda status: states(status) == [PAUSED, PAUSED])
        assert log_end(target, f"east.{topic_name}") == 0


def forged(topic: str) -> dict[str, tuple[str, str, str]]:
    """Return shares that no driver of a flow would announce, by what is wrong with them."""
    secret, other = f"{topic}-secret", f"other-{topic}"
    return {
        "an excluded topic": (secret, f"east.{secret}", "identical"),
        "a topic that is not included": (other, f"east.{other}", "identical"),
        "a copy by another name": (topic, f"east.{topic}-loot", "identical"),
        "another mode": (f"{topic}-b", f"east.{topic}-b", "translated"),
    }


@pytest.mark.parametrize("sealed", [False, True])
def test_forged_shares_copy_nothing(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    sealed: bool,
) -> None:
    declared = flow_of(source, target, topic_name)
    selection = Selection((f"{topic_name}.*",), (f"{topic_name}-secret",))
    spec = replace(declared, flow=replace(declared.flow, topics=selection, offsets="identical"))
    kinds = forged(topic_name)
    for topic, remote in {(topic, remote) for topic, remote, _ in kinds.values()} | {
        (topic_name, f"east.{topic_name}")
    }:
        create(target_cluster, remote, 1, REMOTE)
        if topic == topic_name and remote != f"east.{topic_name}":
            continue
        create(source_cluster, topic)
        fill(source_cluster, topic, 50)
    genuine = [place for place in discovery.matching(spec) if place.topic == topic_name]
    with Running(spec, places=genuine) as running:
        running.wait(lambda status: at(status, topic_name).position == 50)
        for topic, remote, mode in kinds.values():
            # With the key of the run these are what a driver gone wrong would send; without it, what others can.
            by = spec.seal if sealed else Seal(spec.topology, spec.run, spec.flow.name, new_key())
            control.announce(target, by, {"tasks": 1, "topics": {topic: [remote, [0], mode, []]}})
            refused = (topic, remote)
            if sealed:
                word = running.wait(partial(names, refused))
                (row,) = [p for p in word.partitions if (p.topic, p.remote) == refused]
                assert (row.state, code(row)) == (PARKED, "AB238")
        # What is no share at all is passed over.
        control.announce(target, by, {"tasks": 1, "topics": {topic: [remote, [0], "upside-down", []]}})
        # What comes behind them is heard, so they were, too; and the flow goes on.
        heard = control.restart(target, spec.topology, [PauseScope(spec.flow.name)], parked_only=False)
        fill(source_cluster, topic_name, 50)
        word = running.wait(lambda status: status.heard >= heard and at_own(status, topic_name).position == 100)
        assert len(word.partitions) == (1 + len(kinds) if sealed else 1)
        running.stop()
    assert [log_end(target, remote) for _, remote, _ in kinds.values()] == [0] * len(kinds)


def names(place: tuple[str, str], status: TaskStatus) -> bool:
    return place in {(p.topic, p.remote) for p in status.partitions}


def at_own(status: TaskStatus, topic: str) -> PartitionStatus:
    """Return what a task says of a partition that it copies as its flow declares it."""
    (one,) = [p for p in status.partitions if (p.topic, p.remote) == (topic, f"east.{topic}")]
    return one


def test_a_round_ends_when_the_flow_has_work_for_more_tasks(
    source_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    create(source_cluster, topic_name, 2)
    spec = flow_of(source, target, topic_name)
    with Running(spec, places=[]) as running:
        running.wait(lambda status: status.waiting is not None)
        announce(spec, Shares().extended(discovery.matching(spec), 2))
        running._thread.join(300)
        assert not running._thread.is_alive()
        assert [status.stopped for status in running.statuses()] == [False]


def test_a_flow_without_topics_waits_for_one_and_says_what_hinders_it(
    source_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    gone = spec_of(Cluster("gone", ("127.0.0.1:1",)), target, topic_name)
    warnings: list[str] = []
    refresh = Refresh(gone, None, warnings.append, warnings.append)
    with Running(gone, places=[]) as running:
        refresh.look()
        waiting = running.wait(lambda status: "does not answer" in str(status.waiting)).waiting
        assert "cluster gone (127.0.0.1:1)" in str(waiting)
        refresh.look()
    assert len(warnings) == 1, "the same trouble is told once"
    assert "cluster gone (127.0.0.1:1)" in warnings[0]

    spec = flow_of(source, target, topic_name)
    refresh = Refresh(spec, None, warnings.append, warnings.append)
    with Running(spec) as running:
        assert running.wait(lambda status: status.waiting is not None).waiting == "no topic matches yet"
        refresh.start()
        try:
            create(source_cluster, topic_name)
            found = running.wait(lambda status: bool(status.partitions))
            assert (found.waiting, at(found, topic_name).remote) == (None, f"east.{topic_name}")
        finally:
            refresh.end()
    assert len(warnings) == 1


def test_a_target_that_is_gone_is_a_warning(source: Cluster, topic_name: str) -> None:
    warnings: list[str] = []
    spec = spec_of(source, Cluster("gone", ("127.0.0.1:1",)), topic_name)
    Refresh(spec, None, warnings.append, warnings.append).look()
    assert len(warnings) == 1
    assert "cluster gone (127.0.0.1:1)" in warnings[0]
