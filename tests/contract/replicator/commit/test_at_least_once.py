"""Copies without transactions (`delivery: at-least-once`): every record in order, perhaps more than once, none lost."""

from __future__ import annotations

import itertools
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from reconciler.checkpoints.translation.translate import Translator
from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.model.tasks.spec import FlowSpec
from reconciler.model.tasks.status import PartitionState
from reconciler.replicator.commit import base
from reconciler.wire import BrokerError, ConnectionLost, Membership
from reconciler.wire.requests import commits
from reconciler.wire.requests.commits import CommittedPosition, Log
from tests.contract.replicator.commit.test_translated import SECONDS, make
from tests.contract.replicator.gaps.test_gaps import transact
from tests.support.clusters.kafka import create, delete
from tests.support.replicator.copying import Running, all_running, at, code, copy, fill, spec_of
from tests.support.replicator.owner import Owner
from tests.support.replicator.translated import assert_in_order, assert_synced, assert_translates, contents
from tests.support.replicator.two_runs import all_wait, another
from tests.support.still import halt

_UNSUPPORTED_VERSION = 35


def repeating(source: Cluster, target: Cluster, *include: str) -> FlowSpec:
    spec = spec_of(source, target, *include)
    return replace(spec, flow=replace(spec.flow, offsets="translated", delivery="at-least-once"))


def repeats(spec: FlowSpec, topic: str, partitions: int = 1) -> int:
    """Assert that a copy holds its original in order, and nothing else but repeats; return how many of these.

    A repeat goes back to a record that stands there already and goes on from it, so every record's first appearance is
    in order.
    """
    count = 0
    for number in range(partitions):
        theirs = list(map(repr, contents(spec.source, topic, number)))
        ours = list(map(repr, contents(spec.target, spec.flow.remote_topic(topic), number, "read_uncommitted")))
        assert list(dict.fromkeys(ours)) == theirs
        place = {record: index for index, record in enumerate(theirs)}
        steps = [place[now] - place[before] for before, now in itertools.pairwise(ours)]
        assert all(step <= 1 for step in steps)
        count += len(ours) - len(theirs)
    return count


