"""A flow that fails over and back by the commands as users run them, its tasks in threads of this process."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from reconciler.cli.main import main
from reconciler.declare import load
from reconciler.embedded import EmbeddedCluster
from reconciler.failover.failback import Failback
from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.declared.topology import Topology
from reconciler.model.recorded.failover import FailbackPlan
from reconciler.model.tasks.spec import FlowSpec
from reconciler.model.tasks.status import PartitionState
from reconciler.operate.flows.running import parked_problem
from reconciler.replicator.driver.driver import new_run
from reconciler.state.failovers import Failovers
from reconciler.state.syncs import ensure
from tests.support.clusters.kafka import create, declared
from tests.support.replicator.copying import copy, fill, log_end
from tests.support.waiting import eventually

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
    on-data-loss: {loss}
    topics: {{include: [{topic}, '{topic}[.].+']}}
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


MODES = ("auto", "translated")
# What both do alike is tried with one of them in `make test`.
MOSTLY_TRANSLATED = (pytest.param("auto", marks=pytest.mark.long), "translated")


class Pair:
    """A flow with topics of two partitions that is applied, and what is needed to try it.

    Args:
        clusters: its source and its target.
        topic: its topic.
        offsets: its mode.
        folder: where its file is written.
        capsys: what hears commands.
        more: what further topics are called behind `topic` and a dot.
        made: whether the topic is there.
    """

    def __init__(
        self,
        clusters: tuple[EmbeddedCluster, EmbeddedCluster],
        topic: str,
        offsets: str,
        folder: Path,
        capsys: pytest.CaptureFixture[str],
        *,
        more: Sequence[str] = (),
        made: bool = False,
    ) -> None:
        self.east, self.west = clusters
        self.topic = self.name = topic
        self.file = folder / "topology.yaml"
        self._facts = {"name": topic, "topic": topic, "offsets": offsets, "west": self.west.bootstrap, "loss": "park"}
        self._capsys = capsys
        self.write(self.east.bootstrap)
        if not made:
            create(self.east, topic, 2)
        fill(self.east, topic, 200, 2)
        for name in map(self.other, more):
            create(self.east, name, 2)
            fill(self.east, name, 200, 2)
        # On a busy machine a leader or a broker may come late: what a plan saw has changed then (AB407).
        applied = eventually("it is applied", lambda: self.run("apply", "--yes"), lambda one: "AB407" not in one.err)
        assert applied.code == 0, applied
        # Transactions of translated copies write to them; `replicate` has them made.
        for cluster, other in ((declared("west", self.west), "east"), (declared("east", self.east), "west")):
            ensure(cluster, other, 30)
        self.copy()

    @property
    def topology(self) -> Topology:
        return load((self.file,))

    def write(self, east: str) -> None:
        # Of several nodes each is named.
        self.file.write_text(FILE.format(**self._facts, east=east.replace(",", '", "')))

    def go_on_behind_losses(self) -> None:
        """Declare that what was deleted before it was copied is passed over."""
        self._facts["loss"] = "continue"
        self.write(self.east.bootstrap)

    def other(self, name: str) -> str:
        """Return the full name of a further topic."""
        return f"{self.topic}.{name}"

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


class MakePair(Protocol):
    """Makes a flow that can be failed over."""

    def __call__(self, offsets: str, *more: str) -> Pair:
        """Return one of a mode, with further topics."""
        ...


def copy_back(_topology: Topology, coming: Failback, plan: FailbackPlan) -> None:
    """Copy back without Spark; what is parked is told as ever."""
    for number, spec in enumerate(coming.specs(plan, new_run())):
        # One after the other: a run that has been stopped is not begun again.
        status = copy(replace(spec, run=f"{spec.run}-{number}")).status
        if parked := [one for one in status.partitions if one.state is PartitionState.PARKED]:
            raise EnvironmentFault([parked_problem(spec.flow.name, one) for one in parked])


def break_off(*_arguments: object) -> None:
    raise EnvironmentFault(Problem("AB310", "cluster west", "it breaks off", ""))


def ends_of(pair: Pair) -> tuple[tuple[int, int], ...]:
    """Return where the copy was cut."""
    failovers = Failovers(declared("west", pair.west), pair.name)
    try:
        return failovers.current()["over"].cuts[pair.topic].ends
    finally:
        failovers.close()


def write(cluster: EmbeddedCluster, topic: str, values: list[str], partition: int = 0) -> None:
    """Write as applications do, in a transaction."""
    name = f"{topic}-{partition}-{values[0]}"
    producer = Producer(cluster.client_config() | {"transactional.id": name, "linger.ms": 5, "log_level": "2"})
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


@contextmanager
def open_transaction(cluster: EmbeddedCluster, topic: str, partition: int, count: int) -> Iterator[str]:
    """Hold a transaction open that has some records in a partition, and commit it; yields its transactional id."""
    name = f"{topic}-open"
    producer = Producer(cluster.client_config() | {"transactional.id": name, "log_level": "2"})
    producer.init_transactions(60)
    producer.begin_transaction()
    for number in range(count):
        producer.produce(topic, f"open-{number}".encode(), partition=partition)
    assert producer.flush(300) == 0
    yield name
    producer.commit_transaction(60)


def read_from(cluster: EmbeddedCluster, topic: str, offset: int, partition: int = 0) -> list[str]:
    """Return what readers of committed records find in a partition from an offset on."""
    # Of what is deleted the rest is read.
    settings = {"group.id": "unused", "auto.offset.reset": "earliest", "enable.partition.eof": True, "log_level": "2"}
    consumer = Consumer(cluster.client_config() | settings)
    found = []
    try:
        consumer.assign([TopicPartition(topic, partition, offset)])
        while (message := consumer.poll(60)) is not None:
            if (error := message.error()) is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                break
            found.append((message.value() or b"").decode())
    finally:
        consumer.close()
    return found


def named(what: str, count: int) -> list[str]:
    """Return so many values."""
    return [f"{what}-{number}" for number in range(count)]


def dies(
    patch: pytest.MonkeyPatch, where: type | ModuleType, step: str, run: Callable[[], Said], *, after: bool
) -> None:
    """Let a command end before or after one of its steps, as a kill would."""
    whole = getattr(where, step)

    def cut(*arguments: object, **named: object) -> None:
        if after:
            whole(*arguments, **named)
        raise EnvironmentFault(Problem("AB726", f"{step}", "dies", ""))

    with patch.context() as inner:
        inner.setattr(where, step, cut)
        said = run()
    assert (said.code, "[AB726]" in said.err) == (1, True), said
