"""Latency: what a replicator adds to the way of a record from its producer to a consumer, and what that costs.

Called by the command line and the tests. In each run come in turn, every second time the other way round: the floor
(produce and consume at the source cluster), Anabranch and MirrorMaker 2 (produce at the source, consume the remote
topic at the target). Each has a topic of its own and a warm-up that does not count; `probe` sends and receives, in this
process.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.competitors.base import Running, Scene, alias_of, fault, void
from bench.competitors.mm2 import MirrorMaker2
from bench.competitors.ours import Anabranch
from bench.instruments.probe import Probe, Stream, percentile
from bench.instruments.procs import ProcessTree, machine_busy_seconds, own_seconds
from bench.measures.race import broker_pids
from bench.workload.load import Load
from bench.workload.topics import await_topic, create, remove
from reconciler.embedded import STEADY_JVM, ClusterOptions, EmbeddedCluster, running

SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "max": 1.0}
_START_SECONDS = 180.0
_LAST_SECONDS = 60.0
_LOOK = 0.1
# Nothing changes in what has no rounds.
_LONGEST_WITHOUT_ROUNDS = 90.0
_WARM_UP = "warm-up"
_NS_PER_MS = 1e6
_BROKER = {"num.network.threads": "3", "num.io.threads": "8", "log.segment.delete.delay.ms": "1000"}

Peer = Anabranch | MirrorMaker2


@dataclass(frozen=True)
class Setting:
    """How it is measured.

    Attributes:
        stream: what is sent.
        seconds: length of what counts; for who has no rounds at most 90.
        warm_up: seconds before, from the first record that comes out.
    """

    stream: Stream
    seconds: float = 600.0
    warm_up: float = 60.0


@dataclass(frozen=True)
class Sight:
    """One window.

    Attributes:
        records: how many were sent and came out.
        milliseconds: latency by the names of `SHARES`.
        late: by how many milliseconds the generator was late at worst.
        cpu: CPU seconds a second of the replicator, 0 for the floor.
        brokers: the same of all brokers.
        harness: the same of this process.
        elsewhere: the same of everything else on the machine.
    """

    records: int
    milliseconds: dict[str, float]
    late: float
    cpu: float
    brokers: float
    harness: float
    elsewhere: float


@dataclass(frozen=True)
class Line:
    """One contestant, run by run; `peer` is None for the floor."""

    title: str
    guarantee: str
    peer: Peer | None
    sights: tuple[Sight, ...]


@dataclass(frozen=True)
class LatencyResult:
    """All contestants, the floor first, and the machine's load average before."""

    setting: Setting
    lines: tuple[Line, ...]
    load_before: float


def latency(setting: Setting, peers: Sequence[Peer], runs: int, say: Callable[[str], None]) -> LatencyResult:
    """Measure the floor and every peer, `runs` times.

    Args:
        setting: how.
        peers: replicators that run until they are stopped.
        runs: how often.
        say: called with a line of progress.

    Raises:
        EnvironmentFault: a cluster or a replicator does not do its part, or loses or doubles a record.
    """
    load_before = os.getloadavg()[0]
    contestants: list[Peer | None] = [None, *peers]
    seen: dict[str, list[Sight]] = {_name(one): [] for one in contestants}
    options = ClusterOptions(jvm=STEADY_JVM, overrides=_BROKER)
    with (
        tempfile.TemporaryDirectory(prefix="anabranch-latency-") as scratch,
        running(EmbeddedCluster("source", options), EmbeddedCluster("target", options)) as (source, target),
    ):
        for cluster in (source, target):
            _warm_up(setting, cluster)
        for number in range(1, runs + 1):
            for peer in contestants if number % 2 else contestants[::-1]:
                alias = alias_of(_name(peer), number)
                folder = Path(scratch) / alias
                folder.mkdir()
                load = Load(1, partitions=setting.stream.partitions)
                scene = Scene(source, target, alias, f"clicks-{alias}", load, folder)
                say(f"run {number} of {runs}: {_title(peer)}")
                sight = _one(setting, peer, scene)
                say("  " + ", ".join(f"{name} {value:.1f} ms" for name, value in sight.milliseconds.items()))
                seen[_name(peer)].append(sight)
    lines = [Line(_title(one), one.guarantee if one else "", one, tuple(seen[_name(one)])) for one in contestants]
    return LatencyResult(setting, tuple(lines), load_before)