@pytest.fixture(params=["idempotent", "plain"])
def producer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Targets that give producer ids to whoever asks, and targets that do not."""

    async def refused(_wire: object) -> int:
        raise BrokerError(_UNSUPPORTED_VERSION)

    if request.param == "plain":
        monkeypatch.setattr(commits, "idempotent_producer", refused)
    yield request.param


@pytest.mark.usefixtures("producer")
def test_all_records_arrive_once_and_in_order_while_nothing_breaks(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(base, "_SYNCS_AT_ONCE", 3)
    plain, mixed = f"{topic_name}-plain", f"{topic_name}-transactions"
    make(source_cluster, target_cluster, [plain, mixed], 4)
    fill(source_cluster, plain, 5_000, 4, codec="lz4")
    transact(source_cluster, mixed, range(4), 6)
    spec = repeating(source, target, f"{topic_name}-.*")
    with Running(spec) as copying:
        status = copying.wait()
        assert all_running(status.partitions), [str(p.reason) for p in status.partitions]
        transact(source_cluster, mixed, range(4), 6)
        fill(source_cluster, plain, 3_000, 4)
        copying.settled_again()
    fill(source_cluster, plain, 2_000, 4)
    copy(repeating(source, target, f"{topic_name}-.*"))
    assert assert_in_order(spec, plain, 4) == 10_000
    assert assert_in_order(spec, mixed, 4) > 50
    assert contents(target, f"east.{plain}", 0, "read_uncommitted") == contents(target, f"east.{plain}")
    assert_synced(source, plain, target, f"east.{plain}", 4)
    assert_synced(source, mixed, target, f"east.{mixed}", 4)


def test_a_process_killed_between_writing_and_committing_repeats_and_loses_nothing(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    make(source_cluster, target_cluster, [topic_name], 2)
    fill(source_cluster, topic_name, 1_000, 2)
    spec = repeating(source, target, topic_name)
    copy(spec)
    late = replace(another(spec), flow=replace(spec.flow, commit_interval=3_600.0))
    with Owner(late) as one:
        one.wait(lambda status: all_running(status.partitions))
        fill(source_cluster, topic_name, 600, 2)
        deadline = time.monotonic() + SECONDS
        while sum(len(contents(target, f"east.{topic_name}", n)) for n in range(2)) < 1_600:
            assert time.monotonic() < deadline
        one.process.kill()
    # What nobody has told of yet stands at the target, and consumers must not be taken past it.
    with Translator(source, target, spec.flow, spec.topology) as translator:
        found = [translator.downstream(topic_name, 0, offset) for offset in (499, 500, 650, 800)]
    assert [(one.offset, one.how) for one in found] == [(499, "record"), (500, "end"), (500, "ahead"), (500, "ahead")]
    fill(source_cluster, topic_name, 400, 2)
    copy(another(spec))
    assert repeats(spec, topic_name, 2) == 600
    assert_synced(source, topic_name, target, f"east.{topic_name}", 2)


def test_of_a_topic_that_was_made_anew_offsets_lead_to_its_own_records(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    make(source_cluster, target_cluster, [topic_name])
    fill(source_cluster, topic_name, 300)
    spec = repeating(source, target, topic_name)
    spec = replace(spec, flow=replace(spec.flow, on_recreate="restart"))
    copy(spec)
    old = contents(target, f"east.{topic_name}")
    delete(source_cluster, topic_name)
    create(source_cluster, topic_name)
    fill(source_cluster, topic_name, 200)
    for count in (200, 450):
        copy(another(spec))
        assert contents(target, f"east.{topic_name}") == old + contents(source, topic_name)
        assert assert_translates(source, topic_name, target, f"east.{topic_name}") == count
        fill(source_cluster, topic_name, 250)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_lost_answer_to_a_commit_repeats_nothing(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    *,
    monkeypatch: pytest.MonkeyPatch,
    when: str,
) -> None:
    """What was acknowledged is known as long as the task lives; its position is committed by another try."""
    make(source_cluster, target_cluster, [topic_name], 2)
    whole, calls = commits.commit_acknowledged, itertools.count()

    async def lost(wire: object, who: Membership, positions: Mapping[Log, CommittedPosition]) -> dict[Log, int]:
        fails = next(calls) % 2 == 0
        refused = {} if fails and when == "before" else await whole(wire, who, positions)  # type: ignore[arg-type]
        if fails:
            message = "cut off"
            raise ConnectionLost(message)
        return refused

    monkeypatch.setattr(commits, "commit_acknowledged", lost)
    spec = repeating(source, target, topic_name)
    with Running(spec) as copying:
        for _ in range(4):
            fill(source_cluster, topic_name, 1_000, 2)
            copying.settled_again()
    assert next(calls) > 4
    assert assert_in_order(spec, topic_name, 2) == 4_000


def test_a_member_of_an_older_generation_cannot_commit(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make(source_cluster, target_cluster, [topic_name])
    whole, calls, answers = commits.commit_acknowledged, itertools.count(), list[int]()

    async def late(wire: object, who: Membership, positions: Mapping[Log, CommittedPosition]) -> dict[Log, int]:
        if next(calls) % 2 == 0:
            who = replace(who, generation=who.generation - 1)
        try:
            return await whole(wire, who, positions)  # type: ignore[arg-type]
        except BrokerError as error:
            answers.append(error.code)
            raise

    monkeypatch.setattr(commits, "commit_acknowledged", late)
    spec = repeating(source, target, topic_name)
    with Running(spec) as copying:
        for _ in range(3):
            fill(source_cluster, topic_name, 200)
            copying.settled_again()
    illegal_generation = 22
    assert answers
    assert set(answers) == {illegal_generation}
    assert assert_in_order(spec, topic_name) == 600


def test_a_dead_runs_partitions_are_taken_over(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    make(source_cluster, target_cluster, [topic_name], 2)
    spec = repeating(source, target, topic_name)
    fill(source_cluster, topic_name, 10_000, 2)
    with Owner(spec) as one:
        one.wait(lambda status: status.records > 1_000)
        with Running(another(spec)) as two:
            two.wait(all_wait)
            fill(source_cluster, topic_name, 10_000, 2)
            one.process.kill()
            two.wait(lambda status: all_running(status.partitions))
            fill(source_cluster, topic_name, 2_000, 2)
            two.settled_again()
    repeats(spec, topic_name, 2)


def test_a_process_that_stood_still_loses_nothing_and_commits_nothing_any_more(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    make(source_cluster, target_cluster, [topic_name], 2)
    spec = repeating(source, target, topic_name)
    fill(source_cluster, topic_name, 20_000, 2)
    with Owner(spec) as one:
        one.wait(lambda status: status.records > 1_000)
        with Running(another(spec)) as two:
            two.wait(all_wait)
            fill(source_cluster, topic_name, 20_000, 2)
            halt(one.process.pid)
            two.wait(lambda status: all_running(status.partitions))
            fill(source_cluster, topic_name, 2_000, 2)
            two.wait(lambda status: status.records > 0)
            one.process.send_signal(signal.SIGCONT)
            one.wait(all_wait)
            fill(source_cluster, topic_name, 2_000, 2)
            two.settled_again()
    repeats(spec, topic_name, 2)


def test_what_cannot_be_committed_is_said_and_stops_its_own_partition(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    good, bad = f"{topic_name}-good", f"{topic_name}-bad"
    make(source_cluster, target_cluster, [good, bad])
    whole, refused, tries = commits.commit_acknowledged, [True], list[Log]()
    topic_authorization_failed = 29

    async def closed(wire: object, who: Membership, positions: Mapping[Log, CommittedPosition]) -> dict[Log, int]:
        tries.extend(log for log in positions if log[0] == f"east.{bad}")
        codes = {log: topic_authorization_failed for log in positions if refused and log[0] == f"east.{bad}"}
        rest = {log: position for log, position in positions.items() if log not in codes}
        return codes | (await whole(wire, who, rest))  # type: ignore[arg-type]

    monkeypatch.setattr(commits, "commit_acknowledged", closed)
    spec = repeating(source, target, f"{topic_name}-.*")
    for topic in (good, bad):
        fill(source_cluster, topic, 200)
    with Running(spec) as copying:
        status = copying.wait(lambda status: code(at(status, bad)) == "AB213" and at(status, good).position == 200)
        assert at(status, bad).state is PartitionState.PARKED
        assert "READ on topic" in str(at(status, bad).reason)
        # It is tried again, and nothing is written meanwhile.
        copying.wait(lambda _: len(tries) > 2)
        refused.clear()
        copying.wait(lambda status: at(status, bad).position == 200)
    assert assert_in_order(spec, good) == 200
    assert repeats(spec, bad) == 0
