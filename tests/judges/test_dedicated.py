"""Kafka's own scenarios of a dedicated MirrorMaker 2, by name: `DedicatedMirrorIntegrationTest` of Kafka 4.3."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conftest import MakeClusters
from tests.judges.mirroring import BACKUP, PRIMARY, MirrorMaker, Mirrors, awaited, produce, read
from tests.support.clusters.kafka import create, names

pytestmark = [pytest.mark.spark, pytest.mark.long]

NODES = 3


def mirrors(make_clusters: MakeClusters, folder: Path, topic_name: str, **settings: str) -> Mirrors:
    primary, backup = make_clusters(PRIMARY, BACKUP)
    return Mirrors(primary, backup, folder, topic_name[-40:].strip("-"), {"topics": "^test-topic-.*", **settings})


def carried(mirror: Mirrors, process: MirrorMaker, topic: str) -> None:
    """Make a topic while it runs, write to it, and wait until all is copied."""
    create(mirror.primary, topic)
    mirror.created(mirror.backup, f"primary.{topic}", process)
    produce(mirror.primary, topic, partitions=1)
    original = read(mirror.primary, topic)
    awaited(
        f"{topic} is copied",
        lambda: read(mirror.backup, f"primary.{topic}"),
        lambda found: found == original,
        process,
    )


def test_single_node_cluster(make_clusters: MakeClusters, tmp_path: Path, topic_name: str) -> None:
    """`testSingleNodeCluster`: a topic that is made later is copied."""
    settings = {"dedicated.mode.enable.internal.rest": "false", "backup->primary.emit.heartbeats.enabled": "false"}
    mirror = mirrors(make_clusters, tmp_path, topic_name, **settings)
    with mirror.running() as process:
        carried(mirror, process, "test-topic-1")


def test_cluster_with_emit_offset_disabled(make_clusters: MakeClusters, tmp_path: Path, topic_name: str) -> None:
    """`testClusterWithEmitOffsetDisabled`: records come without offset syncs."""
    mirror = mirrors(make_clusters, tmp_path, topic_name, **{"emit.offset-syncs.enabled": "false"})
    with mirror.running() as process:
        carried(mirror, process, "test-topic-1")
    assert not [name for name in (*names(mirror.primary), *names(mirror.backup)) if "offset-syncs" in name]


def test_multi_node_cluster(make_clusters: MakeClusters, tmp_path: Path, topic_name: str) -> None:
    """`testMultiNodeCluster`: three nodes share the work, and are replaced one by one with another configuration."""
    settings = {"backup.exactly.once.source.support": "enabled", "primary.consumer.isolation.level": "read_committed"}
    mirror = mirrors(make_clusters, tmp_path, topic_name, **settings)
    with ExitStack() as stack:
        nodes = [stack.enter_context(mirror.running()) for _ in range(NODES)]
        for number, process in enumerate(nodes):
            carried(mirror, process, f"test-topic-{number}")
        text = mirror.properties.read_text()
        mirror.properties.write_text(
            text.replace("refresh.topics.interval.seconds = 1", "refresh.topics.interval.seconds = 2")
        )
        for number, former in enumerate(nodes):
            former.terminate()
            former.wait(300)
            process = stack.enter_context(mirror.running())
            carried(mirror, process, f"test-topic-again-{number}")
