"""Kafka's own Java client for what MirrorMaker 2 writes, asked by a small program, and ours asked the same."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from reconciler.client import MirrorClient
from reconciler.embedded import EmbeddedCluster
from reconciler.embedded.jars import class_path, fetch_kafka, java_executable
from reconciler.model.names.selection import is_internal

PROGRAM = Path(__file__).parent / "java" / "ReadMirror.java"
IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
_SECONDS = 600


class JavaFailed(AssertionError):
    """The program has ended with an exception; its text is what it said of it."""


def java_answers(
    cluster: EmbeddedCluster, source: str, group: str, policy_class: str = "", separator: str = "."
) -> dict[str, Any]:
    """Return what Kafka's client answers.

    Raises:
        JavaFailed: it has raised an exception.
    """
    jars = fetch_kafka("connect-mirror-client")
    # Quickly started, and it logs what it leaves out.
    command = [str(java_executable()), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-cp"]
    command += [class_path(jars), str(PROGRAM), cluster.bootstrap, source, group, policy_class, separator]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    if ended.returncode != 0:
        raise JavaFailed(ended.stderr[-3000:])
    answers: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    # It takes our own state, which other tests may have left there, for copies from `anabranch-owned` and the like.
    answers["remoteTopics"] = [name for name in answers["remoteTopics"] if not is_internal(name)]
    return answers


def our_answers(client: MirrorClient, source: str, group: str) -> dict[str, Any]:
    """Return what our client answers to the same questions, in the same words."""
    offsets = [[at.topic, at.partition, at.offset, at.metadata] for at in client.remote_consumer_offsets(group, source)]
    ways = [*client.upstream_clusters(), "nowhere"]
    return {
        "translateOffsets": offsets,
        "remoteConsumerOffsets": offsets,
        "checkpointTopics": sorted(client.checkpoint_topics()),
        "heartbeatTopics": sorted(client.heartbeat_topics()),
        "upstreamClusters": sorted(client.upstream_clusters()),
        "remoteTopics": sorted(client.remote_topics()),
        "remoteTopicsOfSource": sorted(client.remote_topics(source)),
        "replicationHops": {cluster: client.replication_hops(cluster) for cluster in ways},
        "replicationHopsByUtils": client.replication_hops(source),
    }
