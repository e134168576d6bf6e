"""Failover under load and failback, as users run them: identical and translated offsets, one way and both ways.

Every record has a value of its own, so that what a consumer group reads on either side can be counted: nothing that was
replicated is left out, and nothing is read twice. One `replicate` runs all the time.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

from reconciler.demo.compare import compare
from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from tests.support.clusters.kafka import create, declared
from tests.support.commands.command import Ended, anabranch
from tests.support.replicator.replicating import Replicator, wait_until_copying
from tests.support.waiting import eventually

pytestmark = pytest.mark.spark

SECONDS = 600
STOP_SECONDS = 400
PARTITIONS = 3
BEFORE, NEW = 6_000, 10_000
REFUSED = 4
# Records come all the time, and other tests have groups of their own.
MEANWHILE = "--leave-behind", "1000000", "--without-group", "all"

FILE = """\
version: 1
name: {name}
clusters:
  east: {{bootstrap: ["{east}"]}}
  west: {{bootstrap: ["{west}"]}}
flows:
  # What begins at an offset has offsets of its own.
  - name: over
    from: east
    to: west
    policy: {{type: identity}}
    topics: {{include: [{topic}-plain, {topic}-own]}}
    start: {{offsets: {{{topic}-own: [0, 0, 0]}}}}
  - name: there
    from: east
    to: west
    topics: {{include: [{topic}-both, {topic}-mixed]}}
    start: {{offsets: {{{topic}-mixed: [0, 0, 0]}}}}
  - name: back
    from: west
    to: east
    topics: {{include: [{topic}-both, {topic}-mixed]}}
    start: {{offsets: {{{topic}-mixed: [0, 0, 0]}}}}
