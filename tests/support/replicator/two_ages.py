"""Two topics of one flow at once, as brokers treat young and old records differently: fresh and week-old timestamps."""

from __future__ import annotations

from reconciler.embedded import EmbeddedCluster
from tests.support.clusters.kafka import create
from tests.support.clusters.traffic import WEEK_MS, Traffic
from tests.support.replicator.copying import REMOTE


def feed(source: EmbeddedCluster, target: EmbeddedCluster, name: str, records: int) -> dict[str, Traffic]:
    """Make two topics and what fills them, with fresh and with week-old timestamps."""
    for topic in (f"{name}-fresh", f"{name}-old"):
        create(source, topic, 4)
        create(target, f"east.{topic}", 4, REMOTE)
    return {
        topic: Traffic(source, topic, 4, records, backlog=records // 4, per_second=10_000, age_ms=age, codec=codec)
        for topic, age, codec in ((f"{name}-fresh", 0, "none"), (f"{name}-old", WEEK_MS, "lz4"))
    }
