"""A cluster, another of three brokers behind a relay, six topics that grow all the time, and a process to copy them.

Three flows: identical offsets, translated ones, and identical ones of a source with transactions whose gaps are filled
with transactions. Each has fresh and week-old records, and a user who may do exactly what `explain --acls` names.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from bench.competitors.standalone import Standalone, standalone
from reconciler.demo.compare import Isolation, compare
from reconciler.embedded import ClusterOptions, EmbeddedCluster, start_all, stop_all
from reconciler.model.connection.references import Reference
from reconciler.model.connection.security import Security
from reconciler.model.declared.cluster import Cluster
from tests.support.clusters.kafka import create
from tests.support.clusters.relay import Relay
from tests.support.clusters.traffic import WEEK_MS, Traffic, Transactions
from tests.support.commands.command import anabranch
from tests.support.replicator.replicating import Replicator, wait_until_caught_up, wait_until_copying
from tests.support.replicator.translated import assert_repeats_only, assert_translated, contents, runs_of
from tests.support.security.acls import give, needed_by

BACKLOG, PER_SECOND = 10_000, 150
# Each is a gap in every partition, which takes some replicated requests to fill; six brokers share the machine.
TRANSACTIONS_PER_SECOND = 1.0
SECONDS = 240.0
USERS = {"admin": "admin-secret", "mirror": "mirror-secret"}
SECURITY = {"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN", "username": "mirror", "password": "env:MIRROR_PASSWORD"}
QUICK_RETURN = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
ISOLATIONS: tuple[Isolation, ...] = ("read_uncommitted", "read_committed")
# The flows: identical, translated, filled with transactions.
MODES = "itf"

DECLARATION = """\
version: 1
name: {name}
clusters:
  east: {{bootstrap: {source}, security: {security}, datacenter: dc1}}
  west: {{bootstrap: {target}, security: {security}, datacenter: dc2}}
{spark}replication:
  - {{from: east, to: west, name: {name}-i, offsets: identical, topics: {{include: ["{name}-i-.*"]}}}}
  - {{from: east, to: west, name: {name}-t, offsets: translated, topics: {{include: ["{name}-t-.*"]}}}}
  - from: east
    to: west
    name: {name}-f
    offsets: identical
    fill: transactions
    topics: {{include: ["{name}-f-.*"]}}
"""


ON_EXECUTORS = """\
datacenters:
  dc2:
    spark:
      master: {master}
      conf: {{spark.driver.host: 127.0.0.1, spark.executor.cores: 1, spark.executor.memory: 512m}}
