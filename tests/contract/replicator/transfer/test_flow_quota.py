"""A flow's own quota: what it lets through in a second, by the task's own pace."""

from __future__ import annotations

import time
from dataclasses import replace

from reconciler.embedded import EmbeddedCluster
from tests.support.clusters.kafka import create, declared
from tests.support.replicator.copying import REMOTE, Running, assert_counted, fill, identical, spec_of

RECORDS, PARTITIONS = 12_000, 4
BYTES_PER_SECOND = 400_000


def test_a_quota_slows_a_copy_down(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    source, target = declared("east", source_cluster), declared("west", target_cluster)
    create(source_cluster, topic_name, PARTITIONS)
    create(target_cluster, f"east.{topic_name}", PARTITIONS, REMOTE)
    fill(source_cluster, topic_name, RECORDS, PARTITIONS)
    spec = spec_of(source, target, topic_name)
    spec = replace(spec, flow=replace(spec.flow, quota=BYTES_PER_SECOND))
    began = time.monotonic()
    with Running(spec) as running:
        copied = running.wait()
    seconds = time.monotonic() - began
    assert_counted(copied.records, RECORDS, copied)
    # A slow machine makes it longer, nothing makes it shorter.
    assert seconds > 0.7 * copied.bytes / BYTES_PER_SECOND > 1
    assert identical(spec, topic_name) == RECORDS
