"""Sends records at a steady rate and receives them, here or where they are replicated to, by one clock in one process.

`latency` measures with it. Every record carries when it was handed to the producer; what is measured ends when the
consumer hands it out. The producer never waits for more (linger 0), so each record is a batch of its own. It must stay
cheap: two threads, one of which sleeps until the next record is due, and the other waits in the client.
"""

from __future__ import annotations

import itertools
import os
import struct
import threading
import time
from array import array
from collections.abc import Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from reconciler.model.base.errors import EnvironmentFault, Problem

_SENT = struct.Struct(">q")
_NS = 10**9
_TURN = 0.1
_PAUSE = 0.05
_TRICKLE = 0.1
_FLUSH_SECONDS = 30
_SERVE_EVERY = 100
_OPEN = 2**63 - 1


@dataclass(frozen=True)
class Stream:
    """What is sent.

    Attributes:
        rate: records a second, all partitions together.
        size: bytes of a value; there is no key.
        partitions: of the topic, served in turn.
    """

    rate: int = 1000
    size: int = 250
    partitions: int = 8


@dataclass(frozen=True)
class Trips:
    """The records that were sent in a window of time.

    Attributes:
        sent: how many.
        latencies: nanoseconds of each that was received, in ascending order.
        late: by how many seconds the record that was sent latest was late.
    """

    sent: int
    latencies: array[int]
    late: float


class Probe:
    """A producer and a consumer.

    Args:
        stream: what to send.
        sent_to: how a client connects, and the topic.
        received_from: the same of where the records come out.
    """

    def __init__(
        self, stream: Stream, sent_to: tuple[Mapping[str, str], str], received_from: tuple[Mapping[str, str], str]
    ) -> None:
        self._stream = stream
        client, self._topic = sent_to
        prompt = {"socket.nagle.disable": True, "log_level": 2}
        self._producer = Producer({**client, **prompt, "linger.ms": 0, "acks": "all"})
        client, remote = received_from
        self._consumer = Consumer({**client, **prompt, "group.id": f"{remote}-probe", "enable.auto.commit": False})
        self._consumer.assign([TopicPartition(remote, number, 0) for number in range(stream.partitions)])
        self._ending = threading.Event()
        self._steady = threading.Event()
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._send, self._receive)]
        self._failure = ""
        # The window: written by the one who measures, read by both threads.
        self._from = self._until = _OPEN
        self._sent = 0
        self._late = 0.0
        self._latencies: array[int] = array("q")
        self._seen = 0

    def start(self) -> None:
        """Begin to receive, and to send some records a second, so that no backlog waits for what still starts."""
        for thread in self._threads:
            thread.start()

    @property
    def seen(self) -> int:
        """How many records have come out."""
        return self._seen

    def raise_failure(self) -> None:
        """Raise what went wrong at a client.

        Raises:
            EnvironmentFault: AB351.
        """
        if self._failure:
            raise EnvironmentFault(Problem("AB351", f"topic {self._topic}", self._failure, "run it again"))

    def steady(self) -> None:
        """Send at the rate from now on."""
        self._steady.set()

    def open(self) -> None:
        """Begin the window: records count that are sent from now on."""
        self._from = time.monotonic_ns()

    def close_window(self, seconds: float) -> Trips:
        """End the window, wait until all of its records have come out, and return them.

        Args:
            seconds: how long to wait for the last.
        """
        self._until = time.monotonic_ns()
        deadline = time.monotonic() + seconds
        # One more turn, so that what was being sent is counted.
        time.sleep(_PAUSE)
        while len(self._latencies) < self._sent and time.monotonic() < deadline:
            time.sleep(_PAUSE)
        return Trips(self._sent, array("q", sorted(self._latencies)), self._late)

    def end(self) -> None:
        """Stop sending and receiving; may be called in any state."""
        self._ending.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
        self._producer.flush(_FLUSH_SECONDS)
        self._consumer.close()

    def _send(self) -> None:
        stream = self._stream
        tail = os.urandom(max(0, stream.size - _SENT.size))
        while not self._steady.wait(_TRICKLE) and not self._ending.is_set():
            self._send_one(0, tail, 0.0)
        began = time.monotonic_ns()
        for number in itertools.count():
            due = began + number * _NS // stream.rate
            while (early := due - time.monotonic_ns()) > 0:
                time.sleep(early / _NS)
            if self._ending.is_set():
                return
            self._send_one(number % stream.partitions, tail, -early / _NS)
            if number % _SERVE_EVERY == 0:
                self._producer.poll(0)

    def _send_one(self, partition: int, tail: bytes, late: float) -> None:
        now = time.monotonic_ns()
        # Counted first: the consumer may be quicker than the next line.
        if self._from <= now < self._until:
            self._sent += 1
            self._late = max(self._late, late)
        self._producer.produce(self._topic, _SENT.pack(now) + tail, partition=partition, on_delivery=self._delivered)

    def _receive(self) -> None:
        while not self._ending.is_set():
            one = self._consumer.poll(_TURN)
            if one is None:
                continue
            if (error := one.error()) is not None:
                self._failure = error.str()
                continue
            now = time.monotonic_ns()
            (sent,) = _SENT.unpack_from(one.value())
            self._seen += 1
            if self._from <= sent < self._until:
                self._latencies.append(now - sent)

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failure = error.str()


def percentile(ascending: array[int], share: float) -> int:
    """Return the value below or at which a share of all values lie (nearest rank).

    Args:
        ascending: at least one value.
        share: 0 to 1.
    """
    rank = max(1, -(-len(ascending) * round(share * 10_000) // 10_000))
    return ascending[rank - 1]
