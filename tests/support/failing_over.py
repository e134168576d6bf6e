"""A flow that fails over and back by the commands as users run them, its tasks in threads of this process."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from reconciler.cli.main import main
from reconciler.declare import load
from reconciler.embedded import EmbeddedCluster
from reconciler.model.spec import FlowSpec
from reconciler.model.topology import Topology
from reconciler.replicator.drive import new_run
from reconciler.state.failovers import Failovers
from reconciler.state.syncs import ensure
from tests.contract.kafka import create, declared
from tests.support.copying import copy, fill, log_end

FILE = """\
version: 1
name: {name}
clusters:
  east: {{bootstrap: ["{east}"]}}
  west: {{bootstrap: ["{west}"]}}
flows:
  - name: over
    from: east
    to: west
    policy: {{type: identity}}
    offsets: {offsets}
    topics: {{include: [{topic}]}}
    groups: {{include: ["{topic}-.*"]}}
"""


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.out, self.err
        return json.loads(self.out)


class Pair:
    """A flow with one topic of two partitions that is applied, and what is needed to try it."""

    def __init__(
        self,
        clusters: tuple[EmbeddedCluster, EmbeddedCluster],
        topic: str,
        offsets: str,
        folder: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        self.east, self.west = clusters
        self.topic = self.name = topic
        self.file = folder / "topology.yaml"
        self._facts = {"name": topic, "topic": topic, "offsets": offsets, "west": self.west.bootstrap}
        self._capsys = capsys
        self.write(self.east.bootstrap)
        create(self.east, topic, 2)
        fill(self.east, topic, 200, 2)
        assert self.run("apply", "--yes").code == 0
        # Transactions of translated copies write to them; `replicate` has them made.
        for cluster, other in ((declared("west", self.west), "east"), (declared("east", self.east), "west")):
            ensure(cluster, other, 30)
        self.copy()

    @property
    def topology(self) -> Topology:
        return load((self.file,))

    def write(self, east: str) -> None:
        self.file.write_text(FILE.format(**self._facts, east=east))

    def group(self, name: str) -> str:
        return f"{self.topic}-{name}"

    def copy(self) -> None:
        """Copy what the original has now."""
        topology = self.topology
        copy(FlowSpec.compile(topology, topology.flows[0], new_run()))

    def run(self, command: str, *arguments: object) -> Said:
        self._capsys.readouterr()
        code = main([command, str(self.file), *map(str, arguments)])
        said = self._capsys.readouterr()
        return Said(code, said.out, " ".join(said.err.split()))

    def over(self, *arguments: object) -> Said:
        return self.run("failover", "--flow", "over", *arguments)

    def back(self, *arguments: object) -> Said:
        return self.run("failback", "--flow", "over", *arguments)

    @property
    def phase(self) -> str | None:
        failovers = Failovers(declared("west", self.west), self.name)
        try:
            state = failovers.current().get("over")
            return state.phase if state else None
        finally:
            failovers.close()


def write(cluster: EmbeddedCluster, topic: str, values: list[str], partition: int = 0) -> None:
    """Write as applications do, in a transaction."""
    producer = Producer(
        cluster.client_config() | {"transactional.id": f"{topic}-{values[0]}", "linger.ms": 5, "log_level": "2"}
    )
    place = declared("any", cluster)
    end = log_end(place, topic, partition)
    producer.init_transactions(60)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value.encode(), partition=partition)
    producer.commit_transaction(60)
    # The marker may come a moment later.
    deadline = time.monotonic() + 60
    while log_end(place, topic, partition) < end + len(values) + 1:
        assert time.monotonic() < deadline, "the transaction does not end"
        time.sleep(0.05)


def read_from(cluster: EmbeddedCluster, topic: str, offset: int) -> list[str]:
    """Return what readers of committed records find in partition 0 from an offset on."""
    consumer = Consumer(
        cluster.client_config() | {"group.id": "unused", "enable.partition.eof": True, "log_level": "2"}
    )
    found = []
    try:
        consumer.assign([TopicPartition(topic, 0, offset)])
        while (message := consumer.poll(60)) is not None:
            if (error := message.error()) is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                break
            found.append((message.value() or b"").decode())
    finally:
        consumer.close()
    return found
