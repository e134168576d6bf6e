"""Reads logs record by record, where no offset sync covers them; transactions are respected."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from itertools import islice

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from reconciler.checkpoints.groups.bounds import TopicRefused
from reconciler.checkpoints.translation.pairing import SeenRecord
from reconciler.model.declared.cluster import Cluster
from reconciler.model.offsets.committed import Log
from reconciler.state.confluent import calls, clients
from reconciler.state.confluent.faults import no_connection, refused, unreachable
from reconciler.state.journals import unreadable

_AT_ONCE = 5_000
# The library waits for the full time, also after it has reported the end.
_POLL_SECONDS = 0.02
_SETTINGS = {
    # The library requires one; no consumer joins it and nothing is committed.
    "group.id": "anabranch-unused",
    "enable.auto.commit": False,
    # Where records are deleted already, reading begins behind them.
    "auto.offset.reset": "earliest",
    "fetch.wait.max.ms": 5,
    # Several partitions are walked one after the other: what is fetched ahead of one is thrown away.
    "queued.max.messages.kbytes": 16_384,
    **unreadable.SETTINGS,
}


class TooManyRecords(Exception):
    """More records would have to be read than the limit."""


class RecordReader:
    """Reads one cluster's partitions.

    Args:
        cluster: which one.
        committed: whether to read `read_committed`.
        seconds: how long the cluster may take to answer.
        may_pass: whether batches that cannot be decompressed are passed over, as in topics of ours that others write
            to.
    """

    def __init__(self, cluster: Cluster, *, committed: bool, seconds: float, may_pass: bool = False) -> None:
        self._may_pass = may_pass
        self._cluster = cluster
        self._seconds = seconds
        level = "read_committed" if committed else "read_uncommitted"
        self._clients: clients.Renewed[Consumer] = clients.Renewed(
            Consumer, cluster, _SETTINGS | {"isolation.level": level}
        )

    def messages(self, topic: str, partition: int, first: int, end: int | None = None) -> Iterator[Message]:
        """Yield the records of a partition, from one offset up to another, or up to the end as it is now.

        The last message is not a record but the offset that is reached, with `_PARTITION_EOF` as its error: up to there
        transactions are ended. It does not come where `end` was reached before.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB313, reading is refused; or what `clients.make` raises.
        """
        consumer = self._clients.get()
        with calls.ours(self._cluster, f"topic {topic}", reports=self._clients.reports):
            consumer.assign([TopicPartition(topic, partition, first)])
        try:
            for message in self._polled(topic, consumer):
                if end is not None and (message.offset() or 0) >= end:
                    return
                yield message
                if message.error() is not None:
                    return
        finally:
            with contextlib.suppress(*calls.RAISED):
                consumer.unassign()

    def _polled(self, topic: str, consumer: Consumer) -> Iterator[Message]:
        deadline = time.monotonic() + self._seconds
        while True:
            with calls.ours(self._cluster, f"topic {topic}", reports=self._clients.reports):
                messages = consumer.consume(_AT_ONCE, _POLL_SECONDS)
            for message in messages:
                error = message.error()
                if error is None or error.code() == KafkaError._PARTITION_EOF:
                    deadline = time.monotonic() + self._seconds
                    yield message
                elif error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                    raise TopicRefused(refused(self._cluster, "READ", f"topic {topic}"))
                elif self._may_pass and unreadable.is_unreadable(error):
                    unreadable.pass_over(consumer, self._cluster, message, self._seconds)
                    break
            reports = self._clients.reports
            if reports.not_let_in or (time.monotonic() > deadline and reports.errors):
                raise no_connection(self._cluster, reports.errors[-1], tuple(reports.errors))
            if time.monotonic() > deadline:
                raise unreachable(self._cluster, f"topic {topic} cannot be read to its end")

    def seen(self, topic: str, partition: int, first: int, end: int | None, most: int) -> list[SeenRecord]:
        """Return the records of a partition, from one offset up to another, or up to the end as it is now.

        Raises:
            TooManyRecords: they are more than `most`.
            AnabranchError: as `messages`.
        """
        found = list(islice(self.records(topic, partition, first, end), most + 1))
        if len(found) > most:
            raise TooManyRecords
        return found

    def records(self, topic: str, partition: int, first: int, end: int | None = None) -> Iterator[SeenRecord]:
        """Yield the records of a partition, from one offset up to another, or up to the end as it is now.

        Raises:
            AnabranchError: as `messages`.
        """
        for message in self.messages(topic, partition, first, end):
            if message.error() is not None:
                return
            # Equal for equal records within this process.
            mark = hash((message.key(), message.value(), message.timestamp()[1]))
            yield SeenRecord(message.offset() or 0, mark)

    def first(self, topic: str, partition: int, offset: int, end: int | None = None) -> int | None:
        """Return the offset of the first record at or behind another, before `end`; None when there is none yet.

        Raises:
            AnabranchError: as `messages`.
        """
        for message in self.messages(topic, partition, offset, end):
            if message.error() is None:
                return int(message.offset() or 0)
        return None

    def is_empty(self, log: Log, part: tuple[int, int | None]) -> bool:
        """Return whether a part of a partition, up to an offset or to the end as it is now, holds no record.

        Raises:
            AnabranchError: as `messages`.
        """
        begin, end = part
        return (end is not None and begin >= end) or self.first(*log, *part) is None

    def close(self) -> None:
        """Close the connection."""
        self._clients.close()