"""


class Load(threading.Thread):
    """Writes records to a topic until it is ended, each with a value that says its name and number."""

    def __init__(self, cluster: EmbeddedCluster, topic: str, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.count = 0
        self._topic = topic
        self._producer = Producer(
            cluster.client_config() | {"linger.ms": 5, "enable.idempotence": True, "log_level": "2"}
        )
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.is_set():
            self.write(50)
            # Six of them, with three flows beside: a busy machine is to keep up with that.
            time.sleep(0.2)

    def write(self, records: int) -> None:
        for _ in range(records):
            value = f"{self.name}:{self.count}"
            self._producer.produce(self._topic, value.encode(), key=b"key", partition=self.count % PARTITIONS)
            self.count += 1
        self._producer.poll(0)

    def end(self) -> None:
        self._over.set()
        if self.is_alive():
            self.join()
        assert self._producer.flush(SECONDS) == 0


@dataclass
class Case:
    """One topic with its consumers.

    Attributes:
        flow: which is failed over.
        topic: its original.
        remote: its copy at west.
        at_east: what the group reads there.
        at_west: likewise.
        read: what it has read so far, in order.
        loads: who writes.
    """

    flow: str
    topic: str
    remote: str
    at_east: list[str]
    at_west: list[str]
    read: list[str] = field(default_factory=list)
    loads: list[Load] = field(default_factory=list)

    @property
    def group(self) -> str:
        return f"{self.topic}-readers"

    def consume(self, cluster: EmbeddedCluster, at_least: int | None = None) -> None:
        """Read as a group does, up to some records or to the ends of now, and commit."""
        topics = self.at_east if cluster.name == "source" else self.at_west
        self.read += list(consumed(cluster, self.group, topics, at_least))


def side_by_side(cases: dict[str, Case], act: Callable[[str, Case], object]) -> None:
    """Do something with every case at once: groups wait more than they read."""
    with ThreadPoolExecutor(len(cases)) as pool:
        list(pool.map(act, cases.keys(), cases.values()))


def consumed(cluster: EmbeddedCluster, group: str, topics: list[str], at_least: int | None) -> Iterator[str]:
    settings = {
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "session.timeout.ms": 6000,
        "log_level": "2",
    }
    consumer = Consumer(cluster.client_config() | settings)
    consumer.subscribe(topics)
    found, quiet = 0, time.monotonic()
    deadline = time.monotonic() + SECONDS
    try:
        # Nobody says where a group's reading ends: it has read all when nothing has come for a while.
        while time.monotonic() < deadline and (at_least is None or found < at_least):
            messages = consumer.consume(200, 0.5)
            for message in messages:
                assert message.error() is None, message.error()
                yield (message.value() or b"").decode()
                found += 1
            quiet = time.monotonic() if messages else quiet
            if at_least is None and consumer.assignment() and time.monotonic() > quiet + 4:
                break
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()


def values(cluster: Cluster, topic: str) -> list[str]:
    """Return all that a topic holds for readers of committed records."""
    consumer = Consumer(
        cluster.librdkafka()
        | {"group.id": "unused", "enable.auto.commit": False, "auto.offset.reset": "earliest", "log_level": "2"}
        | {"enable.partition.eof": True, "fetch.wait.max.ms": 20}
    )
    found: list[str] = []
    try:
        # Asked for by name before, the leaders are known at once; else the library finds out half a second later.
        consumer.list_topics(topic, SECONDS)
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
        ended: set[int] = set()
        deadline = time.monotonic() + SECONDS
        while len(ended) < PARTITIONS:
            assert time.monotonic() < deadline, topic
            for message in consumer.consume(1000, 0.1):
                if (error := message.error()) is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    ended.add(message.partition() or 0)
                else:
                    found.append((message.value() or b"").decode())
    finally:
        consumer.close()
    return found


def run(*arguments: object, code: int = 0) -> Ended:
    ended = anabranch(*arguments, limit=300)
    assert ended.code == code, ended
    return ended


def test_everybody_moves_over_and_back(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str, tmp_path: Path
) -> None:
    topic = topic_name[-40:].strip("-")
    east, west = declared("east", source_cluster), declared("west", target_cluster)
    file = tmp_path / "topology.yaml"
    facts = {"name": topic, "east": source_cluster.bootstrap, "west": target_cluster.bootstrap, "topic": topic}
    file.write_text(FILE.format(**facts))
    both, mixed = f"{topic}-both", f"{topic}-mixed"
    cases = {
        "plain": Case("over", f"{topic}-plain", f"{topic}-plain", [f"{topic}-plain"], [f"{topic}-plain"]),
        "own": Case("over", f"{topic}-own", f"{topic}-own", [f"{topic}-own"], [f"{topic}-own"]),
        "both": Case("there", both, f"east.{both}", [both, f"west.{both}"], [both, f"east.{both}"]),
        "mixed": Case("there", mixed, f"east.{mixed}", [mixed, f"west.{mixed}"], [mixed, f"east.{mixed}"]),
    }
    for name, case in cases.items():
        create(source_cluster, case.topic, PARTITIONS)
        case.loads.append(Load(source_cluster, case.topic, f"east-{name}"))
        if len(case.at_east) > 1:
            create(target_cluster, case.topic, PARTITIONS)
            case.loads.append(Load(target_cluster, case.topic, f"west-{name}"))
        for load in case.loads:
            load.write(BEFORE)
            load.start()
    run("apply", file, "--yes")
    replicator = Replicator(file, tmp_path / "run")
    try:
        wait_until_copying(west, replicator, time.time())
        side_by_side(cases, lambda _, case: case.consume(source_cluster, BEFORE // 2))
        own = cases["own"]
        own.loads[0].end()
        # Of it nothing is to be left behind; of the others something is, as records come meanwhile.
        eventually(
            "all of it is copied",
            lambda: len(values(west, own.remote)),
            lambda copied: copied == own.loads[0].count,
            detail=replicator.said,
        )
        over(file, cases, target_cluster, west)
        back(file, cases, (source_cluster, target_cluster), (east, west), tmp_path)
    finally:
        replicator.terminate()
        said = replicator.said()
        replicator.end()
    assert "over" in said


def over(file: Path, cases: dict[str, Case], target_cluster: EmbeddedCluster, west: Cluster) -> None:
    """Fail all flows over while records come, and let the groups read on at west."""
    shown = json.loads(run("failover", file, "--flow", "over", "--dry-run", *MEANWHILE, "--format", "json").stdout)
    assert {one["group"] for one in shown["plan"]["groups"]} == {cases["plain"].group, cases["own"].group}
    for flow in ("over", "there"):
        moved = json.loads(run("failover", file, "--flow", flow, "--yes", *MEANWHILE, "--format", "json").stdout)
        assert_moved(moved, [case for case in cases.values() if case.flow == flow])
    for load in (load for case in cases.values() for load in case.loads):
        load.end()

    def read_on(name: str, case: Case) -> None:
        before = len(case.read)
        case.consume(target_cluster)
        replicated = {value for remote in case.at_west for value in values(west, remote)}
        assert len(case.read) > before, name
        assert len(case.read) == len(set(case.read)), f"{name}: read twice"
        assert replicated <= set(case.read), f"{name}: lost {len(replicated - set(case.read))}"

    side_by_side(cases, read_on)


def assert_moved(said: dict[str, Any], cases: list[Case]) -> None:
    assert (said["problems"], said["committed"]) == ([], len(said["plan"]["groups"])), said
    assert {one["group"] for one in said["plan"]["groups"]} == {case.group for case in cases}


def back(
    file: Path,
    cases: dict[str, Case],
    embedded: tuple[EmbeddedCluster, EmbeddedCluster],
    clusters: tuple[Cluster, Cluster],
    folder: Path,
) -> None:
    """Write on the new side, read half of it there, fail back, and read the rest at east."""
    (source_cluster, target_cluster), (east, west) = embedded, clusters
    news = {name: Load(target_cluster, case.at_west[0], f"new-{name}") for name, case in cases.items()}

    def write_and_read_half(name: str, case: Case) -> None:
        news[name].write(NEW)
        news[name].end()
        case.consume(target_cluster, NEW // 2)

    side_by_side(cases, write_and_read_half)
    stayed = set(values(east, cases["plain"].topic)) - set(values(west, cases["plain"].remote))
    refused = run("failback", file, "--flow", "over", "--dry-run", code=REFUSED)
    assert f"{len(stayed):,} records that were never copied" in refused.stderr, refused
    for flow in ("over", "there"):
        rebuild = ["--rebuild", cases["plain"].topic, "--export", folder / "kept"] if flow == "over" else []
        moved = json.loads(run("failback", file, "--flow", flow, "--yes", "--format", "json", *rebuild).stdout)
        assert_moved(moved, [case for case in cases.values() if case.flow == flow])
    lines = (folder / "kept" / f"{cases['plain'].topic}.jsonl").read_text().splitlines()
    assert len(lines) == len(stayed) > 0
    side_by_side(cases, lambda name, case: eventually_all(case, source_cluster, news[name], name))
    found = compare(east, cases["plain"].topic, west, cases["plain"].remote, "read_committed")
    assert found.is_identical, found
    # The flows go on.
    for name, case in cases.items():
        more = Load(source_cluster, case.topic, f"more-{name}")
        more.write(300)
        more.end()
        deadline = time.monotonic() + SECONDS
        while len(arrived := [one for one in values(west, case.remote) if one.startswith("more-")]) < 300:
            assert time.monotonic() < deadline, (name, len(arrived))
            time.sleep(1)
        assert len(arrived) == 300, name


def eventually_all(case: Case, cluster: EmbeddedCluster, new: Load, name: str) -> None:
    """Let the group read on at east until it has all that is new, each record once."""
    wanted = {f"{new.name}:{number}" for number in range(new.count)}
    deadline = time.monotonic() + SECONDS
    while not wanted <= set(case.read):
        assert time.monotonic() < deadline, f"{name}: lost {len(wanted - set(case.read))}"
        case.consume(cluster)
    assert len(case.read) == len(set(case.read)), f"{name}: read twice"
