"""Copies made by the replicator's task in a thread of this process: no Spark, real brokers on both sides."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType

from confluent_kafka import Consumer, TopicPartition

from reconciler.demo.compare import Isolation, compare
from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.names.selection import Selection
from reconciler.model.tasks.spec import FlowSpec
from reconciler.model.tasks.status import PartitionState, PartitionStatus, TaskStatus
from reconciler.replicator.driver import discovery
from reconciler.replicator.driver.catch_up import CatchUp
from reconciler.replicator.partition.shares import Assignment, Place
from reconciler.replicator.task import rounds
from reconciler.replicator.task.ledger import LedgerRow
from reconciler.state import control
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from reconciler.state.status import StatusReader
from tests.support.clusters.kafka import patient, settled
from tests.support.waiting import eventually
from tests.support.wire.wires import producers

SECONDS = 300.0
_ISOLATIONS: tuple[Isolation, ...] = ("read_uncommitted", "read_committed")
# Its end is never waited for: a slow machine must not come to it in the middle of a test.
ROUND_SECONDS = 1_200.0
# What `apply` gives a remote topic: the batches and their timestamps stay as they are.
REMOTE = {
    "compression.type": "producer",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": str(2**63 - 1),
    "message.timestamp.after.max.ms": str(2**63 - 1),
}

_HEADERS = [("trace", b"abc"), ("empty", b""), ("trace", b"again"), ("none", None)]

Condition = Callable[[TaskStatus], bool]


@dataclass(frozen=True)
class Copied:
    """What one run of a task left behind: its ledger, and the word that was waited for."""

    rows: list[LedgerRow]
    status: TaskStatus

    def at(self, topic: str, partition: int = 0) -> PartitionStatus:
        return at(self.status, topic, partition)

    @property
    def records(self) -> int:
        return sum(row.records for row in self.rows)


def at(status: TaskStatus, topic: str, partition: int = 0) -> PartitionStatus:
    """Return what a task says of one partition."""
    (one,) = [p for p in status.partitions if (p.topic, p.partition) == (topic, partition)]
    return one


def code(status: PartitionStatus) -> str | None:
    return status.reason.code if status.reason else None


def spec_of(source: Cluster, target: Cluster, *include: str, round_seconds: float = ROUND_SECONDS) -> FlowSpec:
    """Return a flow with a run of its own; remote topics have the source's alias in front."""
    flow = Flow(f"{source.alias}-{target.alias}", source.alias, target.alias, Selection(include))
    aliases = (source.alias, target.alias)
    return FlowSpec("tests", uuid.uuid4().hex, flow, source, target, aliases, round_seconds)


class Running:
    """One task in a thread, from the start of the block to its end; it hears of the end as every run does.

    Args:
        spec: the flow.
        places: its partitions; by default all that match.
        overseer: the target cluster as the test itself sees it, where the replicator may see less.
    """

    def __init__(self, spec: FlowSpec, places: Sequence[Place] | None = None, overseer: Cluster | None = None) -> None:
        self.spec = spec
        self.rows: list[LedgerRow] = []
        self._overseer = overseer or spec.target
        for journal in (own(spec.topology).status, own(spec.topology).control, own(spec.topology).copies):
            Journal(self._overseer, journal).ensure()
        self._reader = StatusReader(self._overseer, spec.topology)
        chosen = discovery.matching(spec) if places is None else places
        self._assignment = Assignment(0, 1, tuple(chosen))
        self._goals: CatchUp | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=spec.run, daemon=True)

    def __enter__(self) -> Running:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
        self._reader.close()

    def statuses(self) -> list[TaskStatus]:
        """Return the newest word of this run, if there is one."""
        return [status for status in self._reader.current() if status.run == self.spec.run]

    def wait(self, until: Condition | None = None, seconds: float = SECONDS) -> TaskStatus:
        """Wait until the task says what is hoped for: by default that all that can be copied is."""
        deadline = time.monotonic() + seconds
        status: TaskStatus | None = None
        while time.monotonic() < deadline:
            for status in self.statuses():
                if (until or self._is_settled)(status):
                    return status
            if not self._thread.is_alive():
                self._raise()
                break
            time.sleep(0.05)
        message = f"it never said so; at last it said {status and status.to_json()}"
        raise AssertionError(message)

    def last(self) -> TaskStatus:
        """Return the last word, once the task has ended."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            for status in self.statuses():
                if status.stopped:
                    return status
            time.sleep(0.01)
        message = "it ended without a last word"
        raise AssertionError(message)

    def stop(self) -> None:
        """Tell the run to stop, wait for its end, and raise what it raised."""
        if self._thread.is_alive():
            control.stop(self._overseer, [self.spec.seal])
        self._thread.join(SECONDS)
        assert not self._thread.is_alive(), "the task does not stop"
        self._raise()

    def settled_again(self, seconds: float = SECONDS, *, running: bool = False) -> TaskStatus:
        """Take the source's ends of now as the new goals, and wait for them.

        Args:
            seconds: how long at most.
            running: wait until all partitions run, too: one that is there may be opened anew in this moment.
        """
        self._goals = None
        return self.wait(
            lambda status: self._is_settled(status) and (not running or all_running(status.partitions)), seconds
        )

    def _is_settled(self, status: TaskStatus) -> bool:
        if self._goals is None:
            self._goals = CatchUp()
            self._goals.add(self.spec, self._assignment.places)
        progress = self._goals.progress([status])
        return progress.missing == len(progress.parked)

    def _run(self) -> None:
        try:
            self.rows = rounds.run(self.spec, self._assignment)
        except BaseException as error:
            self._error = error
        finally:
            close(self.spec)

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error


def run_of_thread() -> str:
    """Return the run whose task this thread is; tasks of several runs copy in one process here."""
    return threading.current_thread().name.rpartition(" ")[2]


def close(spec: FlowSpec) -> None:
    """End what a worker process would go on with until the run's next round."""
    for key in [key for key in rounds._running if key[0] == spec.run]:
        rounds._running.pop(key).rounds.end()