def _warm_up(setting: Setting, cluster: EmbeddedCluster) -> None:
    """Let a broker compile what it will do, so that the first contestant does not pay for it."""
    create(cluster, _WARM_UP, setting.stream.partitions)
    place = (cluster.client_config(), _WARM_UP)
    probe = Probe(setting.stream, place, place)
    try:
        probe.start()
        probe.steady()
        time.sleep(setting.warm_up)
        probe.raise_failure()
    finally:
        probe.end()
        remove(cluster, _WARM_UP)


def _one(setting: Setting, peer: Peer | None, scene: Scene) -> Sight:
    create(scene.source, scene.topic, setting.stream.partitions)
    try:
        with _replicating(peer, scene) as tree:
            longest = setting.seconds if isinstance(peer, Anabranch) else _LONGEST_WITHOUT_ROUNDS
            return watch(setting, min(setting.seconds, longest), scene, tree)
    finally:
        remove(scene.source, scene.topic)


@contextmanager
def _replicating(peer: Peer | None, scene: Scene) -> Iterator[ProcessTree | None]:
    if peer is None:
        yield None
        return
    try:
        peer.prepare(scene)
        process = peer.start(scene)
        try:
            await_topic(scene.target, scene.remote, scene.load.partitions, _START_SECONDS)
            yield ProcessTree(process.pid)
        except Exception as error:
            if (code := process.poll()) is not None:
                raise fault(scene, f"ended with exit code {code}") from error
            raise
        peer.stop()
    finally:
        peer.clear(scene)


def watch(setting: Setting, window: float, scene: Scene, tree: ProcessTree | None) -> Sight:
    """Send and receive, and return what was seen in a window of so many seconds; without a tree at the source alone."""
    origin = (scene.source.client_config(), scene.topic)
    goal = origin if tree is None else (scene.target.client_config(), scene.remote)
    probe = Probe(setting.stream, origin, goal)
    try:
        probe.start()
        _wait_for_first(probe, scene)
        probe.steady()
        time.sleep(setting.warm_up)
        trees = [ProcessTree(pid) for pid in broker_pids(scene)]
        probe.open()
        began, before = time.monotonic(), spent(tree, trees)
        time.sleep(window)
        seconds, after = time.monotonic() - began, spent(tree, trees)
        trips = probe.close_window(_LAST_SECONDS)
        probe.raise_failure()
    finally:
        probe.end()
    if len(trips.latencies) != trips.sent:
        raise void(scene, f"{trips.sent} records were sent in the window, {len(trips.latencies)} came out")
    cpu, brokers, harness, machine = ((late - early) / seconds for early, late in zip(before, after, strict=True))
    return Sight(
        trips.sent,
        {name: percentile(trips.latencies, share) / _NS_PER_MS for name, share in SHARES.items()},
        trips.late * 1000,
        cpu,
        brokers,
        harness,
        max(0.0, machine - cpu - brokers - harness),
    )


def await_copied(scene: Scene, process: Running, copied: Callable[[], int], wanted: int, seconds: float) -> None:
    """Wait until so many records stand in the copies.

    Args:
        scene: the start.
        process: what copies.
        copied: returns how many there are.
        wanted: how many there must be.
        seconds: that it may take.

    Raises:
        EnvironmentFault: AB350, it ended, or takes longer.
    """
    deadline = time.monotonic() + seconds
    while copied() < wanted:
        if (code := process.poll()) is not None:
            raise fault(scene, f"ended with exit code {code}")
        if time.monotonic() > deadline:
            raise fault(scene, f"not everything was copied within {seconds:g} s")
        time.sleep(_LOOK)


def _wait_for_first(probe: Probe, scene: Scene) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not probe.seen:
        probe.raise_failure()
        if time.monotonic() > deadline:
            raise fault(scene, f"no record came out within {_START_SECONDS:g} s")
        time.sleep(_LOOK)


def spent(tree: ProcessTree | None, brokers: Sequence[ProcessTree]) -> tuple[float, float, float, float]:
    """Return the CPU seconds of the replicator, the brokers, this process and the machine."""
    replicator = tree.cpu_seconds() if tree else 0.0
    return replicator, sum(one.cpu_seconds() for one in brokers), own_seconds(), machine_busy_seconds()


def _name(peer: Peer | None) -> str:
    return peer.name if peer else "floor"


def _title(peer: Peer | None) -> str:
    return peer.title if peer else "produce → consume (the floor)"
