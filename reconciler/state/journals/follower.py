"""Reads a journal from its start, then what is appended. `Journal.follow` makes one."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import cached_property, partial

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from reconciler.model.base.errors import EnvironmentFault
from reconciler.model.declared.cluster import Cluster
from reconciler.state.confluent import calls, clients
from reconciler.state.confluent.faults import no_connection, not_allowed, unreachable
from reconciler.state.journals import unreadable
from reconciler.state.journals.encoding import Value, place, read
from reconciler.state.journals.topics import JournalRecord, JournalTopic

_LOG = logging.getLogger(__name__)

# `consume` waits for its whole timeout unless hundreds of values arrive.
_CATCH_UP_PAUSE = 0.02


class Follower:
    """Reads a journal from its start, then whatever is appended.

    Args:
        cluster: the target cluster that holds it.
        topic: which journal.
        timeout: seconds to wait for the cluster in each call.
        polls: whether it goes on with `poll`. Else it pauses in between, and the next read waits for no long poll.

    Attributes:
        next_offset: up to where it has read.
    """

    def __init__(self, cluster: Cluster, topic: JournalRecord, timeout: float, polls: bool = True) -> None:
        self._cluster = cluster
        self._place = topic
        self._timeout = timeout
        self._polls = polls
        settings = {
            "group.id": "anabranch-unused",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            # Long polls cost nothing, and bring an appended value at once.
            "fetch.wait.max.ms": 500 if polls else 5,
            "isolation.level": "read_uncommitted",
            **unreadable.SETTINGS,
        }
        self._clients: clients.Renewed[Consumer] = clients.Renewed(Consumer, cluster, settings)
        # The consumer whose offset is set.
        self._assigned: Consumer | None = None
        self.next_offset = 0

    @cached_property
    def _topic(self) -> JournalTopic:
        return self._place.at(self._cluster, self._timeout)

    def catch_up(self) -> dict[str, Value]:
        """Return the newest value of every key, up to the end as it is now.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB311, reading is refused.
        """
        values: dict[str, Value] = {}
        consumer = self._clients.get()
        known = clients.ask(
            self._cluster, consumer, self._clients.reports, partial(self._bounds, consumer), self._timeout
        )
        if known is None:
            self._check_missing(consumer, self._timeout)
            return values
        start, end = known
        self._assign(consumer, start)
        deadline = time.monotonic() + self._timeout
        self.next_offset = start
        while (before := self.next_offset) < end:
            for key, value in self._read(consumer, _CATCH_UP_PAUSE):
                if value is None:
                    values.pop(key, None)
                else:
                    values[key] = value
            if self.next_offset > before:
                deadline = time.monotonic() + self._timeout
            elif time.monotonic() > deadline:
                raise unreachable(self._cluster, f"{self._topic.name} cannot be read to its end")
        if not self._polls:
            with self._ours():
                consumer.unassign()
        where = place(self._cluster, self._topic.name)
        _LOG.debug("%s: read %d keys, offsets %d to %d", where, len(values), start, self.next_offset)
        return values

    def _assign(self, consumer: Consumer, offset: int) -> None:
        with self._ours():
            consumer.assign([TopicPartition(self._topic.name, 0, offset)])
        self._assigned = consumer

    def _ours(self) -> AbstractContextManager[None]:
        return calls.ours(self._cluster, f"topic {self._topic.name}", reports=self._clients.reports)

    def poll(self, timeout: float) -> Iterator[tuple[str, Value | None]]:
        """Yield what has arrived, waiting at most `timeout` seconds for the first value.

        Raises:
            EnvironmentFault: AB311, reading is refused.
        """
        consumer = self._clients.get()
        if consumer is not self._assigned:
            # The topic did not exist at catch-up, or this is another client.
            self._assign(consumer, self.next_offset)
        yield from self._read(consumer, timeout)

    def arrived(self, patience: float = 0.0) -> Iterator[tuple[str, Value | None]]:
        """Yield all that has come since, however much that is, without waiting for more.

        Args:
            patience: seconds that the cluster may take to answer with the end of the topic, up to which all is read
                then. With 0 there is no such request: of a cluster that is away nothing arrives.

        Raises:
            Unreachable: AB310, no answer, or no read up to the end; or what `faults.no_connection` returns.
            EnvironmentFault: AB311, reading is refused.
        """
        deadline = time.monotonic() + self._timeout
        # A poll returns some hundreds, and a caller that polls once a minute has thousands to read.
        while (some := list(self.poll(0.0))) and time.monotonic() < deadline:
            yield from some
        yield from some
        if not patience:
            return
        consumer = self._clients.get()
        try:
            known = self._bounds(consumer, patience)
            # A client also loses a topic's leader when the brokers are away.
            if known is None and self._check_missing(consumer, patience):
                known = self._bounds(consumer, patience)
                if known is None:
                    raise unreachable(self._cluster, f"{self._topic.name} has no leader")
        except KafkaException as error:
            raise no_connection(self._cluster, error.args[0], tuple(self._clients.reports.errors)) from None
        deadline = time.monotonic() + patience
        while known is not None and max(known[0], self.next_offset) < known[1]:
            if some := list(self.poll(_CATCH_UP_PAUSE)):
                deadline = time.monotonic() + patience
                yield from some
            elif time.monotonic() > deadline:
                raise unreachable(self._cluster, f"{self._topic.name} cannot be read to its end")

    def _bounds(self, consumer: Consumer, patience: float) -> tuple[int, int] | None:
        """Return where the topic begins and ends; None where it does not exist. Raises KafkaException."""
        try:
            return clients.watermarks(consumer, self._topic.name, 0, patience)
        except KafkaException as error:
            if error.args[0].code() in (KafkaError._UNKNOWN_PARTITION, KafkaError.UNKNOWN_TOPIC_OR_PART):
                return None
            raise

    def _read(self, consumer: Consumer, timeout: float) -> Iterator[tuple[str, Value | None]]:
        with self._ours():
            messages = consumer.consume(num_messages=500, timeout=timeout)
        for message in messages:
            error = message.error()
            if error is None:
                self.next_offset = (message.offset() or 0) + 1
                if (found := read(message, self._cluster, self._topic)) is not None:
                    yield found
            elif error.code() == KafkaError._PARTITION_EOF:
                self.next_offset = max(self.next_offset, message.offset() or 0)
            elif unreadable.is_unreadable(error):
                self.next_offset = unreadable.pass_over(consumer, self._cluster, message, self._timeout)
                return
            elif error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise self._refused()

    def close(self) -> None:
        """Close the connection."""
        self._clients.close()

    def _check_missing(self, consumer: Consumer, patience: float) -> bool:
        """Return whether the topic exists, as one that this user may not describe has no partitions either.

        Raises:
            EnvironmentFault: AB311, READ is refused; or what `faults.no_connection` returns.
        """
        try:
            found = clients.one_topic(consumer, patience, self._topic.name)
        except KafkaException as error:
            raise no_connection(self._cluster, error.args[0], tuple(self._clients.reports.errors)) from None
        if found.error is not None and found.error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise self._refused()
        return found.error is None

    def _refused(self) -> EnvironmentFault:
        return EnvironmentFault(not_allowed(self._cluster, self._topic.name, "READ"))