def copy(spec: FlowSpec, until: Condition | None = None) -> Copied:
    """Run a task until what it says fits, by default until all that can be copied is."""
    with Running(spec) as running:
        status = running.wait(until)
        running.stop()
        assert running.last().records == sum(row.records for row in running.rows)
        return Copied(running.rows, status)


def assert_counted(counted: int, expected: int, *words: TaskStatus, retries: int = 0) -> None:
    """Assert that an account holds every record once, or fewer where an answer was lost.

    A record whose answer is lost stands in the log and in no account, and its partition is opened anew: on a busy
    machine that may be. Nothing is ever counted twice.

    Args:
        counted: what the account says.
        expected: how many records there are.
        words: the newest word of each task that has counted.
        retries: how often each partition was made to open anew without losing an answer.
    """
    assert counted <= expected
    if all(partition.metrics.retries <= retries for word in words for partition in word.partitions):
        assert counted == expected


def identical(spec: FlowSpec, *topics: str) -> int:
    """Assert that copies equal their sources offset by offset for all readers; return the number of records.

    Of the sources the committed records count: no reader of a copy ever sees what was aborted.
    """
    pairs = [(topic, isolation) for topic in topics for isolation in _ISOLATIONS]
    # Reading waits more than it works.
    with ThreadPoolExecutor(len(pairs)) as pool:
        found = list(
            pool.map(lambda pair: compare(spec.source, pair[0], spec.target, _remote(spec, pair[0]), pair[1]), pairs)
        )
    assert [one for one in found if not one.is_identical] == []
    return sum(one.records for one in found) // len(_ISOLATIONS)


def assert_copied(source: Cluster, topic: str, target: Cluster, remote: str, records: int) -> None:
    """Assert that a copy has so many records, and equals its source offset by offset, for all readers."""
    for isolation in _ISOLATIONS:
        found = compare(source, topic, target, remote, isolation)
        assert (found.is_identical, found.records) == (True, records), found.different


def _remote(spec: FlowSpec, topic: str) -> str:
    return spec.flow.remote_topic(topic)


def fill(
    cluster: EmbeddedCluster, topic: str, records: int, partitions: int = 1, codec: str = "none", age: int = 0
) -> None:
    """Produce records of many shapes at once, to the partitions in turns; `age` is in milliseconds.

    They come in batches as large as they get, on a busy machine, too: one of a single record is not made smaller by
    every codec. `Traffic` does the same slowly, and with an idempotent producer, which needs half a second to begin.
    """
    producer = patient(cluster, topic, **{"compression.type": codec})
    first = int(time.time() * 1_000) - age
    for number in range(records):
        producer.produce(
            topic,
            key=None if number % 11 == 0 else b"key-%d" % number,
            value=None if number % 97 == 0 else b"%d:" % number + b"body" * (number % 64),
            headers=_HEADERS if number % 3 == 0 else None,
            partition=number % partitions,
            timestamp=first + number // 100,
        )
    assert producer.flush(SECONDS) == 0


def log_end(cluster: Cluster, topic: str, partition: int = 0) -> int:
    consumer = Consumer(cluster.librdkafka() | {"group.id": "unused", "log_level": "2"})
    try:
        return int(settled(lambda: consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=5))[1])
    finally:
        consumer.close()


def log_ends(cluster: Cluster, topic: str, partitions: int) -> int:
    """Return the sum of the log ends of a topic's partitions."""
    return sum(log_end(cluster, topic, number) for number in range(partitions))


def wait_until_ends_at(cluster: Cluster, topic: str, end: int) -> None:
    """Wait until the topic's first partition ends there: the answer to a commit comes before its marker."""
    eventually(f"{topic}/0 ends at offset {end}", lambda: log_end(cluster, topic), lambda found: found >= end)


def wait_until_forgotten(cluster: Cluster, topic: str) -> None:
    """Wait until the broker remembers no producer of the topic's first partition."""
    eventually("the broker has forgotten all producers", lambda: producers(cluster, topic), lambda found: not found)


def all_running(statuses: Iterable[PartitionStatus]) -> bool:
    return all(status.state is PartitionState.RUNNING for status in statuses)
