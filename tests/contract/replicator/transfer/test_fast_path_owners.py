"""A run whose lease is lost while its records go by express: it writes nothing any more, and another one goes on."""

from __future__ import annotations

import threading

import pytest

from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from tests.contract.replicator.lease.test_two_owners import Stop
from tests.contract.replicator.transfer.test_fast_path import flow_of
from tests.support.replicator.copying import SECONDS, Running, all_running, identical
from tests.support.replicator.trickles import Line, Trickle
from tests.support.replicator.two_runs import all_wait, another, has_half


def test_runs_that_stood_still_aboard_write_nothing_any_more(
    source_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topics: tuple[str, str],
    line: Line,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of two flows one's run stands still before it sends, and one's right after its lease was asked whether it may.

    What that one sends then is what another has written already, or its sequence is refused.
    """
    early, late = (flow_of(source, target, (topic,)) for topic in topics)
    stop = Stop(late.run, monkeypatch)
    is_early_stopped = threading.Event()

    def stand_still(*_: object) -> None:
        is_early_stopped.set()
        assert stop.go_on.wait(SECONDS)

    with Running(early) as one, Running(late) as other, Trickle(source_cluster, topics) as trickle:
        for topic, todo in zip(topics, (stand_still, lambda *_: stop.next.set()), strict=True):
            line.await_records()
            threading.Thread(target=line.do_aboard, args=(todo, topic)).start()
            assert (is_early_stopped if topic == topics[0] else stop.is_stopped).wait(SECONDS)
        with Running(another(early)) as two, Running(another(late)) as second:
            for run in (two, second):
                run.wait(lambda status: all_running(status.partitions))
                line.await_records(run=run.spec.run)
            stop.go_on.set()
            for run in (one, other):
                run.wait(lambda status: all_wait(status) or has_half(status))
            line.await_records()
            sent = trickle.finish()
            for run in (one, other):
                run.stop()
            for run in (two, second):
                run.wait(lambda status: all_running(status.partitions))
                run.settled_again()
    assert identical(early, *topics) == sent


def test_runs_share_what_goes_by_express(
    source_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topics: tuple[str, str], line: Line
) -> None:
    """One gives up half of its partitions while they are aboard, and gets them back."""
    spec = flow_of(source, target, topics)
    with Running(spec) as one, Trickle(source_cluster, topics) as trickle:
        line.await_records()
        with Running(another(spec)) as two:
            for run in (one, two):
                run.wait(has_half)
            line.await_records(run=two.spec.run)
        one.wait(lambda status: all_running(status.partitions))
        line.await_records()
        sent = trickle.finish()
        one.settled_again()
    assert identical(spec, *topics) == sent
    assert sum(row.records for row in one.rows + two.rows) <= sent
