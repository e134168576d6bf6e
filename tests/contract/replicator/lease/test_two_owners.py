"""Runs that share a flow: the lease lets one of them write to a partition, sequence numbers catch what it cannot."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator

import pytest

from reconciler.demo.compare import compare
from reconciler.embedded import ClusterOptions, EmbeddedCluster, running
from reconciler.model.declared.clients import LineSettings
from reconciler.model.declared.cluster import Cluster
from reconciler.model.tasks.spec import FlowSpec
from reconciler.model.tasks.status import PartitionState
from reconciler.replicator.lease.lease import Lease
from reconciler.replicator.partition.shares import Assignment
from reconciler.replicator.takeover import identical as takeover
from reconciler.replicator.task import connections, rounds, task
from reconciler.wire import Loop, Wire
from tests.support.clusters.kafka import create, declared
from tests.support.clusters.traffic import WEEK_MS
from tests.support.replicator.copying import (
    REMOTE,
    SECONDS,
    Running,
    all_running,
    assert_counted,
    at,
    code,
    fill,
    identical,
    log_end,
    run_of_thread,
    spec_of,
    wait_until_forgotten,
)
from tests.support.replicator.two_ages import feed
from tests.support.replicator.two_runs import (
    all_wait,
    another,
    copy_while_one_dies,
    copy_while_one_stands_still,
    has_half,
)

FORGETFUL = ClusterOptions(
    overrides={"producer.id.expiration.ms": "1000", "producer.id.expiration.check.interval.ms": "200"}
)


@pytest.fixture(scope="module")
def forgetful() -> Iterator[EmbeddedCluster]:
    """A cluster that forgets producers whose records are older than a second."""
    with running(EmbeddedCluster("forgetful", FORGETFUL)) as (cluster,):
        yield cluster


def test_sequences_alone_keep_two_owners_apart_while_brokers_remember(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each owner has a lease of its own, as if both had been granted everything."""
    monkeypatch.setattr(connections, "group_of", lambda *_: uuid.uuid4().hex)
    traffic = feed(source_cluster, target_cluster, topic_name, 20_000)
    spec = spec_of(source, declared("west", target_cluster), f"{topic_name}-.*")
    with Running(spec) as one, Running(another(spec)) as two:
        for owner in (one, two):
            owner.wait(lambda status: all_running(status.partitions))
        for thread in traffic.values():
            thread.start()
        for thread in traffic.values():
            thread.finish()
        for owner in (one, two):
            owner.settled_again(running=True)
    assert identical(spec, *traffic) == 40_000
    # A record that both have sent counts for both; one whose answer was lost counts for none.
    for owner in (one, two):
        assert sum(row.records for row in owner.rows) <= 40_000
    assert one.rows + two.rows


def test_runs_share_a_flow_though_brokers_forget(
    source_cluster: EmbeddedCluster, forgetful: EmbeddedCluster, source: Cluster, topic_name: str
) -> None:
    """The broker forgets the producer of old records five times a second, so nothing but the lease is in the way."""
    traffic = feed(source_cluster, forgetful, topic_name, 40_000)

    def more() -> None:
        """However far the runs have come: these only those can copy that share the flow now."""
        for topic, age in zip(traffic, (0, WEEK_MS), strict=True):
            fill(source_cluster, topic, 400, 4, age=age)

    spec = spec_of(source, declared("west", forgetful), f"{topic_name}-.*")
    with Running(spec) as one:
        one.wait(lambda status: all_running(status.partitions))
        for thread in traffic.values():
            thread.start()
        one.wait(lambda status: status.records > 1_000)
        with Running(another(spec)) as two:
            for run in (one, two):
                run.wait(has_half)
            more()
            two.wait(lambda status: status.records > 0)
            one.stop()
            words = [one.last()]
            # The second goes on where the first has ended, while records come in.
            two.wait(lambda status: all_running(status.partitions))
            with Running(another(spec)) as three:
                for run in (two, three):
                    run.wait(has_half)
                more()
                three.wait(lambda status: status.records > 0)
                for thread in traffic.values():
                    thread.finish()
                two.stop()
                words.append(two.last())
                three.wait(lambda status: all_running(status.partitions))
                three.settled_again()
                three.stop()
                words.append(three.last())
    assert identical(spec, *traffic) == 81_600
    assert_counted(sum(row.records for row in one.rows + two.rows + three.rows), 81_600, *words)


def test_a_dead_runs_partitions_are_taken_over(
    source_cluster: EmbeddedCluster, forgetful: EmbeddedCluster, source: Cluster, topic_name: str
) -> None:
    traffic = feed(source_cluster, forgetful, topic_name, 10_000)
    spec = spec_of(source, declared("west", forgetful), f"{topic_name}-.*")
    copy_while_one_dies(spec, traffic)
    assert identical(spec, *traffic) == 20_000


def test_a_process_that_stood_still_writes_nothing_any_more(
    source_cluster: EmbeddedCluster, forgetful: EmbeddedCluster, source: Cluster, topic_name: str
) -> None:
    traffic = feed(source_cluster, forgetful, topic_name, 20_000)
    spec = spec_of(source, declared("west", forgetful), f"{topic_name}-.*")
    copy_while_one_stands_still(spec, traffic, source_cluster, topic_name)
    assert identical(spec, *traffic) == 40_800


