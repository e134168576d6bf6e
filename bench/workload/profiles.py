"""The profiles of a race: what the topic looks like and on what clusters it is replicated.

The command line chooses from them. All competitors are tuned in the same way in each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bench.workload.load import Load

_SMALL_BATCH = 16 * 1024


@dataclass(frozen=True)
class Profile:
    """One kind of race.

    Attributes:
        name: as on the command line.
        title: for the report.
        load: the topic, with the number of records that final figures need.
        nodes: nodes of each cluster, and replicas of each topic.
        compacted: whether the broker's cleaner has been through the topic: a copy cannot have its offsets then.
        secured: whether clients of both clusters connect with TLS and log in with SCRAM-SHA-512.
        line: seconds that a packet takes between one of the clusters and all other processes, one way.
        far: which of them.
    """

    name: str
    title: str
    load: Load
    nodes: int = 1
    compacted: bool = False
    secured: bool = False
    line: float = 0.0
    far: Literal["source", "target"] = "source"

    @property
    def has_floor(self) -> bool:
        """Whether a follower's speed is a floor: a follower copies one replica, speaks plaintext, and stands near."""
        return self.nodes == 1 and not self.secured and not self.line


PROFILES = {
    profile.name: profile
    for profile in (
        Profile("plain250", "records of 250 bytes, uncompressed, full batches", Load(16_000_000)),
        Profile("lz4", "records of 100 bytes, lz4, full batches", Load(40_000_000, size=100, codec="lz4")),
        Profile("tiny", "batches of one record each, 250 bytes", Load(12_500_000, alone=True)),
        Profile(
            "16k", "records of 250 bytes, uncompressed, batches of 16 KiB", Load(16_000_000, batch_bytes=_SMALL_BATCH)
        ),
        Profile("tiny-lz4", "batches of one record each, 250 bytes, lz4", Load(4_000_000, codec="lz4", alone=True)),
        Profile(
            "16k-lz4",
            "records of 250 bytes, lz4, batches of 16 KiB before compression",
            Load(16_000_000, codec="lz4", batch_bytes=_SMALL_BATCH),
        ),
        Profile(
            "rf3",
            "three nodes a cluster, replication factor 3, min.insync.replicas 2, batches of 16 KiB",
            Load(4_000_000, batch_bytes=_SMALL_BATCH),
            nodes=3,
        ),
        Profile(
            "rf3-lz4",
            "three nodes a cluster, replication factor 3, min.insync.replicas 2, lz4, batches of 16 KiB",
            Load(4_000_000, codec="lz4", batch_bytes=_SMALL_BATCH),
            nodes=3,
        ),
        Profile(
            "compacted",
            "records of 250 bytes, uncompressed, of which compaction took every second one",
            Load(16_000_000, overwritten=True),
            compacted=True,
        ),
        Profile(
            "secured",
            "records of 250 bytes, uncompressed, full batches; TLS and SCRAM-SHA-512 on both sides",
            Load(16_000_000),
            secured=True,
        ),
        Profile(
            "far",
            "records of 250 bytes, uncompressed, full batches; 100 ms of round trip to the source",
            Load(4_000_000),
            line=0.05,
        ),
        Profile(
            "far-16k-lz4",
            "records of 250 bytes, lz4, batches of 16 KiB before compression; 100 ms of round trip to the source",
            Load(4_000_000, codec="lz4", batch_bytes=_SMALL_BATCH),
            line=0.05,
        ),
        Profile(
            "far-target",
            "records of 250 bytes, uncompressed, batches of 16 KiB; 100 ms of round trip to the target",
            Load(4_000_000, batch_bytes=_SMALL_BATCH),
            line=0.05,
            far="target",
        ),
    )
}
