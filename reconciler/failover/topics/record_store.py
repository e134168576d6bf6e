"""Writes records of other topics to an empty topic: each once, with headers that hold where it was."""

from __future__ import annotations

import contextlib
import time

from confluent_kafka import KafkaError, Message, Producer

from reconciler.failover.topics.topics import Shape, Topics
from reconciler.model.base.errors import AnabranchError, EnvironmentFault, Problem
from reconciler.model.base.shape import Misfit
from reconciler.model.declared.cluster import Cluster
from reconciler.state.confluent import calls, clients
from reconciler.state.confluent.faults import in_words, is_refusal, no_connection, refused, unreachable
from reconciler.state.confluent.replicas import USUAL
from reconciler.state.journals.encoding import header_pairs

TOPIC_HEADER, PARTITION_HEADER, OFFSET_HEADER = "anabranch.topic", "anabranch.partition", "anabranch.offset"

_REASON_SECONDS = 2.0
_POLL_SECONDS = 0.5
# The default of socket.request.max.bytes: brokers refuse larger requests.
_LARGEST = 100 * 2**20
# Records keep their timestamps, so none may be deleted for its age; nor may records of one key be compacted.
_CONFIG = {
    "cleanup.policy": "delete",
    "max.message.bytes": str(_LARGEST),
    "message.timestamp.type": "CreateTime",
    "retention.bytes": "-1",
    "retention.ms": "-1",
}


def ready(cluster: Cluster, topic: str, partitions: int, seconds: float) -> int:
    """Make a topic if there is none, and check that it is empty; return its number of partitions."""
    topics = Topics(cluster, seconds)
    there = topics.look(topic)
    if there is None and not topics.make(topic, Shape(partitions, USUAL, _CONFIG), or_fewer=True):
        there = topics.look(topic)
    if there is not None:
        partitions = there.shape.partitions
    topics.await_led(topic, partitions)
    bounds = topics.bounds(topic, partitions)
    # A leader that does not answer may have records.
    if len(bounds) < partitions or any(first < end for first, end in bounds.values()):
        what = "holds records already: written again, some would be there twice"
        remedy = "name another topic, or delete it where it is what is left of an export that was broken off"
        raise EnvironmentFault(Problem("AB724", f"{cluster.where}, topic {topic}", what, remedy))
    return partitions


def kept_headers(message: Message) -> list[tuple[str, bytes | None]]:
    """Return the headers of a record to export.

    Raises:
        EnvironmentFault: AB717, the client library cannot return them, so the record cannot be kept as it is.
    """
    try:
        return header_pairs(message)
    except Misfit as error:
        where = f"topic {message.topic()}, partition {message.partition()}, offset {message.offset()}"
        what = f"the record has {error}, which the client library cannot return, so it cannot be kept as it is"
        remedy = "nothing was rebuilt; keep it with another tool, delete it (kafka-delete-records.sh), and try again"
        raise EnvironmentFault(Problem("AB717", where, what, remedy)) from None


class Store:
    """Writes records to a topic, each once."""

    def __init__(self, cluster: Cluster, topic: str, seconds: float) -> None:
        self._cluster = cluster
        self._topic = topic
        self._seconds = seconds
        self._failed: list[KafkaError] = []
        self._count = 0
        self._reports = clients.Reports()
        settings = {
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 20,
            "message.max.bytes": _LARGEST,
            "message.timeout.ms": int(seconds * 1000),
        }
        self._producer = clients.make(Producer, cluster, settings, self._reports)

    def put(self, message: Message, partition: int) -> None:
        """Queue one record; it is stored some time later."""
        _, timestamp = message.timestamp()
        headers = [
            *kept_headers(message),
            (TOPIC_HEADER, (message.topic() or "").encode("ascii")),
            (PARTITION_HEADER, b"%d" % (message.partition() or 0)),
            (OFFSET_HEADER, b"%d" % (message.offset() or 0)),
        ]
        while True:
            try:
                self._producer.produce(
                    self._topic,
                    key=message.key(),
                    value=message.value(),
                    headers=headers,
                    partition=partition,
                    timestamp=timestamp,
                    on_delivery=self._note,
                )
                self._producer.poll(0)
            except BufferError:
                # The queue is full; its records are stored, or time out.
                self._wait()
            except calls.RAISED as error:
                self._failed.append(calls.cause_of(error))
            else:
                break
            self._check()
        self._check()

    def _wait(self) -> None:
        try:
            self._producer.poll(_POLL_SECONDS)
        except calls.RAISED as error:
            self._failed.append(calls.cause_of(error))

    def stored(self) -> int:
        """Wait until all records are stored; return their number."""
        try:
            while self._producer.flush(_POLL_SECONDS):
                self._check()
        except calls.RAISED as error:
            # A fatal error is raised by the next call of any kind.
            self._failed.append(calls.cause_of(error))
        self._check()
        return self._count

    def _note(self, error: KafkaError | None, _: Message) -> None:
        if error is None:
            self._count += 1
        else:
            self._failed.append(error)

    def _check(self) -> None:
        if self._reports.not_let_in:
            raise no_connection(self._cluster, self._reports.errors[-1], tuple(self._reports.errors))
        if self._failed:
            raise self._fault()

    def _fault(self) -> AnabranchError:
        # After a fatal error records are purged without a reason; the producer reports the reason a moment later.
        deadline = time.monotonic() + _REASON_SECONDS
        while (
            any(error.code() == KafkaError._FATAL for error in self._failed)
            and not self._reports.errors
            and time.monotonic() < deadline
        ):
            with contextlib.suppress(*calls.RAISED):
                self._producer.poll(_POLL_SECONDS)
        errors = [error for error in self._failed if error.code() != KafkaError._PURGE_QUEUE]
        errors = [*errors, *self._reports.errors] or self._failed
        # Brokers give a producer id only to principals with WRITE on some topic; the library reports a refusal as text.
        if any(is_refusal(error) or "authorization failed" in error.str() for error in errors):
            return EnvironmentFault(refused(self._cluster, "WRITE", f"topic {self._topic}"))
        if errors[0].code() == KafkaError._MSG_TIMED_OUT:
            what = f"records were not stored in topic {self._topic} after {self._seconds:g} s"
            return unreachable(self._cluster, what)
        where = f"{self._cluster.where}, topic {self._topic}"
        remedy = "mend what the cluster names, delete the topic, and export again"
        return EnvironmentFault(Problem("AB725", where, f"a record was not stored: {in_words(errors[0])}", remedy))
