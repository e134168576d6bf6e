"""Owners of copies with offsets of their own: whoever stood still, died or was forgotten, every record counts once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from reconciler.embedded import EmbeddedCluster, running
from reconciler.model.cluster import Cluster
from reconciler.model.names import syncs_topic
from reconciler.model.spec import FlowSpec
from tests.contract.kafka import create, declared
from tests.contract.test_two_owners import FORGETFUL
from tests.support.copying import REMOTE, Running, fill, spec_of, wait_until_forgotten
from tests.support.traffic import WEEK_MS
from tests.support.translated import assert_in_order
from tests.support.two_ages import feed
from tests.support.two_runs import copy_while_one_dies, copy_while_one_stands_still


@pytest.fixture(scope="module")
def forgetful() -> Iterator[EmbeddedCluster]:
    """A cluster that forgets producers whose records are older than a second."""
    with running(EmbeddedCluster("forgetful", FORGETFUL)) as (cluster,):
        create(cluster, syncs_topic("east"), 1, {"cleanup.policy": "compact"})
        yield cluster


def translated(source: Cluster, target: EmbeddedCluster, *include: str) -> FlowSpec:
    spec = spec_of(source, declared("west", target), *include)
    return replace(spec, flow=replace(spec.flow, offsets="translated"))


def test_a_process_that_stood_still_commits_nothing_any_more(
    source_cluster: EmbeddedCluster, forgetful: EmbeddedCluster, source: Cluster, topic_name: str
) -> None:
    """What it had written under its lost lease is aborted, though it is a member of the group again."""
    traffic = feed(source_cluster, forgetful, topic_name, 20_000)
    spec = translated(source, forgetful, f"{topic_name}-.*")
    copy_while_one_stands_still(spec, traffic, source_cluster, topic_name, shares=False)
    assert sum(assert_in_order(spec, topic, 4) for topic in traffic) == 40_800


def test_a_dead_runs_partitions_are_taken_over(
    source_cluster: EmbeddedCluster, forgetful: EmbeddedCluster, source: Cluster, topic_name: str
) -> None:
    traffic = feed(source_cluster, forgetful, topic_name, 10_000)
    spec = translated(source, forgetful, f"{topic_name}-.*")
    copy_while_one_dies(spec, traffic, shares=False)
    assert sum(assert_in_order(spec, topic, 4) for topic in traffic) == 20_000


def test_what_the_target_forgets_of_the_producer_of_old_records_stops_nothing(
    source_cluster: EmbeddedCluster, forgetful: EmbeddedCluster, source: Cluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    create(forgetful, f"east.{topic_name}", 1, REMOTE)
    spec = translated(source, forgetful, topic_name)
    with Running(spec) as copying:
        for _ in range(3):
            fill(source_cluster, topic_name, 300, age=WEEK_MS)
            copying.settled_again()
            wait_until_forgotten(spec.target, f"east.{topic_name}")
    assert assert_in_order(spec, topic_name) == 900
