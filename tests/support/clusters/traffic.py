"""Records with keys, headers and set timestamps, produced in the background while something else happens."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence

from confluent_kafka import KafkaException, Producer

from reconciler.embedded import EmbeddedCluster

WEEK_MS = 7 * 24 * 3600 * 1000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Traffic(threading.Thread):
    """Produces `backlog` records at once and the rest at `per_second`, until `records` are out.

    Args:
        cluster: where to.
        topic: an existing topic.
        partitions: of the topic; records go to them in turns.
        records: how many in all.
        backlog: how many of them at once.
        per_second: pace of the rest.
        age_ms: how old the records say they are.
        codec: compression.
    """

    def __init__(
        self,
        cluster: EmbeddedCluster,
        topic: str,
        partitions: int,
        records: int,
        backlog: int,
        *,
        per_second: int = 20_000,
        age_ms: int = 0,
        codec: str = "none",
    ) -> None:
        super().__init__(name=f"traffic-{topic}", daemon=True)
        self.error: BaseException | None = None
        self._topic, self._partitions, self._records = topic, partitions, records
        self._backlog, self._per_second, self._age_ms = backlog, per_second, age_ms
        self._hurry = threading.Event()
        self._producer = Producer(
            cluster.client_config()
            | {
                "linger.ms": 10,
                "compression.type": codec,
                "enable.idempotence": True,
                "queue.buffering.max.messages": 2_000_000,
                "queue.buffering.max.kbytes": 2_000_000,
                "log_level": "2",
            }
        )

    def run(self) -> None:
        try:
            self._produce()
        except BaseException as error:
            self.error = error

    def finish(self) -> None:
        """Send what is left without pausing, and wait until all is stored."""
        self._hurry.set()
        self.join()
        if self.error is not None:
            raise self.error

    def _produce(self) -> None:
        chance = random.Random(self._topic)
        bodies = [chance.randbytes(chance.randrange(20, 400)) for _ in range(64)]
        headers = [("trace", b"abc"), ("empty", b""), ("trace", b"again"), ("none", None)]
        failed: list[object] = []
        began = time.monotonic()
        # Slow traffic flows as well.
        often = max(1, min(1_000, self._per_second // 4))
        first = int(time.time() * 1000) - self._age_ms
        for number in range(self._records):
            self._producer.produce(
                self._topic,
                key=None if number % 11 == 0 else b"key-%d" % number,
                value=None if number % 97 == 0 else b"%d:" % number + bodies[number % 64],
                headers=headers if number % 3 == 0 else None,
                partition=number % self._partitions,
                timestamp=first + number // 100,
                on_delivery=lambda error, _message: failed.append(error) if error is not None else None,
            )
            if number % often == 0:
                self._producer.poll(0)
                ahead = began + max(0, number - self._backlog) / self._per_second - time.monotonic()
                if ahead > 0 and not self._hurry.is_set():
                    self._hurry.wait(ahead)
        assert self._producer.flush(120) == 0
        assert not failed, failed[:3]


class Transactions(threading.Thread):
    """Writes transactions over all partitions of a topic, every third aborted, until told to finish.

    Args:
        cluster: where to.
        topic: an existing topic.
        partitions: of the topic; each transaction has records in all of them.
        ages_ms: how old the records say they are, those of a transaction alike, in turns.
        per_second: how many transactions.
    """

    def __init__(
        self,
        cluster: EmbeddedCluster,
        topic: str,
        partitions: int,
        ages_ms: Sequence[int] = (0,),
        *,
        per_second: float = 5.0,
    ) -> None:
        super().__init__(name=f"transactions-{topic}", daemon=True)
        self._pause = 1 / per_second
        self.error: BaseException | None = None
        self.ended = 0
        self._at_least = 0
        self._topic, self._partitions, self._ages_ms = topic, partitions, ages_ms
        self._over = threading.Event()
        settings = {"transactional.id": f"tests-{topic}", "linger.ms": 1, "log_level": "2"}
        self._producer = Producer(cluster.client_config() | settings)

    def run(self) -> None:
        try:
            self._producer.init_transactions(60)
            while not self._over.is_set() or self.ended < self._at_least:
                began = time.monotonic()
                self._transact(self.ended)
                self.ended += 1
                self._over.wait(began + self._pause - time.monotonic())
        except BaseException as error:
            self.error = error

    def finish(self, at_least: int = 0) -> None:
        """End after the transaction under way, and not before `at_least` have ended; the rest come without pauses."""
        self._at_least = at_least
        self._over.set()
        self.join()
        if self.error is not None:
            raise self.error

    def _transact(self, number: int) -> None:
        """Write one transaction; one that a broker breaks off is aborted, as an application would."""
        try:
            self._write(number)
        except KafkaException as error:
            (cause,) = error.args
            if not cause.txn_requires_abort():
                raise
            self._producer.abort_transaction(60)

    def _write(self, number: int) -> None:
        self._producer.begin_transaction()
        age = self._ages_ms[number % len(self._ages_ms)]
        for partition in range(self._partitions):
            for part in range(1 + (number + partition) % 3):
                self._producer.produce(
                    self._topic,
                    key=b"%d" % number,
                    value=b"%d of %d" % (part, number),
                    partition=partition,
                    timestamp=int(time.time() * 1000) - age,
                )
        self._producer.flush(300)
        if number % 3 == 2:
            self._producer.abort_transaction(60)
        else:
            _patiently(lambda: self._producer.commit_transaction(60))


def _patiently(ask: Callable[[], None]) -> None:
    """Ask again while a broker only was too slow: a transaction is committed or not, and asking again is safe."""
    deadline = time.monotonic() + 120
    while True:
        try:
            return ask()
        except KafkaException as error:
            (cause,) = error.args
            if not cause.retriable() or time.monotonic() > deadline:
                raise
