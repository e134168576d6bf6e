"""Reads from one cluster where partitions begin and end, and what its topics are; for all of them at once.

Callers keep it: its client lives on, and is replaced with one with current secrets where authentication failed.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ClusterMetadata, OffsetSpec

from reconciler.model.base.errors import EnvironmentFault, together
from reconciler.model.declared.cluster import Cluster
from reconciler.model.offsets.committed import Log, LogBounds
from reconciler.state.confluent import clients
from reconciler.state.confluent.faults import LEADER_CHANGES, is_refusal, no_connection, refused

_LOGS_AT_ONCE = 10_000
# The errors of a topic that is missing, or being enlarged.
_NOT_THERE = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION},
)
_BITS = 2**64 - 1
_Answers = Mapping[TopicPartition, Future[Any]]


class TopicRefused(EnvironmentFault):
    """Our user may not DESCRIBE or READ a topic: AB313. Other topics may be allowed."""


Refusals = dict[str, TopicRefused]
"""Why topics are closed to us, by their names."""


class Topic(NamedTuple):
    """What a topic is.

    Attributes:
        topic_id: another one when it is made anew; None where the brokers have none.
        partitions: how many it has.
    """

    topic_id: str | None
    partitions: int


class ClusterLookup:
    """Reads topics and log bounds of one cluster.

    Args:
        cluster: which one.
        seconds: how long an answer may take.
    """

    def __init__(self, cluster: Cluster, seconds: float) -> None:
        self._cluster = cluster
        self._seconds = seconds
        self._held: clients.Renewed[AdminClient] | None = None

    @property
    def _client(self) -> clients.Renewed[AdminClient]:
        self._held = self._held or clients.shared(AdminClient, self._cluster, clients.LOOKUP)
        return self._held

    def metadata(self, seconds: float) -> ClusterMetadata:
        """Return all brokers, and all topics that our user may see, as they are now.

        Args:
            seconds: how long it may take where a connection fails.

        Raises:
            AnabranchError: as `clients.ask` and `clients.make`.
        """
        longest = self._cluster.clients.admin.patience(self._seconds)
        return self._client.ask(clients.listed, seconds, longest)

    def bounds(self, logs: Collection[Log], refusals: Refusals | None = None) -> dict[Log, LogBounds]:
        """Return the bounds of some partitions; those that are not there, or have no leader just now, are left out.

        Args:
            logs: topics and partition numbers; missing topics have no leader that could answer.
            refusals: gets the refusals to DESCRIBE, by topic; with None they are raised.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB313, with every topic that we may not DESCRIBE; or what `clients.make` raises.
        """
        if not logs:
            return {}
        # Both are in flight at the same time. Ends are requested behind them: an offset that is stable now is so later,
        # too.
        under_way = self._asked(logs, OffsetSpec.earliest()), self._asked(logs, OffsetSpec.latest(), committed=True)
        starts, stable = (self._told(answers, refusals) for answers in under_way)
        ends = self._told(self._asked(logs, OffsetSpec.latest()), refusals)
        return {
            log: LogBounds(start, max(start, stable[log]), ends[log])
            for log, start in starts.items()
            if log in stable and log in ends
        }

    def at_time(self, logs: Collection[Log], milliseconds: int) -> dict[Log, int | None]:
        """Return the first offset of each partition whose record is not older than a time, None where all are older.

        Partitions that are not there, or have no leader just now, are left out.

        Args:
            logs: which ones.
            milliseconds: since 1970.

        Raises:
            AnabranchError: as `bounds`.
        """
        found = self._told(self._asked(logs, OffsetSpec.for_timestamp(milliseconds)))
        return {log: offset if offset >= 0 else None for log, offset in found.items()}

    def topics(self, names: Collection[str], refusals: Refusals | None = None) -> dict[str, Topic]:
        """Return topics by name; those that are missing are left out.

        Args:
            names: of which ones.
            refusals: as for `bounds`.

        Raises:
            AnabranchError: as `bounds`.
        """
        if not names:
            return {}
        answers = self._client.get().describe_topics(TopicCollection(list(names)), request_timeout=self._seconds)
        errors: Refusals = {} if refusals is None else refusals
        told = {name: self._answer(name, answer, _NOT_THERE, errors) for name, answer in answers.items()}
        if refusals is None:
            _raise(errors)
        return {
            name: Topic(_known(found.topic_id), len(found.partitions))
            for name, found in told.items()
            if found is not None
        }

    def _asked(self, logs: Collection[Log], spec: OffsetSpec, *, committed: bool = False) -> list[_Answers]:
        """Request an offset of each partition, without waiting."""
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        client = self._client.get()
        return [
            client.list_offsets(
                {TopicPartition(*log): spec for log in portion}, isolation_level=level, request_timeout=self._seconds
            )
            for portion in _portions(list(logs))
        ]

    def _told(self, asked: Sequence[_Answers], refusals: Refusals | None = None) -> dict[Log, int]:
        """Wait for answers."""
        found: dict[Log, int] = {}
        errors: Refusals = {} if refusals is None else refusals
        for answers in asked:
            for place, answer in answers.items():
                # A partition without a leader does not affect the others.
                told = self._answer(place.topic, answer, _NOT_THERE | LEADER_CHANGES, errors)
                if told is not None:
                    found[place.topic, place.partition] = int(told.offset)
        if refusals is None:
            _raise(errors)
        return found

    def _answer(self, topic: str, answer: Future[Any], none: Collection[int], refusals: Refusals) -> Any:
        """Return an answer; None for the errors in `none`, and for a refusal, which is noted."""
        try:
            # No limit here: the request has one of its own, and ends with a reason.
            return answer.result()
        except KafkaException as failure:
            error = failure.args[0]
        if error.code() in none:
            return None
        if is_refusal(error):
            refusals[topic] = TopicRefused(refused(self._cluster, "DESCRIBE", f"topic {topic}"))
            return None
        if (client := self._client.client) is not None:
            client.poll(0)
        raise no_connection(self._cluster, error, tuple(self._client.reports.errors)) from None

    def close(self) -> None:
        """Close the connection where nothing else uses it."""
        self._held = None


def _raise(refusals: Refusals) -> None:
    if refusals:
        raise together([refusals[topic] for topic in sorted(refusals)])


def _portions(logs: Sequence[Log]) -> Iterator[Sequence[Log]]:
    for first in range(0, len(logs), _LOGS_AT_ONCE):
        yield logs[first : first + _LOGS_AT_ONCE]


def _known(told: Any) -> str | None:
    """Return an id as `replicator` and `state` write it; None for the zero id."""
    most, least = told.get_most_significant_bits() & _BITS, told.get_least_significant_bits() & _BITS
    return str(uuid.UUID(int=most << 64 | least)) if most or least else None
