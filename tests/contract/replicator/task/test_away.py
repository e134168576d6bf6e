"""A cluster that is away for a while: attempts to reach it leave nothing behind, and the task goes on afterwards."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.model.tasks.status import PartitionState
from tests.conftest import MakeClusters
from tests.support.clusters.kafka import create, declared
from tests.support.replicator.copying import REMOTE, Running, fill, identical, spec_of

AWAY_SECONDS = 20.0
# Each client of librdkafka, and each connection of the wire's, may be about to be made anew at the same time.
_MORE = 12


def open_files() -> dict[str, int]:
    """Return how many files this process has open, by what they are."""
    found: dict[str, int] = {}
    for one in Path("/proc/self/fd").iterdir():
        try:
            kind = str(one.readlink()).partition(":")[0]
        except OSError:
            continue
        found[kind] = found.get(kind, 0) + 1
    return found


@pytest.fixture
def no_collections() -> Iterator[None]:
    """Whatever nobody refers to any more is gone at once, or stays: a worker looks for cycles seldom."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collections")
@pytest.mark.parametrize("away", [pytest.param("source", marks=pytest.mark.long), "target"])
def test_attempts_to_reach_a_cluster_leave_no_files_open(
    away: str, make_clusters: MakeClusters, source_cluster: EmbeddedCluster, source: Cluster, topic_name: str
) -> None:
    (other,) = make_clusters("away")
    ends = {"source": (other, source_cluster), "target": (source_cluster, other)}[away]
    create(ends[0], topic_name)
    create(ends[1], f"east.{topic_name}", 1, REMOTE)
    fill(ends[0], topic_name, 100)
    spec = spec_of(declared("east", ends[0]), declared("west", ends[1]), f"{topic_name}")
    with Running(spec) as running:
        running.wait()
        before, threads = open_files(), threading.active_count()
        other.kill_broker()
        until = time.monotonic() + AWAY_SECONDS
        most = 0
        while time.monotonic() < until:
            time.sleep(0.5)
            most = max(most, sum(open_files().values()))
        assert most <= sum(before.values()) + _MORE, (before, open_files())
        assert threading.active_count() <= threads + 2
        other.start_broker()
        fill(ends[0], topic_name, 100)
        running.wait(
            lambda status: all(one.state is PartitionState.RUNNING and one.position == 200 for one in status.partitions)
        )
    assert identical(spec, topic_name) == 200
