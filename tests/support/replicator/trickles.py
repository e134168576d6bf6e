"""Records that trickle in one by one, and the expresses that they go by: how often, and how many."""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

import pytest
from confluent_kafka import Producer

from reconciler.embedded import EmbeddedCluster
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.transfer import fetcher
from reconciler.replicator.transfer.fast_path import FastPath
from reconciler.replicator.transfer.fast_path_partition import FastPathBatch
from reconciler.replicator.transfer.sender import Sender
from reconciler.wire import Direct, FetchAsk
from tests.support.clusters.kafka import create
from tests.support.replicator.copying import REMOTE, SECONDS, run_of_thread

PARTITIONS = 4
_SOON = 0.2
Todo = Callable[[Direct, Sequence[FastPathBatch]], None]
_HEADERS = [("trace", b"abc"), ("empty", b""), ("trace", b"again"), ("none", None)]


def make(
    source: EmbeddedCluster, target: EmbeddedCluster, name: str, replicas: int = 1, partitions: int = PARTITIONS
) -> tuple[str, str]:
    """Make two topics and their remote ones; return their names, both of which begin with `name` and a dash."""
    topics = f"{name}-a", f"{name}-b"
    for topic in topics:
        create(source, topic, partitions)
        create(target, f"east.{topic}", partitions, REMOTE, replicas)
    return topics


class Trickle(threading.Thread):
    """Produces records of many shapes, each in a batch of its own, to all partitions of some topics in turns.

    Args:
        cluster: where to, or how to log in there.
        topics: existing topics.
        partitions: of each.
        per_second: how many records.

    Attributes:
        sent: how many there are by now.
        rests: while it is set, nothing is produced.
    """

    def __init__(
        self,
        cluster: EmbeddedCluster | Mapping[str, str],
        topics: Sequence[str],
        partitions: int = PARTITIONS,
        per_second: int = 400,
    ) -> None:
        super().__init__(name=f"trickle-{topics[0]}", daemon=True)
        self.sent = 0
        self.rests = threading.Event()
        self.error: BaseException | None = None
        self._topics, self._partitions, self._per_second = topics, partitions, per_second
        self._is_over = threading.Event()
        config = cluster.client_config() if isinstance(cluster, EmbeddedCluster) else dict(cluster)
        self._producer = Producer(config | {"linger.ms": 0, "batch.num.messages": 1, "log_level": "2"})

    def __enter__(self) -> Trickle:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.finish()

    def finish(self) -> int:
        """Produce no more, wait until all is stored, and return how many records there are."""
        self._is_over.set()
        self.join()
        if self.error is not None:
            raise self.error
        return self.sent

    def run(self) -> None:
        try:
            self._produce()
        except BaseException as error:
            self.error = error

    def _produce(self) -> None:
        failed: list[object] = []
        while not self._is_over.wait(1 / self._per_second):
            if self.rests.is_set():
                self._producer.flush(SECONDS)
                continue
            number = self.sent
            turn, partition = divmod(number, self._partitions)
            self._producer.produce(
                self._topics[turn % len(self._topics)],
                key=None if number % 11 == 0 else b"key-%d" % number,
                value=None if number % 97 == 0 else b"%d:" % number + b"body" * (number % 64),
                headers=_HEADERS if number % 3 == 0 else None,
                partition=partition,
                on_delivery=lambda error, _message: failed.append(error) if error is not None else None,
            )
            self.sent += 1
            self._producer.poll(0)
        assert self._producer.flush(SECONDS) == 0
        assert not failed, failed[:3]


class Line:
    """Watches the expresses of all tasks in this process.

    Args:
        monkeypatch: puts it in.

    Attributes:
        boardings: how often one was boarded, by the thread's name: a run's, where `Running` runs it.
        records: how many records were sent by express, likewise.
        express: the newest one.
        aboard: called in the task's thread whenever records are about to be sent by express, with these.
        nodes: the brokers of the target that records were sent to.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.boardings: Counter[str] = Counter()
        self.records: Counter[str] = Counter()
        self.express: FastPath | None = None
        self.aboard: Todo | None = None
        self.nodes: set[int] = set()
        run, send = FastPath.run, Sender.send_fast

        async def boarded(express: FastPath, channels: Mapping[Channel, FetchAsk], changed: Sequence[FetchAsk]) -> None:
            self.boardings[run_of_thread()] += 1
            self.express = express
            await run(express, channels, changed)

        def sent(writer: Sender, direct: Direct, sent_batches: Sequence[FastPathBatch], now: float) -> None:
            if self.aboard is not None:
                self.aboard(direct, sent_batches)
            self.records[run_of_thread()] += sum(sent_batch.records for _, sent_batch in sent_batches)
            self.nodes.add(writer._node)
            send(writer, direct, sent_batches, now)

        # A busy machine's answers are never as quick as an express asks for, one after the other.
        monkeypatch.setattr(fetcher, "_SOON", _SOON)
        monkeypatch.setattr(FastPath, "run", boarded)
        monkeypatch.setattr(Sender, "send_fast", sent)

    def await_records(self, more: int = 100, run: str = "") -> None:
        """Wait until so many more records were sent by express than now: by a run, or by all if none is named."""

        def sent() -> int:
            return self.records[run] if run else self.records.total()

        records = sent() + more
        deadline = time.monotonic() + SECONDS
        while sent() < records:
            assert time.monotonic() < deadline, f"no express goes: {self.boardings}, {self.records}"
            time.sleep(0.01)

    def do_aboard(self, todo: Todo, topic: str = "", feed: Callable[[], None] = lambda: None) -> None:
        """Do something once, in the task's thread right before records are sent by express, and wait until it is done.

        Args:
            todo: what.
            topic: whose records must be among them; the next ones, if none is named.
            feed: called twice a second until then.
        """
        done = threading.Event()

        def do(direct: Direct, sent_batches: Sequence[FastPathBatch]) -> None:
            if not topic or topic in {entry.channel.place.topic for entry, _ in sent_batches}:
                self.aboard = None
                todo(direct, sent_batches)
                done.set()

        self.aboard = do
        deadline = time.monotonic() + SECONDS
        while not done.is_set():
            assert time.monotonic() < deadline, "no express goes"
            feed()
            done.wait(0.5)

    def break_source(self) -> None:
        """Break the connection of the newest express to the source."""
        assert self.express is not None
        cut(self.express._over.source)

    def break_target(self) -> None:
        """Break the connections of the newest express to the target."""
        assert self.express is not None
        for _, direct in self.express._over.targets.values():
            cut(direct)


def cut(direct: Direct, _: Sequence[FastPathBatch] = ()) -> None:
    """Break a connection, as if the broker had."""
    sock = direct._transport._sock
    if sock is not None:
        sock.shutdown(socket.SHUT_RDWR)
