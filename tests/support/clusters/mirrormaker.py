"""A real MirrorMaker, 2 or 1, beside a test: one flow between two clusters, with everything that it writes."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.competitors.base import end
from bench.competitors.mm2 import fetch_mirror_maker
from reconciler.embedded import EmbeddedCluster
from reconciler.embedded.jars import class_path, java_executable
from reconciler.embedded.launch import start_child
from reconciler.embedded.settings import QUICK_JVM, logging_properties
from tests.support.clusters.former import jars_of

_MAIN = "org.apache.kafka.connect.mirror.MirrorMaker"
_MAIN_OF_1 = "kafka.tools.MirrorMaker"
FORMER = "3.9.1"
"""The last of Kafka's versions 3, and of those with MirrorMaker 1."""
_END_SECONDS = 120.0


@dataclass(frozen=True)
class Make:
    """Which MirrorMaker 2 it is.

    Attributes:
        version: of Kafka; empty for the one that is embedded.
        exactly_once: whether it writes in transactions.
        ending: the signal that ends it.
    """

    version: str = ""
    exactly_once: bool = False
    ending: signal.Signals = signal.SIGTERM


@contextmanager
def mirrormaker(
    source: EmbeddedCluster,
    target: EmbeddedCluster,
    aliases: tuple[str, str],
    topics: str,
    folder: Path,
    make: Make = Make(),
) -> Iterator[Path]:
    """Run MirrorMaker 2 in its dedicated mode, and yield its log.

    Args:
        source: where the originals are.
        target: where it writes.
        aliases: how it calls the two.
        topics: what it copies, as in its own configuration.
        folder: for its configuration and log.
        make: which one.
    """
    properties = _properties(source, target, aliases, topics)
    if make.exactly_once:
        properties[f"{aliases[1]}.exactly.once.source.support"] = "enabled"
        properties[f"{aliases[0]}.consumer.isolation.level"] = "read_committed"
    jars = jars_of(make.version, "connect-mirror") if make.version else fetch_mirror_maker()
    command = [_MAIN, _written(folder / "mm2.properties", properties)]
    with _running(jars, command, folder / "mm2.log", make.ending) as log:
        yield log


@contextmanager
def mirrormaker1(
    source: EmbeddedCluster, target: EmbeddedCluster, group: str, topics: str, folder: Path, ending: signal.Signals
) -> Iterator[tuple[Path, Path]]:
    """Run MirrorMaker 1, and yield the files of its consumer and its producer.

    Args:
        source: where the originals are.
        target: where it writes.
        group: of its consumer.
        topics: what it copies, as a regular expression.
        folder: for its configuration and log.
        ending: the signal that ends it.
    """
    reading = {"bootstrap.servers": source.bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    writing = {"bootstrap.servers": target.bootstrap, "acks": "all"}
    consumer, producer = folder / "consumer.properties", folder / "producer.properties"
    command = [_MAIN_OF_1, "--consumer.config", _written(consumer, reading)]
    command += ["--producer.config", _written(producer, writing), "--include", topics]
    # By default it notes nothing for a minute.
    command += ["--offset.commit.interval.ms", "1000"]
    with _running(jars_of(FORMER), command, folder / "mm1.log", ending):
        yield consumer, producer


def _written(path: Path, properties: Mapping[str, str]) -> str:
    path.write_text("".join(f"{key} = {value}\n" for key, value in properties.items()))
    return str(path)


@contextmanager
def _running(jars: Path, command: Sequence[str], log: Path, ending: signal.Signals) -> Iterator[Path]:
    logging = log.with_name("log4j2.properties")
    logging.write_text(logging_properties())
    java = [str(java_executable()), *QUICK_JVM, f"-Dlog4j2.configurationFile={logging}", "-cp", class_path(jars)]
    process = start_child([*java, *command], log)
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
