"""Where a copy with offsets of its own begins: as its flow declares, once; later runs go on where it stands."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.start import Start
from reconciler.model.tasks.status import PartitionState
from reconciler.replicator.driver import discovery
from tests.contract.replicator.commit.test_translated import make, translated
from tests.support.clusters.kafka import delete_records, grow, patient
from tests.support.replicator.copying import SECONDS, Running, all_running, at, code, copy, fill, log_end
from tests.support.replicator.translated import contents

FIRST = 1_700_000_000_000


def stamped(cluster: EmbeddedCluster, topic: str, records: int, first: int = 0) -> None:
    """Write batches of ten records, a second between two of them."""
    producer = patient(cluster, topic)
    for number in range(first, first + records):
        producer.produce(topic, value=b"%d" % number, timestamp=FIRST + 1_000 * number)
        if number % 10 == 9:
            assert producer.flush(SECONDS) == 0


@pytest.mark.parametrize(
    ("start", "first"),
    [
        (Start("timestamp", FIRST), 0),
        (Start("timestamp", FIRST + 54_001), 55),
        (Start("timestamp", FIRST + 100_000), 100),
        (Start("offsets", 0, (("TOPIC", (37,)),)), 37),
        (Start("offsets", 0, (("TOPIC", (100,)),)), 100),
        (Start("offsets", 0, (("other", (37,)),)), 0),
        (Start("latest"), 100),
    ],
    ids=["at the first", "at a time", "behind all", "at an offset", "at the end", "where nothing is named", "latest"],
)
def test_a_copy_begins_where_its_flow_says(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    *,
    start: Start,
    first: int,
) -> None:
    """Also in the middle of a batch; and what is written before the next run is not passed over."""
    make(source_cluster, target_cluster, [topic_name])
    stamped(source_cluster, topic_name, 100)
    named = tuple((topic.replace("TOPIC", topic_name), offsets) for topic, offsets in start.offsets)
    spec = translated(source, target, topic_name)
    spec = replace(spec, flow=replace(spec.flow, start=replace(start, offsets=named)))
    with Running(spec) as copying:
        copying.wait(lambda status: all_running(status.partitions) and at(status, topic_name).position == 100)
    stamped(source_cluster, topic_name, 20, 100)
    assert all_running(copy(replace(spec, run=f"{spec.run}-1")).status.partitions)
    assert contents(target, f"east.{topic_name}") == contents(source, topic_name)[first:]


@pytest.mark.parametrize("offset", [9, 101])
def test_an_offset_outside_the_log_parks_before_anything_is_written(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    offset: int,
) -> None:
    make(source_cluster, target_cluster, [topic_name])
    fill(source_cluster, topic_name, 100)
    delete_records(source_cluster, topic_name, 10)
    spec = translated(source, target, topic_name)
    start = Start("offsets", 0, ((topic_name, (offset,)),))
    spec = replace(spec, flow=replace(spec.flow, start=start))
    with Running(spec) as copying:
        status = copying.wait(lambda status: at(status, topic_name).state is PartitionState.PARKED)
        time.sleep(1)
    assert code(at(status, topic_name)) == "AB227"
    assert f"has offsets 10 to 100, and its copy would begin at {offset}" in str(at(status, topic_name).reason)
    assert log_end(target, f"east.{topic_name}") == 0


def test_partitions_that_are_added_while_nothing_runs_are_copied_from_their_begin(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    make(source_cluster, target_cluster, [topic_name])
    fill(source_cluster, topic_name, 100)
    spec = translated(source, target, topic_name)
    spec = replace(spec, flow=replace(spec.flow, start=Start("latest")))
    with Running(spec) as copying:
        copying.wait()
    for cluster, name in ((source_cluster, topic_name), (target_cluster, f"east.{topic_name}")):
        grow(cluster, name, 3)
    fill(source_cluster, topic_name, 30, partitions=3)
    # All at once: what the added ones say of themselves must not count for each other.
    assert all_running(copy(replace(spec, run=f"{spec.run}-1")).status.partitions)
    remote = f"east.{topic_name}"
    assert [len(contents(target, remote, number)) for number in range(3)] == [10, 10, 10]


def test_what_appears_after_the_latest_records_is_copied_from_its_begin(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    topics = old, new = f"{topic_name}-old", f"{topic_name}-new"
    make(source_cluster, target_cluster, topics)
    for topic in topics:
        fill(source_cluster, topic, 100)
    spec = translated(source, target, f"{topic_name}-.*")
    spec = replace(spec, flow=replace(spec.flow, start=Start("latest")))
    places = [place._replace(is_late=place.topic == new) for place in discovery.matching(spec)]
    with Running(spec, places) as copying:
        copying.wait()
    assert contents(target, f"east.{old}") == []
    assert contents(target, f"east.{new}") == contents(source, new)
