"""Copies with offsets of their own: every record once, in order, in transactions that hold the positions as well."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.model.names.own_names import syncs_topic
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.commit import base
from reconciler.wire import ConnectionLost, Membership
from reconciler.wire.requests import commits
from tests.contract.replicator.gaps.test_gaps import transact
from tests.support.clusters.kafka import admin, create
from tests.support.replicator.copying import REMOTE, Running, all_running, copy, fill, spec_of
from tests.support.replicator.translated import assert_in_order, assert_synced, contents

SECONDS = 300.0
HOUR_MS = 3_600_000


def translated(source: Cluster, target: Cluster, *include: str) -> FlowSpec:
    spec = spec_of(source, target, *include)
    return replace(spec, flow=replace(spec.flow, offsets="translated"))


def make(source: EmbeddedCluster, target: EmbeddedCluster, topics: Sequence[str], partitions: int = 1) -> None:
    name = syncs_topic("east")
    if name not in admin(target).list_topics(timeout=SECONDS).topics:
        create(target, name, 1, {"cleanup.policy": "compact"})
    for topic in topics:
        create(source, topic, partitions)
        create(target, f"east.{topic}", partitions, REMOTE)


def test_all_kinds_of_logs_are_copied_and_gone_on_with(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With more offset syncs in a transaction than are written at once."""
    monkeypatch.setattr(base, "_SYNCS_AT_ONCE", 3)
    plain, mixed = f"{topic_name}-plain", f"{topic_name}-transactions"
    make(source_cluster, target_cluster, [plain, mixed], 4)
    fill(source_cluster, plain, 5_000, 4, codec="lz4")
    transact(source_cluster, mixed, range(4), 6)
    spec = translated(source, target, f"{topic_name}-.*")
    with Running(spec) as copying:
        status = copying.wait()
        assert all_running(status.partitions), [str(p.reason) for p in status.partitions]
        transact(source_cluster, mixed, range(4), 6)
        fill(source_cluster, plain, 3_000, 4)
        copying.settled_again()
    assert assert_in_order(spec, plain, 4) == 8_000
    assert assert_in_order(spec, mixed, 4) > 50
    assert_synced(source, plain, target, f"east.{plain}", 4)
    assert_synced(source, mixed, target, f"east.{mixed}", 4)
    fill(source_cluster, plain, 2_000, 4)
    copy(translated(source, target, f"{topic_name}-.*"))
    assert assert_in_order(spec, plain, 4) == 10_000


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_lost_answer_to_a_commit_loses_and_doubles_nothing(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    *,
    monkeypatch: pytest.MonkeyPatch,
    when: str,
) -> None:
    make(source_cluster, target_cluster, [topic_name], 2)
    whole, calls = commits.end, itertools.count()

    async def lost(wire: object, transactor: object, committed: bool) -> None:
        fails = next(calls) % 2 == 0
        if not fails or when == "after":
            await whole(wire, transactor, committed)  # type: ignore[arg-type]
        if fails:
            message = "cut off"
            raise ConnectionLost(message)

    monkeypatch.setattr(commits, "end", lost)
    spec = translated(source, target, topic_name)
    with Running(spec) as copying:
        for _ in range(5):
            fill(source_cluster, topic_name, 1_000, 2)
            copying.settled_again()
    assert next(calls) > 4
    assert assert_in_order(spec, topic_name, 2) == 5_000


def test_two_sources_share_a_topic(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    """Each one's records are there once and in order, however they are mixed; so are those of a third one."""
    north, south = f"{topic_name}-north", f"{topic_name}-south"
    make(source_cluster, target_cluster, [])
    for topic in (north, south):
        create(source_cluster, topic)
    create(target_cluster, topic_name, 1, REMOTE)
    fill(target_cluster, topic_name, 10, age=2 * HOUR_MS)
    specs = [into(translated(source, target, topic), topic_name) for topic in (north, south)]
    with Running(specs[0]) as one, Running(specs[1]) as two:
        for _ in range(3):
            fill(source_cluster, north, 500, codec="zstd")
            fill(source_cluster, south, 700, age=HOUR_MS)
            one.settled_again()
            two.settled_again()
    ours = contents(target, topic_name)
    theirs = {topic: contents(source, topic) for topic in (north, south)}
    assert len(ours) == 10 + sum(map(len, theirs.values()))
    for found in theirs.values():
        # Times tell them apart.
        stamps = {record[2] for record in found}
        assert [record for record in ours if record[2] in stamps] == found


def into(spec: FlowSpec, remote: str) -> FlowSpec:
    """Return a flow of its own name, whose only topic is copied to `remote`."""
    (name,) = spec.flow.topics.include
    flow = replace(spec.flow, name=f"flow-{name}", policy=Renaming(remote))
    return replace(spec, flow=flow)


@dataclass(frozen=True)
class Renaming(ReplicationPolicy):
    """Gives every topic one name."""

    remote: str = ""

    def __init__(self, remote: str) -> None:
        super().__init__()
        object.__setattr__(self, "remote", remote)

    def remote_topic(self, source_alias: str, topic: str) -> str:
        """Return the one name."""
        return self.remote


def test_a_member_of_an_older_generation_cannot_commit(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its transaction is aborted, and what it held is copied by whoever may."""
    make(source_cluster, target_cluster, [topic_name])
    whole, calls = commits.commit_positions, itertools.count()

    async def late(wire: object, transactor: object, who: Membership, positions: object) -> None:
        if next(calls) % 2 == 0:
            who = replace(who, generation=who.generation - 1)
        await whole(wire, transactor, who, positions)  # type: ignore[arg-type]

    monkeypatch.setattr(commits, "commit_positions", late)
    spec = translated(source, target, topic_name)
    with Running(spec) as copying:
        for _ in range(3):
            fill(source_cluster, topic_name, 200)
            copying.settled_again()
    assert next(calls) > 3
    assert assert_in_order(spec, topic_name) == 600


def test_records_gather_for_the_commit_interval_and_a_stop_commits_them(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    make(source_cluster, target_cluster, [topic_name])
    spec = translated(source, target, topic_name)
    spec = replace(spec, flow=replace(spec.flow, commit_interval=3_600.0))
    with Running(spec) as copying:
        copying.wait(lambda status: all_running(status.partitions))
        fill(source_cluster, topic_name, 300)
        deadline = time.monotonic() + SECONDS
        while len(contents(target, f"east.{topic_name}", isolation="read_uncommitted")) < 300:
            assert time.monotonic() < deadline
        assert contents(target, f"east.{topic_name}") == []
        copying.stop()
    assert assert_in_order(spec, topic_name) == 300
