"""A race: brokers, one topic, and competitors that replicate it in turn.

Called by the command line and the tests. What is the same for all: the brokers (started once and warmed up), the source
topic (read once before each start, so that the page cache holds it), an empty remote topic, and how they are measured.
Every second round runs in the opposite order.
"""

from __future__ import annotations

import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from bench.competitors.base import Competitor, Scene, alias_of
from bench.competitors.follower import FOLLOWER, Follower
from bench.instruments.line import FAR, NEAR, Line
from bench.instruments.reserve import Reserve
from bench.instruments.segments import LogFacts, TopicLog
from bench.instruments.watch import Measurement, Watch
from bench.workload import compaction
from bench.workload.load import Load, produce, read
from bench.workload.plant import plant
from bench.workload.profiles import Profile
from bench.workload.topics import create, remove
from reconciler.embedded import STEADY_JVM, ClusterOptions, EmbeddedCluster, running
from reconciler.model.base.errors import EnvironmentFault, Problem

TOPIC = "orders"
_USER = "bench"
_WARM_UP_RECORDS = 8_000_000
_REPLICAS_SECONDS = 30.0
# Gigabytes of one-record batches are checked at the start after they were planted.
_RECOVERY_SECONDS = 300.0
_REPLICAS_PAUSE = 0.1
_BROKER = {
    # Kafka's own defaults again; embedded clusters have fewer threads.
    "num.network.threads": "3",
    "num.io.threads": "8",
    # A remote topic gives its space back before the next one grows.
    "log.segment.delete.delay.ms": "1000",
}

_LONG_LINE = {"socket.send.buffer.bytes": "-1", "socket.receive.buffer.bytes": "-1"}


@dataclass(frozen=True)
class Entry:
    """One competitor and what was measured, run by run."""

    competitor: Competitor
    measurements: tuple[Measurement, ...]


@dataclass(frozen=True)
class Result:
    """A race that is over.

    Attributes:
        profile: the topic and the clusters.
        original: what the source's log holds of it.
        entries: the competitors in the order they were given.
        load_before: the machine's load average (1 minute) when the race began.
    """

    profile: Profile
    original: LogFacts
    entries: tuple[Entry, ...]
    load_before: float


def race(profile: Profile, competitors: Sequence[Competitor], runs: int, say: Callable[[str], None]) -> Result:
    """Let competitors replicate one topic in turn, `runs` times, and return what was measured.

    Args:
        profile: the topic and the clusters.
        competitors: who takes part; no two of one name.
        runs: how often each starts.
        say: called with a line of progress.

    Raises:
        EnvironmentFault: a cluster or a competitor does not do its part, or a copy is not the original.
    """
    load_before = os.getloadavg()[0]
    load = profile.load
    line = Line() if profile.line else None
    measured: dict[str, list[Measurement]] = {competitor.name: [] for competitor in competitors}
    with (
        tempfile.TemporaryDirectory(prefix="anabranch-race-") as scratch,
        line or nullcontext(),
        running(*_clusters(profile, competitors)) as (source, target),
    ):
        original = _fill(source, profile, say)
        _warm_up(source, target, profile, original)
        if line is not None:
            line.take(profile.line)
        for number, competitor in _starts(competitors, runs):
            alias = alias_of(competitor.name, number)
            folder = Path(scratch) / alias
            folder.mkdir()
            scene = Scene(source, target, alias, TOPIC, load, folder)
            which = f"run {number} of {runs}" if number else "a start that does not count"
            say(f"{profile.name}, {which}: {competitor.title}")
            measurement = _one(competitor, scene, original, [] if line is None else [line.pid])
            say(_in_short(measurement))
            if line is not None:
                say(f"  the line has taken {line.cpu:.1f} CPU s until now")
            if number:
                measured[competitor.name].append(measurement)
    entries = tuple(Entry(competitor, tuple(measured[competitor.name])) for competitor in competitors)
    return Result(profile, original, entries, load_before)


def _starts(competitors: Sequence[Competitor], runs: int) -> Iterator[tuple[int, Competitor]]:
    """Yield who starts next, and in which run.

    Whatever was done to warm the machine up, who came first took twice the CPU of its next start, and the brokers with
    it; and what one asks of the brokers makes them compile anew what others had asked before, for a third of both
    processors and for as long as a quick copy takes. So everybody starts once for nothing, in run 0, where it is worth
    comparing runs at all.
    """
    for number in range(0 if runs > 1 else 1, runs + 1):
        for competitor in competitors if number % 2 else reversed(competitors):
            yield number, competitor


