"""Several sources into one topic, whatever dies: each one's records are there once, complete and in order."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from reconciler.embedded import EmbeddedCluster, running
from reconciler.model.cluster import Cluster
from tests.contract.kafka import create, declared
from tests.contract.test_task_translated import Seen, records
from tests.integration.command import anabranch
from tests.support.replicating import Replicator, wait_until_copying
from tests.support.traffic import WEEK_MS, Traffic

PARTITIONS = 4
RECORDS = 120_000
END_SECONDS = 90
DECLARATION = """\
version: 1
name: {name}
clusters:
  east: {{bootstrap: ["{east}"]}}
  north: {{bootstrap: ["{north}"]}}
  west: {{bootstrap: ["{west}"]}}
policy: {{type: identity}}
replication:
  - {{aggregation: {{from: [east, north], to: west}}, topics: {{include: ["{name}-.*"]}}}}
"""


@pytest.fixture(scope="module")
def north() -> Iterator[EmbeddedCluster]:
    with running(EmbeddedCluster("north")) as (cluster,):
        yield cluster


def check(sources: Sequence[Cluster], target: Cluster, topic: str) -> None:
    """Assert that a copy holds the records of each source, told apart by their age."""
    border = int(time.time() * 1000) - WEEK_MS // 2
    for number in range(PARTITIONS):
        ours = records(target, topic, number)
        old, fresh = _divided(ours, border)
        for theirs, mine in zip(sources, (fresh, old), strict=True):
            assert mine == records(theirs, topic, number)


def _divided(found: Sequence[Seen], border: int) -> tuple[list[Seen], list[Seen]]:
    return [one for one in found if one[3] < border], [one for one in found if one[3] >= border]


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("kills", [pytest.param(3, id="three"), pytest.param(10, id="ten", marks=pytest.mark.long)])
def test_two_sources_share_a_topic_through_kills(
    tmp_path: Path,
    source_cluster: EmbeddedCluster,
    north: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    topic_name: str,
    kills: int,
) -> None:
    name = f"t{topic_name[-8:]}"
    shared, alone = f"{name}-shared", f"{name}-alone"
    for cluster in (source_cluster, north):
        create(cluster, shared, PARTITIONS)
    create(source_cluster, alone, PARTITIONS)
    file = tmp_path / "topology.yaml"
    file.write_text(
        DECLARATION.format(
            name=name, east=source_cluster.bootstrap, north=north.bootstrap, west=target_cluster.bootstrap
        )
    )
    applied = anabranch("apply", file, "--yes")
    assert applied.code == 0, applied.stderr
    traffic = [
        Traffic(source_cluster, shared, PARTITIONS, RECORDS, 40_000, per_second=2_000),
        Traffic(north, shared, PARTITIONS, RECORDS, 40_000, per_second=2_000, age_ms=WEEK_MS, codec="lz4"),
        Traffic(source_cluster, alone, PARTITIONS, RECORDS // 4, 10_000, per_second=500),
    ]
    for thread in traffic:
        thread.start()
    seed = int.from_bytes(os.urandom(4), "big")
    print(f"the kills' moments come of seed {seed}")
    chance = random.Random(seed)
    target = declared("west", target_cluster)
    running_now = Replicator(file, tmp_path)
    try:
        for number in range(kills):
            wait_until_copying(target, running_now, time.time())
            time.sleep(chance.uniform(0.1, 2.0))
            if number % 2 == 0:
                running_now.kill_worker()
            else:
                running_now.kill_driver()
                shutil.rmtree(tmp_path / "state")
                running_now = Replicator(file, tmp_path)
        for thread in traffic:
            thread.finish()
    finally:
        running_now.end()
    last = Replicator(file, tmp_path, "--until-caught-up")
    try:
        assert last.wait(400) == 0, last.said()
    finally:
        last.end()
    check([declared("east", source_cluster), declared("north", north)], target, shared)
    for number in range(PARTITIONS):
        assert records(target, alone, number) == records(declared("east", source_cluster), alone, number)
