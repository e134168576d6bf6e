"""A race: brokers, one topic, and competitors that replicate it in turn.

Called by the command line and the tests. What is the same for all: the brokers (started once and warmed up), the source
topic (read once before each start, so that the page cache holds it), an empty remote topic, and how they are measured.
Every second round runs in the opposite order.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from bench.competitor import Competitor, Scene
from bench.load import Load, produce, read
from bench.segments import LogFacts, TopicLog
from bench.watch import Measurement, Watch
from reconciler.embedded import STEADY_JVM, ClusterOptions, EmbeddedCluster, running
from reconciler.model.errors import EnvironmentFault, Problem

TOPIC = "orders"
_ANSWER_SECONDS = 30
_WARM_UP_RECORDS = 4_000_000
_BROKER = {
    # Kafka's own defaults again; embedded clusters have fewer threads.
    "num.network.threads": "3",
    "num.io.threads": "8",
    # A remote topic gives its space back before the next one grows.
    "log.segment.delete.delay.ms": "1000",
}


@dataclass(frozen=True)
class Entry:
    """One competitor and what was measured, run by run."""

    competitor: Competitor
    measurements: tuple[Measurement, ...]


@dataclass(frozen=True)
class Result:
    """A race that is over.

    Attributes:
        load: what was produced.
        original: what the source's log holds of it.
        entries: the competitors in the order they were given.
        load_before: the machine's load average (1 minute) when the race began.
    """

    load: Load
    original: LogFacts
    entries: tuple[Entry, ...]
    load_before: float


def race(load: Load, competitors: Sequence[Competitor], runs: int, say: Callable[[str], None]) -> Result:
    """Let competitors replicate one topic in turn, `runs` times, and return what was measured.

    Args:
        load: the topic.
        competitors: who takes part; no two of one name.
        runs: how often each starts.
        say: called with a line of progress.

    Raises:
        EnvironmentFault: a cluster or a competitor does not do its part.
    """
    load_before = os.getloadavg()[0]
    options = ClusterOptions(jvm=STEADY_JVM, overrides=_BROKER)
    measured: dict[str, list[Measurement]] = {competitor.name: [] for competitor in competitors}
    with (
        tempfile.TemporaryDirectory(prefix="anabranch-race-") as scratch,
        running(EmbeddedCluster("source", options), EmbeddedCluster("target", options)) as (source, target),
    ):
        original = _fill(source, load, say)
        _warm_up(source, target, load)
        for number in range(1, runs + 1):
            for competitor in competitors if number % 2 else tuple(reversed(competitors)):
                folder = Path(scratch) / f"{competitor.name}-{number}"
                folder.mkdir()
                scene = Scene(source, target, f"{competitor.name}-{number}", TOPIC, load.codec, folder)
                say(f"run {number} of {runs}: {competitor.title}")
                measurement = _one(competitor, scene, load, original)
                say(_in_short(measurement))
                measured[competitor.name].append(measurement)
    entries = tuple(Entry(competitor, tuple(measured[competitor.name])) for competitor in competitors)
    return Result(load, original, entries, load_before)


def _fill(source: EmbeddedCluster, load: Load, say: Callable[[str], None]) -> LogFacts:
    """Make the source topic and return what its log holds."""
    _create(source, TOPIC, load)
    began = time.monotonic()
    produce(source.client_config(), TOPIC, load)
    log = TopicLog(source.broker().data, TOPIC, load.partitions)
    facts = log.advance()
    log.close()
    if facts.records != load.records:
        message = f"produced {load.records} records, but the log holds {facts.records}"
        raise EnvironmentFault(Problem("AB351", f"source topic {TOPIC}", message, "run it again"))
    say(
        f"produced {facts.records:,} records, {facts.bytes / 1e9:.2f} GB, in {time.monotonic() - began:.0f} s: "
        f"{facts.batches:,} batches of {facts.batch_records:.0f} records, {facts.batch_bytes / 1024:.0f} KiB"
    )
    return facts


def _warm_up(source: EmbeddedCluster, target: EmbeddedCluster, load: Load) -> None:
    """Let the brokers compile what they will do: cold, they take three times the CPU, and that of the first start.

    Checking each record that is produced is what gets faster for longest, so the number of records counts.
    """
    some = replace(load, records=min(load.records, _WARM_UP_RECORDS))
    read(source.client_config(), TOPIC, some)
    _create(target, TOPIC, some)
    produce(target.client_config(), TOPIC, some)
    _remove(target, TOPIC)


def _one(competitor: Competitor, scene: Scene, load: Load, original: LogFacts) -> Measurement:
    """Start a competitor, measure it, end it and remove what it wrote."""
    _settle(scene, load)
    competitor.prepare(scene)
    copy = TopicLog(scene.target.broker().data, scene.remote, load.partitions)
    pids = [pid for cluster in (scene.source, scene.target) if (pid := cluster.broker().pid) is not None]
    process = competitor.start(scene)
    try:
        measurement = Watch(scene, process, pids, original, copy).measure()
        competitor.finish(scene, process)
        return measurement
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        copy.close()
        _remove(scene.target, scene.remote)


def _settle(scene: Scene, load: Load) -> None:
    """Give everyone the same start: nothing left to write to disk, the source in the page cache."""
    os.sync()
    log = TopicLog(scene.source.broker().data, scene.topic, load.partitions)
    log.warm()
    log.close()


def _create(cluster: EmbeddedCluster, topic: str, load: Load) -> None:
    admin = _admin(cluster)
    admin.create_topics([NewTopic(topic, load.partitions, 1)])[topic].result(_ANSWER_SECONDS)


def _remove(cluster: EmbeddedCluster, topic: str) -> None:
    """Delete a topic; one that is not there is the end of a start that failed."""
    admin = _admin(cluster)
    try:
        admin.delete_topics([topic])[topic].result(_ANSWER_SECONDS)
    except KafkaException:
        return


def _admin(cluster: EmbeddedCluster) -> AdminClient:
    # librdkafka remarks on its own end, on stderr, among the progress.
    return AdminClient({**cluster.client_config(), "log_level": 2})


def _in_short(one: Measurement) -> str:
    return (
        f"  {one.records_per_second:,.0f} records/s, {one.mb_per_second:.0f} MB/s, {one.cpu_per_gb:.1f} CPU s/GB; "
        f"start-up {one.startup:.1f} s and {one.startup_cpu:.1f} CPU s"
    )
