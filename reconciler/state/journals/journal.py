"""A journal: one compacted, single-partition topic of JSON values by key, on a target cluster.

Ownership, status, control and copies are journals. Only this room opens them, through confluent-kafka.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient

from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.state.confluent import calls, clients, replicas
from reconciler.state.confluent.faults import in_words, is_refusal, no_connection, not_allowed, unreachable
from reconciler.state.journals.encoding import Value, encoded
from reconciler.state.journals.follower import Follower
from reconciler.state.journals.topics import LARGEST_WHOLE, JournalRecord, JournalTopic, make

_LOG = logging.getLogger(__name__)

OnDelivery = Callable[[KafkaError | None, Message], None]
Headers = Sequence[tuple[str, bytes]]

# How often a wait for stored values checks for a refused login, and for reports that another thread got (seconds).
_ANSWER_SECONDS = 0.1


class Journal:
    """One journal on one cluster.

    Args:
        cluster: the target cluster that holds it.
        topic: which journal; asked where it is at the first use.
        timeout: seconds to wait for the cluster in each call.
    """

    def __init__(self, cluster: Cluster, topic: JournalRecord, timeout: float = 10.0) -> None:
        self._cluster = cluster
        self._place = topic
        self._timeout = timeout
        settings = {
            "message.timeout.ms": int(timeout * 1000),
            "linger.ms": 0,
            "enable.idempotence": True,
            # The statuses of thousands of partitions are large; compressed they are small enough for any broker.
            "compression.type": "zstd",
            # A key and what is around it come on top.
            "message.max.bytes": LARGEST_WHOLE + 2**16,
        }
        self._producer: clients.Renewed[Producer] = clients.shared(Producer, cluster, settings)

    @cached_property
    def _topic(self) -> JournalTopic:
        return self._place.at(self._cluster, self._timeout)

    @property
    def where(self) -> str:
        """How messages name this journal."""
        return f"{self._cluster.where}, topic {self._topic.name}"

    def ensure(self) -> bool:
        """Create the topic when it is missing, with three replicas or one on each broker; return whether this call did.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB311 it is refused, AB450 too many brokers are down, or what `clients.ask` raises.
        """
        admin = clients.shared(AdminClient, self._cluster, clients.LOOKUP)
        seen = admin.ask(clients.listed, self._timeout, self._cluster.clients.admin.patience(self._timeout))
        if self._topic.name in seen.topics:
            return False
        try:
            return make(admin.get(), self._topic, seen, self._timeout, self._cluster.state_replication_factor)
        except calls.RAISED as error:
            cause = calls.cause_of(error)
            if replicas.is_too_few(cause):
                raise replicas.refused_now(self._cluster, f"topic {self._topic.name}", cause, seen) from None
            raise self._fault(cause, "CREATE") from None

    def write(self, key: str, value: Value | None) -> int:
        """Write one value, or a tombstone for None, and wait until it is stored; return the offset behind it.

        Raises:
            EnvironmentFault: AB311, the cluster did not take it.
        """
        return self.write_all({key: value})

    def write_all(self, values: Mapping[str, Value | None]) -> int:
        """Write several values and wait until all are stored; return the offset behind the last, 0 for none.

        Raises:
            EnvironmentFault: AB311, the cluster did not take one of them.
        """
        return self.store([(key.encode(), encoded(value)) for key, value in values.items()])

    def store(self, records: Collection[tuple[bytes, bytes | None]], headers: Headers = ()) -> int:
        """Write records as they are and wait until all are stored; return the offset behind the last, 0 for none.

        Args:
            records: keys and values; less than 100,000, librdkafka's queue holds no more.
            headers: of each of them.

        Raises:
            EnvironmentFault: AB311, the cluster did not take one of them.
        """
        if any(value is not None and len(value) > self._topic.largest for _, value in records):
            # Readers would pass over it.
            raise self._fault(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE), "WRITE")
        failed: list[KafkaError] = []
        stored: list[int] = []

        def note(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failed.append(error)
            else:
                stored.append((message.offset() or 0) + 1)

        producer = self._producer.get()
        reports = self._producer.reports
        deadline = time.monotonic() + self._timeout
        try:
            for key, value in records:
                self._post(producer, key, value, note, headers)
            # Its own values alone count: other threads may go on posting, and their calls may get these reports. A poll
            # would not do, as only a flush wakes the client's threads that have just connected.
            while left := len(records) - len(failed) - len(stored):
                if time.monotonic() >= deadline or reports.not_let_in:
                    break
                producer.flush(_ANSWER_SECONDS)
        except (*calls.RAISED, BufferError) as error:
            self._producer.close()
            raise self._ended(error) from None
        if (failed or left) and reports.not_let_in:
            raise no_connection(self._cluster, reports.errors[-1], tuple(reports.errors))
        if failed:
            raise self._fault(failed[0], "WRITE")
        if left:
            raise unreachable(
                self._cluster, f"{left} values not stored in {self._topic.name} after {self._timeout:g} s"
            )
        end = max(stored, default=0)
        _LOG.debug("%s: wrote %d values, up to offset %d", self.where, len(records), end)
        return end

    def post(self, key: str, value: Value | None, on_delivery: OnDelivery | None = None) -> None:
        """Send one value without waiting; what an outage delays longer than the timeout is dropped.

        So is what a producer at its end does not take; the next value has another one.

        Args:
            key: of the value.
            value: the value; None is a tombstone.
            on_delivery: called by a later call of this journal, with the error or None; never for a value that was not
                taken.
        """
        try:
            self._post(self._producer.get(), key.encode(), encoded(value), on_delivery)
        except (*calls.RAISED, BufferError):
            self._producer.close()

    def _post(
        self,
        producer: Producer,
        key: bytes,
        value: bytes | None,
        on_delivery: OnDelivery | None,
        headers: Headers = (),
    ) -> None:
        """Hand one value over. Raises KafkaException."""
        producer.produce(self._topic.name, value=value, key=key, on_delivery=on_delivery, headers=list(headers))
        producer.poll(0)

    def flush(self, seconds: float | None = None) -> None:
        """Wait until everything posted is stored or given up; for so many seconds at most, by default the timeout.

        A producer at its end, as one that the cluster refuses, has given up what it held.
        """
        if (producer := self._producer.client) is None:
            return
        try:
            producer.flush(self._timeout if seconds is None else seconds)
        except calls.RAISED:
            self._producer.close()

    def read(self) -> dict[str, Value]:
        """Return the newest value of every key; empty when the topic does not exist.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB311, reading is refused.
        """
        return self.follow(polls=False).catch_up()

    def follow(self, polls: bool = True) -> Follower:
        """Return a reader that first catches up, then goes on with what is written later, where it polls."""
        return Follower(self._cluster, self._place, self._timeout, polls)

    def _ended(self, error: BaseException) -> EnvironmentFault:
        """Return why the producer came to its end.

        A fatal error is raised by whatever is called next; where that calls back meanwhile, as the cause of another.
        """
        if isinstance(error, BufferError):
            return unreachable(self._cluster, f"too much waits to be stored in {self._topic.name}")
        cause = calls.cause_of(error)
        if "authorization failed" in cause.str():
            # Brokers give a producer its id only where it may WRITE to some topic.
            return EnvironmentFault(not_allowed(self._cluster, self._topic.name, "WRITE"))
        return self._fault(cause, "WRITE")

    def _fault(self, error: KafkaError, operation: str) -> EnvironmentFault:
        if is_refusal(error):
            return EnvironmentFault(not_allowed(self._cluster, self._topic.name, operation))
        if error.code() in calls.SILENT:
            return unreachable(self._cluster, f"{operation} on topic {self._topic.name}: {in_words(error)}")
        return EnvironmentFault(
            Problem("AB311", self.where, f"{operation} failed: {in_words(error)}", "check the cluster")
        )