def _clusters(profile: Profile, competitors: Sequence[Competitor]) -> tuple[EmbeddedCluster, EmbeddedCluster]:
    in_sync = {"min.insync.replicas": str(min(2, profile.nodes))}
    cleaner = compaction.EAGER_BROKER if profile.compacted else {}
    options = ClusterOptions(
        nodes=profile.nodes, jvm=STEADY_JVM, overrides=_BROKER | in_sync | cleaner, start_seconds=_RECOVERY_SECONDS
    )
    if profile.secured:
        options = replace(options, users={_USER: secrets.token_hex(16)}, mechanisms=("SCRAM-SHA-512",), tls=True)
    # A follower takes part on a node of its own, which is there, and idle, while the others run.
    nodes = max(profile.nodes, FOLLOWER if any(isinstance(one, Follower) for one in competitors) else 1)
    both = {"source": replace(options, nodes=nodes), "target": options}
    if profile.line:
        # By default the kernel's buffers of a connection hold 100 KiB for Kafka, whatever the line.
        overrides = {**options.overrides, **_LONG_LINE}
        both[profile.far] = replace(both[profile.far], listen=NEAR, told=FAR, overrides=overrides)
    return EmbeddedCluster("source", both["source"]), EmbeddedCluster("target", both["target"])


def _fill(source: EmbeddedCluster, profile: Profile, say: Callable[[str], None]) -> LogFacts:
    """Make the source topic and return what its log holds."""
    load = profile.load
    create(source, TOPIC, load.partitions, profile.nodes, compaction.COMPACTED if profile.compacted else None)
    began = time.monotonic()
    if load.alone:
        plant(source, TOPIC, load)
    else:
        produce(source.client_config(), TOPIC, load)
    if profile.compacted:
        compaction.finish(source, TOPIC, load.partitions)
    facts = _await_records(source, load)
    if (facts.records < load.records) != profile.compacted:
        message = f"produced {load.records} records, but the log holds {facts.records}"
        raise EnvironmentFault(Problem("AB351", f"source topic {TOPIC}", message, "run it again"))
    say(
        f"produced {load.records:,} records in {time.monotonic() - began:.0f} s; the log has {facts.records:,}, "
        f"{facts.bytes / 1e9:.2f} GB: {facts.batches:,} batches of {facts.batch_records:.0f} records, "
        f"{facts.batch_bytes / 1024:.0f} KiB"
    )
    return facts


def _await_records(source: EmbeddedCluster, load: Load) -> LogFacts:
    """Return what the log holds, after a while for node 1, which may be a follower, to have the last records."""
    log, deadline = TopicLog(source.broker().data, TOPIC, load.partitions), time.monotonic() + _REPLICAS_SECONDS
    facts = log.advance()
    while facts.records < load.records and not load.overwritten and time.monotonic() < deadline:
        time.sleep(_REPLICAS_PAUSE)
        facts = log.advance()
    log.close()
    return facts


def _warm_up(source: EmbeddedCluster, target: EmbeddedCluster, profile: Profile, original: LogFacts) -> None:
    """Let the brokers compile what they will do: cold, they take three times the CPU, and that of the first start.

    Checking each record that is produced is what gets faster for longest, so the number of records counts.
    """
    load = profile.load
    some = replace(load, records=min(original.records, _WARM_UP_RECORDS), alone=False)
    read(source.client_config(), TOPIC, some)
    create(target, TOPIC, some.partitions, profile.nodes)
    produce(target.client_config(), TOPIC, some)
    remove(target, TOPIC)


def _one(competitor: Competitor, scene: Scene, original: LogFacts, also: Sequence[int]) -> Measurement:
    """Start a competitor, measure it, end it, compare what it wrote and remove it; `also` counts to the brokers."""
    _settle(scene)
    with Reserve(original.bytes) as reserve:
        competitor.prepare(scene)
        copy = competitor.copy(scene)
        try:
            process = competitor.start(scene)
            brokers = [pid for pid in broker_pids(scene) if pid != process.pid]
            measurement = Watch(scene, process, [*brokers, *also], original, copy, reserve.follow).measure()
            competitor.finish(scene)
            competitor.check(scene)
            return measurement
        finally:
            copy.close()
            competitor.clear(scene)


def broker_pids(scene: Scene) -> list[int]:
    """Return the process ids of all brokers."""
    brokers = [
        cluster.broker(node) for cluster in (scene.source, scene.target) for node in range(1, cluster.options.nodes + 1)
    ]
    return [broker.pid for broker in brokers if broker.pid is not None]


def _settle(scene: Scene) -> None:
    """Give everyone the same start: nothing left to write to disk, and the source in the page cache."""
    os.sync()
    log = TopicLog(scene.source.broker().data, scene.topic, scene.load.partitions)
    log.warm()
    log.close()


def _in_short(one: Measurement) -> str:
    return (
        f"  {one.records_per_second:,.0f} records/s, {one.mb_per_second:.0f} MB/s, {one.cpu_per_gb:.1f} CPU s/GB; "
        f"start-up {one.startup:.1f} s and {one.startup_cpu:.1f} CPU s"
    )
