"""Reads a journal from its start, then what is appended. `Journal.follow` makes one."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cached_property, partial
from operator import itemgetter

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from reconciler.model.base.errors import EnvironmentFault
from reconciler.model.base.shape import Misfit
from reconciler.model.declared.cluster import Cluster
from reconciler.state.confluent import calls, clients
from reconciler.state.confluent.faults import no_connection, not_allowed, unreachable
from reconciler.state.journals import strangers, unreadable
from reconciler.state.journals.encoding import Value, fitting, place, read
from reconciler.state.journals.topics import JournalRecord, JournalTopic

_LOG = logging.getLogger(__name__)

# `consume` waits for its whole timeout unless hundreds of values arrive.
_CATCH_UP_PAUSE = 0.02
# As many records of one key are kept until the newest of them that fits is looked for.
_UNREAD = 64
_MOST_STRANGE = 1_000


class _Newest:
    """The newest records of each key. Only what counts in the end is decoded: a task's status is written every second.

    Args:
        decode: returns key and value of a record; raises Misfit where it does not fit, so that the one before it
            counts.
    """

    def __init__(self, decode: Callable[[Message], tuple[str, Value | None]]) -> None:
        self._decode = decode
        self._records: dict[bytes, list[Message]] = {}
        self._strange: list[tuple[int, Misfit]] = []

    def add(self, record: Message) -> None:
        """Take a record behind all others."""
        records = self._records.setdefault(record.key() or b"", [])
        records.append(record)
        if len(records) > _UNREAD:
            found = self._newest(records)
            records[:] = [] if found is None else [found[0]]

    def values(self) -> dict[str, Value | None]:
        """Return the newest value of every key, None for a tombstone."""
        return dict(one[1] for records in self._records.values() if (one := self._newest(records)) is not None)

    def strange(self) -> list[tuple[int, Misfit]]:
        """Return the offsets of records that were passed over, the first of them in their order, and why."""
        return sorted(self._strange, key=itemgetter(0))

    def _newest(self, records: list[Message]) -> tuple[Message, tuple[str, Value | None]] | None:
        """Return the newest record that fits, and what it holds."""
        for record in reversed(records):
            try:
                return record, self._decode(record)
            except Misfit as error:
                self._strange.append((record.offset() or 0, error))
                if len(self._strange) > _MOST_STRANGE:
                    # The first alone are named.
                    self._strange = self.strange()[: strangers.MOST + 1]
        return None


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
        consumer = self._clients.get()
        known = self._ends(consumer)
        if known is None:
            self.next_offset = 0
            return {}
        start, end = known
        values = {key: value for key, value in self._newest(consumer, start, end).items() if value is not None}
        where = place(self._cluster, self._topic.name)
        _LOG.debug("%s: read %d keys, offsets %d to %d", where, len(values), start, self.next_offset)
        return values

    def appended(self) -> dict[str, Value | None] | None:
        """Return the newest value of every key that was written since the last read, up to the end as it is now.

        None as a value is a tombstone. None instead of values: the topic ends before what was read, as it was made
        anew or has lost records.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB311, reading is refused.
        """
        consumer, begin = self._clients.get(), self.next_offset
        known = self._ends(consumer)
        if known is None or not known[0] <= begin <= known[1]:
            return None
        return self._newest(consumer, begin, known[1]) if begin < known[1] else {}

    def _ends(self, consumer: Consumer) -> tuple[int, int] | None:
        """Return the bounds of the topic; None where it does not exist. Raises what `catch_up` does."""
        look = partial(self._bounds, consumer)
        known = clients.ask(self._cluster, consumer, self._clients.reports, look, self._timeout)
        # A client that has seen the topic missing may say so once more when it is there.
        if known is None and self._check_missing(consumer, self._timeout):
            known = clients.ask(self._cluster, consumer, self._clients.reports, look, self._timeout)
            if known is None:
                raise unreachable(self._cluster, f"{self._topic.name} has no leader")
        return known

    def _newest(self, consumer: Consumer, begin: int, end: int) -> dict[str, Value | None]:
        """Return the newest value of every key between two offsets, None for a tombstone."""
        newest = _Newest(partial(fitting, cluster=self._cluster, topic=self._topic))
        self._assign(consumer, begin)
        deadline = time.monotonic() + self._timeout
        self.next_offset = begin
        while (before := self.next_offset) < end:
            for record in self._records(consumer, _CATCH_UP_PAUSE):
                newest.add(record)
            if self.next_offset > before:
                deadline = time.monotonic() + self._timeout
            elif time.monotonic() > deadline:
                raise unreachable(self._cluster, f"{self._topic.name} cannot be read to its end")
        if not self._polls:
            with self._ours():
                consumer.unassign()
        values = newest.values()
        for offset, why in newest.strange():
            strangers.note(place(self._cluster, self._topic.name), offset, str(why))
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
        for record in self._records(consumer, timeout):
            if (found := read(record, self._cluster, self._topic)) is not None:
                yield found

    def _records(self, consumer: Consumer, timeout: float) -> Iterator[Message]:
        with self._ours():
            messages = consumer.consume(num_messages=500, timeout=timeout)
        for message in messages:
            error = message.error()
            if error is None:
                self.next_offset = (message.offset() or 0) + 1
                yield message
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