"""


class Size(NamedTuple):
    """How large a scene is: brokers of the source, partitions of each topic, records of one without transactions."""

    source_brokers: int
    partitions: int
    records: int


WHOLE = Size(3, 6, 200_000)
# Each broker more takes its time from all other tests, and each partition is compared by itself.
SMALL = Size(1, 3, 20_000)


class Scene:
    """What goes on between two clusters.

    Args:
        folder: for the declaration and the runs.
        clusters: the source, where the topics are made, and the target, which is reached through `relay`.
        relay: the line.
        name: of the topology, and how its topics begin.
        size: how large all this is.
        spark: where the tasks run; on this machine, if nothing is said.
    """

    def __init__(
        self,
        folder: Path,
        clusters: tuple[EmbeddedCluster, EmbeddedCluster],
        relay: Relay,
        name: str,
        size: Size,
        spark: Standalone | None = None,
    ) -> None:
        self.folder, self.name, self.relay, self.spark = folder, name, relay, spark
        self.partitions, self._records = size.partitions, size.records
        source, target = clusters
        self.clusters = {"source": source, "target": target}
        # As the tests see them: who may do everything.
        overseer = Security("SASL_PLAINTEXT", "PLAIN", "admin", Reference("env", "ADMIN_PASSWORD"))
        self.source = Cluster("east", tuple(source.bootstrap.split(",")), security=overseer)
        self.target = Cluster("west", tuple(f"127.0.0.1:{port}" for port in relay.ports), security=overseer)
        ages = {"fresh": 0, "old": WEEK_MS}
        self.topics = {f"{name}-{mode}-{age}": ms for mode in MODES for age, ms in ages.items()}
        for topic in self.topics:
            create(source, topic, self.partitions, replicas=source.options.nodes)
        self.file = folder / "topology.yaml"
        sides = {"source": list(self.source.bootstrap), "target": list(self.target.bootstrap)}
        spark_too = "" if spark is None else ON_EXECUTORS.format(master=spark.master)
        said = DECLARATION.format(name=name, security=SECURITY, spark=spark_too, **sides)
        self.file.write_text(said.replace("'", '"'))
        for alias, cluster in (("east", source), ("west", target)):
            give(cluster, "mirror", needed_by(self.file, alias))
        applied = anabranch("apply", self.file, "--yes")
        assert applied.code == 0, applied.stderr
        self._traffic = [self._traffic_to(topic, age) for topic, age in self.topics.items()]
        for thread in self._traffic:
            thread.start()
        self.running = Replicator(self.file, folder)

    def _traffic_to(self, topic: str, age_ms: int) -> Traffic | Transactions:
        source = self.clusters["source"]
        if topic.startswith(f"{self.name}-f"):
            return Transactions(source, topic, self.partitions, (age_ms,), per_second=TRANSACTIONS_PER_SECOND)
        return Traffic(source, topic, self.partitions, self._records, BACKLOG, per_second=PER_SECOND, age_ms=age_ms)

    def start_again(self) -> None:
        """Start another process in place of one that is gone."""
        self.running = Replicator(self.file, self.folder)

    def goes_on(self, since: float) -> None:
        """Wait until every partition of all flows runs, and all have copied something, after a moment."""
        deadline = time.monotonic() + SECONDS
        while {status.flow for status in wait_until_copying(self.target, self.running, since, SECONDS)} != {
            f"{self.name}-{mode}" for mode in MODES
        }:
            assert time.monotonic() < deadline, self.running.said()[-3000:]
            time.sleep(0.2)

    def check(self, *, by_another: bool) -> None:
        """Let everything be copied, the rest of it perhaps by another process, and compare it."""
        for thread in self._traffic:
            thread.finish()
        if not by_another:
            wait_until_caught_up(self.target, self.running, self.file, 2 * SECONDS)
        self.running.terminate()
        assert self.running.wait(SECONDS) == 0, self.running.said()[-3000:]
        if by_another:
            last = Replicator(self.file, self.folder, "--until-caught-up")
            try:
                assert last.wait(2 * SECONDS) == 0, last.said()[-3000:]
            finally:
                last.end()
        checks = {"i": self._check_identical, "t": self._check_translated, "f": self._check_filled}
        for topic in self.topics:
            checks[topic.removeprefix(f"{self.name}-")[0]](topic)

    def _check_identical(self, topic: str) -> None:
        for isolation in ISOLATIONS:
            found = compare(self.source, topic, self.target, f"east.{topic}", isolation)
            assert (found.is_identical, found.records) == (True, self._records), (isolation, found.different)

    def _check_translated(self, topic: str) -> None:
        count = 0
        for number in range(self.partitions):
            theirs = contents(self.source, topic, number)
            assert contents(self.target, f"east.{topic}", number) == theirs
            assert_repeats_only(self.target, f"east.{topic}", number)
            count += len(theirs)
        assert count == self._records

    def _check_filled(self, topic: str) -> None:
        """Every offset is the original's, or inside of a shifted run that is recorded."""
        runs = runs_of(self.target, f"{self.name}-f", f"east.{topic}", self.partitions, self.name)
        shifted = assert_translated(self.source, topic, self.target, runs)
        print(f"{topic}: {sum(len(one.runs) for one in runs)} runs recorded, {shifted} records shifted")
        assert (shifted > 0) <= any(one.runs for one in runs)


@contextmanager
def opened(
    folder: Path, name: str, size: Size, monkeypatch: pytest.MonkeyPatch, executors: bool = False
) -> Iterator[Scene]:
    """Open a scene for the length of a block, with records flowing; the tasks may run on executors of two workers."""
    for user, password in USERS.items():
        monkeypatch.setenv(f"{user.upper()}_PASSWORD", password)
    three = ClusterOptions(nodes=3, overrides=QUICK_RETURN | {"min.insync.replicas": "2"}, users=USERS)
    alone = ClusterOptions(overrides=QUICK_RETURN, users=USERS)
    # Executors have the environment of their workers, and with it the passwords.
    with Relay(3) as relay, standalone(folder / "spark") if executors else nullcontext() as spark:
        source = EmbeddedCluster("source", alone if size.source_brokers == 1 else three)
        target = EmbeddedCluster("target", replace(three, advertised=tuple(relay.ports)))
        # Whoever asks whether it is there is sent through the relay.
        target.launch()
        relay.upstream = [int(address.rpartition(":")[2]) for address in target.bootstrap.split(",")]
        try:
            start_all([source])
            target.await_ready()
            made = Scene(folder, (source, target), relay, name, size, spark)
            try:
                yield made
            finally:
                made.running.end()
        finally:
            stop_all([source, target])
