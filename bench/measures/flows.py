"""Flows: a hundred of them in one `replicate`: how soon all of them copy, and what they cost while nothing comes in.

Called by the command line and the tests. Each flow copies a topic of its own with a record in each partition. A run is
`anabranch apply` for all of them, then `anabranch replicate` from the start of its process until the records of every
flow stand in their copies; then nothing happens for a while.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from bench.competitors.base import Scene, end
from bench.competitors.ours import declared, replicate, timed
from bench.instruments.procs import ProcessTree
from bench.measures.latency import await_copied, spent
from bench.measures.race import broker_pids
from bench.reports.bars import Bar, bars_table
from bench.reports.table import machine_lines, noise_line, table
from bench.workload.load import Load
from bench.workload.topics import admin, await_topic, begin, create
from reconciler.embedded import STEADY_JVM, ClusterOptions, EmbeddedCluster, running
from reconciler.embedded.launch import start_child

_START_SECONDS = 1200.0
_END_SECONDS = 120.0
_ANSWER_SECONDS = 60
# Partitions whose ends are read in a second.
_LOOKED_AT = 5_000
_MB = 10**6

_NOTES = """\
Each flow has a topic of its own between the same two clusters; each of its partitions holds one record when the command
starts. *Apply*, *plan* and *status* are commands as processes, from their start to their end, Python's own start
included; the plan finds nothing to do, and the status is asked for while all flows run. With groups, one has read
all of the topics. *Start* is from the start of `anabranch replicate` until those records of every flow stand in their
copies, Spark's own start included. Then nothing is sent: *idle CPU* is user and system time of all its processes in CPU
seconds a second, after a warm-up. *Workers* is what all Python processes under Spark hold at the end, pages that they
share counted once; *all* has the virtual machine and the command, too.
"""


@dataclass(frozen=True)
class Wanted:
    """What is measured.

    Attributes:
        flows: how many there are.
        partitions: of the topic of each.
        nodes: of each cluster.
        groups: whether the offsets of consumer groups are translated, too.
        seconds: for how long nothing happens.
        warm_up: seconds before that do not count.
    """

    flows: int
    partitions: int
    nodes: int
    groups: bool
    seconds: float
    warm_up: float


@dataclass(frozen=True)
class ManyFlows:
    """One run.

    Attributes:
        apply: seconds of `apply`.
        start: seconds until the records of all flows were copied.
        start_cpu: CPU seconds of all processes until then.
        idle: CPU seconds a second of all processes while nothing happens.
        elsewhere: the same of everything but them, the brokers and this process.
        workers: bytes that all Python workers hold at the end.
        together: bytes that all processes hold at the end.
        plan: seconds of a plan that finds nothing to do.
        status: seconds of `status`.
    """

    apply: float
    start: float
    start_cpu: float
    idle: float
    elsewhere: float
    workers: int
    together: int
    plan: float
    status: float


def many_flows(wanted: Wanted, runs: int, say: Callable[[str], None]) -> list[ManyFlows]:
    """Measure all runs.

    Args:
        wanted: how many flows, and for how long.
        runs: how often.
        say: called with a line of progress.

    Raises:
        EnvironmentFault: a cluster or a command does not do its part.
    """
    options, found = ClusterOptions(nodes=wanted.nodes, jvm=STEADY_JVM), []
    for number in range(1, runs + 1):
        with (
            tempfile.TemporaryDirectory(prefix="anabranch-flows-") as scratch,
            running(EmbeddedCluster("source", options), EmbeddedCluster("target", options)) as (source, target),
        ):
            say(f"run {number} of {runs}: {wanted.flows:,} flows")
            load = Load(wanted.partitions, partitions=wanted.partitions)
            one = _one(wanted, Scene(source, target, "source", "flows", load, Path(scratch)))
            say(f"  apply {one.apply:.1f} s, start {one.start:.1f} s, idle {one.idle:.3f}")
            found.append(one)
    return found


def _one(wanted: Wanted, scene: Scene) -> ManyFlows:
    topics = [f"t{number:03}" for number in range(wanted.flows)]
    for topic in topics:
        create(scene.source, topic, wanted.partitions, nodes=wanted.nodes)
    for topic in topics:
        await_topic(scene.source, topic, wanted.partitions, _START_SECONDS)
    begin(scene.source, topics, wanted.partitions)
    if wanted.groups:
        _read_all(scene.source, topics, wanted.partitions)
    # JSON is YAML.
    scene.topology.write_text(json.dumps(_topology(scene, topics, wanted.groups)))
    apply = timed(scene, "apply", str(scene.topology), "--yes")
    began = time.monotonic()
    process = start_child(replicate(scene), scene.folder / "replicate.log")
    try:
        tree = ProcessTree(process.pid)
        client = admin(scene.target)
        await_copied(
            scene, process, lambda: _copied(client, scene, topics), len(topics) * wanted.partitions, _START_SECONDS
        )
        start, start_cpu = time.monotonic() - began, tree.cpu_seconds()
        time.sleep(wanted.warm_up)
        idle, elsewhere = _idle(wanted.seconds, tree, [ProcessTree(pid) for pid in broker_pids(scene)])
        held = tree.held()
        plan, status = (timed(scene, name, str(scene.topology)) for name in ("plan", "status"))
        return ManyFlows(apply, start, start_cpu, idle, elsewhere, held["worker"], sum(held.values()), plan, status)
    finally:
        end(process, signal.SIGTERM, _END_SECONDS)


def _read_all(cluster: EmbeddedCluster, topics: list[str], partitions: int) -> None:
    """Commit the first record of all topics for one group."""
    consumer = Consumer({**cluster.client_config(), "group.id": "readers", "log_level": 2})
    try:
        read = [TopicPartition(topic, number, 1) for topic in topics for number in range(partitions)]
        consumer.commit(offsets=read, asynchronous=False)
    finally:
        consumer.close()


def _idle(seconds: float, tree: ProcessTree, brokers: list[ProcessTree]) -> tuple[float, float]:
    """Return CPU seconds a second of a replicator, and of all but it, the brokers and this process, for a while."""
    since, before = time.monotonic(), spent(tree, brokers)
    time.sleep(seconds)
    passed, after = time.monotonic() - since, spent(tree, brokers)
    own, at_brokers, harness, machine = ((late - early) / passed for early, late in zip(before, after, strict=True))
    return own, max(0.0, machine - own - at_brokers - harness)


def _topology(scene: Scene, topics: list[str], groups: bool) -> dict[str, object]:
    taken = {"groups": {"include": [".*"]}} if groups else {}
    flows = [
        {"from": "source", "to": "target", "name": topic, "topics": {"include": [topic]}, **taken} for topic in topics
    ]
    clusters = {"source": declared(scene.source), "target": declared(scene.target)}
    return {"version": 1, "name": "flows", "clusters": clusters, "flows": flows}


def _copied(client: AdminClient, scene: Scene, topics: list[str]) -> int:
    """Return how many records all copies hold; one request asks for all, as the machine has enough to do."""
    partitions = range(scene.load.partitions)
    asked = {
        TopicPartition(f"{scene.alias}.{topic}", number): OffsetSpec.latest()
        for topic in topics
        for number in partitions
    }
    # What waits must not take what copies has to do.
    time.sleep(len(asked) / _LOOKED_AT)
    ends = client.list_offsets(asked, request_timeout=_ANSWER_SECONDS)
    try:
        return sum(end.result().offset for end in ends.values())
    except KafkaException:
        # A broker that has just made a topic may not know yet that it leads it.
        return 0


def many_flows_report(wanted: Wanted, found: list[ManyFlows], machine: Mapping[str, str], date: str) -> str:
    """Return the report.

    Args:
        wanted: what was measured.
        found: every run.
        machine: facts about the machine, by name.
        date: when it was, as it shall be written.
    """
    bars = [
        Bar("start, all flows copied", median(one.start for one in found), 60, at_least=False, unit=" s"),
        Bar("idle CPU", median(one.idle for one in found), 0.25, at_least=False),
        Bar("memory of all workers", median(one.workers for one in found) / _MB, 1000, at_least=False, unit=" MB"),
    ]
    heads = [
        "run",
        "apply s",
        "start s",
        "start CPU s",
        "idle CPU",
        "workers MB",
        "all MB",
        "plan s",
        "status s",
    ]
    rows = [
        [
            str(number),
            f"{one.apply:.1f}",
            f"{one.start:.1f}",
            f"{one.start_cpu:.1f}",
            f"{one.idle:.3f}",
            f"{one.workers / _MB:,.0f}",
            f"{one.together / _MB:,.0f}",
            f"{one.plan:.1f}",
            f"{one.status:.1f}",
        ]
        for number, one in enumerate(found, 1)
    ]
    parts = [
        f"# Flows of {date}\n",
        f"{wanted.flows:,} flows, each with a topic of {wanted.partitions} partitions"
        f"{' and all consumer groups' if wanted.groups else ''}, {wanted.nodes} nodes a cluster; "
        f"{wanted.seconds:g} s without a record.\n",
        machine_lines(machine) + noise_line(os.getloadavg()[0], max(one.elsewhere for one in found)),
        table(heads, rows),
        bars_table(bars),
        "## How\n",
        _NOTES,
    ]
    return "\n".join(parts)
