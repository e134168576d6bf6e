"""Six clusters in three data centres as MirrorMaker 2's own README has them: one file, a node in each data centre."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from operator import eq
from pathlib import Path

import pytest

from reconciler.embedded import EmbeddedCluster
from reconciler.state.status import StatusReader
from tests.conftest import MakeClusters
from tests.judges.mirroring import MirrorMaker, awaited, produce, read
from tests.support.clusters.kafka import create, declared
from tests.support.replicator.translated import Content

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(3_600)]

PLACES = ("west", "east", "north")
ALIASES = tuple(f"{place}-{number}" for place in PLACES for number in (1, 2))
PARTITIONS = 2
NAME = "xdcr"
PROPERTIES = """\
clusters: west-1, west-2, east-1, east-2, north-1, north-2
{addresses}
# active/active in west
west-1->west-2.enabled = true
west-2->west-1.enabled = true
# active/active in east
east-1->east-2.enabled = true
east-2->east-1.enabled = true
# active/active in north
north-1->north-2.enabled = true
north-2->north-1.enabled = true
# XDCR via west-1, east-1, north-1
west-1->east-1.enabled = true
west-1->north-1.enabled = true
east-1->west-1.enabled = true
east-1->north-1.enabled = true
north-1->west-1.enabled = true
north-1->east-1.enabled = true
# a single broker in each
replication.factor = 1
checkpoints.topic.replication.factor = 1
heartbeats.topic.replication.factor = 1
offset-syncs.topic.replication.factor = 1
"""
# Where a record has to arrive, by the cluster that it was written to: within the data centre, and in the others.
COPIES = {
    "west-1": {
        "west-2": "west-1.orders",
        "east-1": "west-1.orders",
        "north-1": "west-1.orders",
        "east-2": "east-1.west-1.orders",
        "north-2": "north-1.west-1.orders",
    },
    "east-2": {
        "east-1": "east-2.orders",
        "west-1": "east-1.east-2.orders",
        "north-1": "east-1.east-2.orders",
        "west-2": "west-1.east-1.east-2.orders",
        "north-2": "north-1.east-1.east-2.orders",
    },
}


class Node(MirrorMaker):
    """MirrorMaker 2 of one data centre: `--clusters` names those that are near."""

    def __init__(self, properties: Path, folder: Path, place: str) -> None:
        near = (f"{place}-1", f"{place}-2")
        self._begin(NAME, folder / place, "mirror-maker2", str(properties), "--name", NAME, "--clusters", *near)


def whole(cluster: EmbeddedCluster, topic: str) -> list[list[Content]]:
    return [read(cluster, topic, number) for number in range(PARTITIONS)]


def test_records_of_any_cluster_reach_all_others_and_each_node_writes_to_those_that_are_near(
    make_clusters: MakeClusters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    clusters = dict(zip(ALIASES, make_clusters(*ALIASES), strict=True))
    addresses = "\n".join(f"{alias}.bootstrap.servers = {one.bootstrap}" for alias, one in clusters.items())
    properties = tmp_path / f"{NAME}.properties"
    properties.write_text(PROPERTIES.format(addresses=addresses))
    for alias in COPIES:
        create(clusters[alias], "orders", PARTITIONS)
        produce(clusters[alias], "orders", PARTITIONS, each=500)
    with ExitStack() as stack:
        nodes = {place: Node(properties, tmp_path, place) for place in PLACES}
        for node in nodes.values():
            stack.callback(node.end)
        for origin, copies in COPIES.items():
            original = whole(clusters[origin], "orders")
            assert sum(map(len, original)) == PARTITIONS * 500
            for alias, copy in copies.items():
                awaited(
                    f"{copy} has all of {origin}",
                    partial(whole, clusters[alias], copy),
                    partial(eq, original),
                    nodes[alias.partition("-")[0]],
                )
        for alias, cluster in clusters.items():
            reader = StatusReader(declared(alias, cluster), NAME)
            try:
                runs = {one.run for one in reader.current()}
            finally:
                reader.close()
            pid = nodes[alias.partition("-")[0]].pid
            assert {run.rpartition("-")[2] for run in runs} == {str(pid)}, (alias, runs)
        for node in nodes.values():
            node.terminate()
        for node in nodes.values():
            assert node.wait(600) in (0, 143), node.said()[-3_000:]