class Stop:
    """Stops the thread of one run after its lease was asked for and before what it may send is sent.

    Args:
        run: the run.
        patch: puts the stop in.
    """

    def __init__(self, run: str, patch: pytest.MonkeyPatch) -> None:
        self.next = threading.Event()
        self.is_stopped = threading.Event()
        self.go_on = threading.Event()
        self._run = run
        patch.setattr(connections, "Wire", self._wire)

    def _wire(
        self,
        loop: Loop,
        cluster: Cluster,
        client: str,
        timeout: float,
        may_send: Callable[[], bool] | None,
        line: LineSettings,
    ) -> Wire:
        if may_send is None or client.endswith("-ask") or run_of_thread() != self._run:
            return Wire(loop, cluster, client, timeout, may_send, line)
        ask = may_send

        def asked() -> bool:
            allowed = ask()
            if allowed and self.next.is_set():
                self.next.clear()
                self.is_stopped.set()
                assert self.go_on.wait(SECONDS)
            return allowed

        return Wire(loop, cluster, client, timeout, asked, line)


@pytest.fixture
def scene(
    request: pytest.FixtureRequest, source_cluster: EmbeddedCluster, source: Cluster, topic_name: str
) -> tuple[FlowSpec, str, Callable[[int], None]]:
    """A flow of one partition with 100 records, its topic, and what produces more of them."""
    cluster: EmbeddedCluster = request.getfixturevalue("forgetful" if request.param else "target_cluster")
    create(source_cluster, topic_name)
    create(cluster, f"east.{topic_name}", 1, REMOTE)

    def more(records: int) -> None:
        fill(source_cluster, topic_name, records, age=request.param)

    more(100)
    return spec_of(source, declared("west", cluster), topic_name), topic_name, more


def stop_one_while_two_copies(
    scene: tuple[FlowSpec, str, Callable[[int], None]],
    stop: Stop,
    then: Callable[[Running], None],
    before: Callable[[], None] = lambda: None,
) -> None:
    """Stop the first owner while it sends records 100 to 149, let a second copy up to 199, and let the first go on.

    Args:
        scene: flow, topic, and what produces more.
        stop: stops the first.
        then: what is to come of it, with the second.
        before: waits for what must be so when the first goes on.
    """
    spec, topic, more = scene
    with Running(spec) as one:
        one.wait(lambda status: at(status, topic).position == 100)
        stop.next.set()
        more(50)
        assert stop.is_stopped.wait(SECONDS)
        with Running(another(spec)) as two:
            two.wait(lambda status: at(status, topic).position == 150)
            more(50)
            two.wait(lambda status: at(status, topic).position == 200)
            before()
            stop.go_on.set()
            one.wait(all_wait)
            then(two)


@pytest.mark.parametrize("scene", [0], indirect=True)
def test_stopped_between_check_and_send_is_harmless_while_the_broker_remembers(
    scene: tuple[FlowSpec, str, Callable[[int], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The late request is one that the broker has, or its sequence is refused."""
    spec, topic, more = scene

    def then(two: Running) -> None:
        more(50)
        two.wait(lambda status: at(status, topic).position == 250)

    stop_one_while_two_copies(scene, Stop(spec.run, monkeypatch), then)
    assert identical(spec, topic) == 250


@pytest.mark.parametrize("scene", [WEEK_MS], indirect=True)
def test_stopped_between_check_and_send_breaks_a_copy_that_the_broker_has_forgotten(
    scene: tuple[FlowSpec, str, Callable[[int], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What no lease can prevent: nobody but the broker sees what is on its way, and this one remembers nothing.

    The late records stand behind the copy's end; it is noticed, the partition parks, and nothing more is written.
    """
    # How long a source that stays behind its copy is waited for.
    monkeypatch.setattr(takeover, "_BEHIND_PATIENCE", 0.5)
    spec, topic, more = scene
    remote = f"east.{topic}"

    def then(two: Running) -> None:
        more(50)
        status = two.wait(lambda status: at(status, topic).state is PartitionState.PARKED)
        assert code(at(status, topic)) in ("AB209", "AB210", "AB211")

    def forgotten() -> None:
        wait_until_forgotten(spec.target, remote)

    stop_one_while_two_copies(scene, Stop(spec.run, monkeypatch), then, forgotten)
    assert log_end(spec.target, remote) > 200
    found = compare(spec.source, topic, spec.target, remote, "read_uncommitted")
    assert not found.is_identical


def test_a_task_that_fails_breaks_its_connections_before_it_gives_the_lease_back(
    source: Cluster, target: Cluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it had under way must not arrive when somebody else writes already."""
    said: list[str] = []
    drop, leave = Wire.drop, Lease.leave

    def dropping(self: Wire, why: str) -> None:
        said.append("drop")
        drop(self, why)

    async def leaving(self: Lease) -> None:
        said.append("leave")
        await leave(self)

    async def failing(_self: task.Task, *_: object) -> None:
        message = "a fault"
        raise RuntimeError(message)

    monkeypatch.setattr(Wire, "drop", dropping)
    monkeypatch.setattr(Lease, "leave", leaving)
    monkeypatch.setattr(task.Task, "_work", failing)
    with pytest.raises(RuntimeError, match="a fault"):
        rounds.run(spec_of(source, target, topic_name), Assignment(0, 1, ()))
    # All three that write to remote partitions.
    assert said[:4] == ["drop", "drop", "drop", "leave"]
    assert not rounds._running
