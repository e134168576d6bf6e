"""Brokers that cost less of the two processors: while they begin, and while they stand there and wait.

A broker that begins loads and checks five thousand classes, and the tests begin more than a hundred brokers: what Java
makes of Kafka's classes is kept in an archive beside its jars. The first process that needs it makes it, with a broker
that does a little of everything. Of a dozen brokers that stand idle, each writes two records a second that say nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from reconciler.embedded import ClusterOptions, EmbeddedCluster
from reconciler.embedded.broker import Broker
from reconciler.embedded.jars import cache_folder, fetch_kafka, java_executable
from reconciler.embedded.settings import QUICK_JVM

SECONDS = 600
_start, _configure = Broker.start, Broker.configure
_SILENT = "metadata.max.idle.interval.ms=0\n"
# What the room says where a test says nothing, and Kafka's own.
_OFTEN, _SELDOM = "broker.heartbeat.interval.ms=1000\n", "broker.heartbeat.interval.ms=2000\n"


def use() -> None:
    """Let every broker of this process be silent, and begin with the archive where it has the usual options."""
    Broker.start = _start_archived  # type: ignore[method-assign]
    Broker.configure = _configure_silent  # type: ignore[method-assign]


def _configure_silent(self: Broker, properties: str) -> None:
    _configure(self, properties.replace(_OFTEN, _SELDOM) + _SILENT)


def _start_archived(self: Broker, cluster_id: str, jvm: tuple[str, ...]) -> None:
    is_usual = jvm == QUICK_JVM and self.jars is None
    _start(self, cluster_id, (*jvm, f"-XX:SharedArchiveFile={_archive()}") if is_usual else jvm)


@functools.cache
def _archive() -> Path:
    """Return the archive's path; where Java could not make it, nothing is there, and Java does without."""
    jars = fetch_kafka()
    # Another Java, or other options, need another archive.
    told = subprocess.run([java_executable(), *QUICK_JVM, "-version"], capture_output=True, check=True).stderr
    path = cache_folder() / f"{jars.name}-{hashlib.sha256(told).hexdigest()[:12]}.jsa"
    with locked(path.with_suffix(".lock")):
        if not path.exists():
            made = path.with_suffix(".new")
            made.unlink(missing_ok=True)
            jvm = (*QUICK_JVM, f"-XX:ArchiveClassesAtExit={made}")
            with EmbeddedCluster("archived", ClusterOptions(jvm=jvm, stop_seconds=SECONDS)) as cluster:
                _work(cluster)
            with contextlib.suppress(FileNotFoundError):
                made.rename(path)
    return path


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock among processes for the length of a block."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _work(cluster: EmbeddedCluster) -> None:
    """Make a topic and write a transaction to it: what is loaded then is in the archive, too."""
    settings = cluster.client_config() | {"log_level": "2"}
    client = AdminClient(settings)
    client.create_topics([NewTopic("archived")])["archived"].result(SECONDS)
    producer = Producer(settings | {"transactional.id": "archived"})
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    producer.produce("archived", b"a record")
    producer.commit_transaction(SECONDS)
