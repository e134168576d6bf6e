"""A real MirrorMaker 2 beside a test: one flow between two clusters, with everything that it writes for consumers."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.competitors.base import end
from bench.competitors.mm2 import fetch_mirror_maker
from reconciler.embedded import EmbeddedCluster
from reconciler.embedded.jars import class_path, java_executable
from reconciler.embedded.launch import start_child
from reconciler.embedded.settings import QUICK_JVM, logging_properties

_MAIN = "org.apache.kafka.connect.mirror.MirrorMaker"
_END_SECONDS = 120.0


@contextmanager
def mirrormaker(
    source: EmbeddedCluster,
    target: EmbeddedCluster,
    aliases: tuple[str, str],
    topics: str,
    folder: Path,
    ending: signal.Signals = signal.SIGTERM,
) -> Iterator[Path]:
    """Run MirrorMaker 2 in its dedicated mode, and yield its log.

    Args:
        source: where the originals are.
        target: where it writes.
        aliases: how it calls the two.
        topics: what it copies, as in its own configuration.
        folder: for its configuration and log.
        ending: the signal that ends it.
    """
    (folder / "mm2.properties").write_text(
        "".join(f"{key} = {value}\n" for key, value in _properties(source, target, aliases, topics).items())
    )
    (folder / "log4j2.properties").write_text(logging_properties())
    command = [str(java_executable()), *QUICK_JVM, f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}"]
    command += ["-cp", class_path(fetch_mirror_maker()), _MAIN, str(folder / "mm2.properties")]
    log = folder / "mm2.log"
    process = start_child(command, log)
    try:
        yield log
    finally:
        end(process, ending, _END_SECONDS)


def _properties(
    source: EmbeddedCluster, target: EmbeddedCluster, aliases: tuple[str, str], topics: str
) -> dict[str, str]:
    first, second = aliases
    flow = f"{first}->{second}"
    often = ("emit.checkpoints", "emit.heartbeats", "refresh.groups", "refresh.topics")
    internal = ("checkpoints.topic", "heartbeats.topic", "offset-syncs.topic", "offset.storage", "status.storage")
    return {
        "clusters": f"{first},{second}",
        f"{first}.bootstrap.servers": source.bootstrap,
        f"{second}.bootstrap.servers": target.bootstrap,
        f"{flow}.enabled": "true",
        f"{flow}.topics": topics,
        f"{flow}.groups": ".*",
        "tasks.max": "1",
        # A sync for each record, so that it translates as well as it can.
        "offset.lag.max": "0",
        **{f"{name}.interval.seconds": "1" for name in often},
        "sync.topic.acls.enabled": "false",
        "replication.factor": "1",
        "config.storage.replication.factor": "1",
        **{f"{name}.replication.factor": "1" for name in internal},
        # Few internal partitions to make at the start, and syncs that wait are sent soon.
        "offset.storage.partitions": "1",
        "status.storage.partitions": "1",
        **{f"{alias}.offset.flush.interval.ms": "1000" for alias in aliases},
        # By default it looks through every class of every jar, four times.
        **{f"{alias}.plugin.discovery": "service_load" for alias in aliases},
    }
