"""Bounds: where partitions begin and end now, asked for all of them at once."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from concurrent.futures import Future
from typing import Any, NamedTuple

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from reconciler.model.cluster import Cluster
from reconciler.model.errors import EnvironmentFault
from reconciler.state import clients
from reconciler.state.faults import is_refusal, no_connection, refused

Log = tuple[str, int]

_SETTINGS = {"socket.connection.setup.timeout.ms": 3000}
# Of a topic that is not there, or grows just now.
_NOT_THERE = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION},
)

_BITS = 2**64 - 1


class Bounds(NamedTuple):
    """Of one partition.

    Attributes:
        start: its first offset.
        end: the offset behind what its readers see: behind the newest record, or before the oldest open transaction.
    """

    start: int
    end: int


class Topic(NamedTuple):
    """What a topic is.

    Attributes:
        topic_id: another one when it is made anew; None where the brokers have none.
        partitions: how many it has.
    """

    topic_id: str | None
    partitions: int


class Asker:
    """Asks one cluster.

    Args:
        cluster: which one.
        seconds: how long an answer may take.
    """

    def __init__(self, cluster: Cluster, seconds: float) -> None:
        self._cluster = cluster
        self._seconds = seconds
        self._client: clients.Renewed[AdminClient] = clients.Renewed(AdminClient, cluster, _SETTINGS)

    def bounds(self, logs: Collection[Log], *, committed: bool) -> dict[Log, Bounds]:
        """Return the bounds of some partitions.

        Args:
            logs: topics and numbers of partitions; of a topic that is not there nobody can be asked.
            committed: whether readers wait for transactions to end.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB313, it does not tell us; or what `clients.make` raises.
        """
        if not logs:
            return {}
        starts = self._asked(logs, OffsetSpec.earliest(), committed)
        ends = self._asked(logs, OffsetSpec.latest(), committed)
        return {log: Bounds(starts[log], ends[log]) for log in starts.keys() & ends.keys()}

    def topics(self, names: Collection[str]) -> dict[str, Topic]:
        """Return what topics of some names are; those that are not there are left out.

        Raises:
            AnabranchError: as `bounds` says.
        """
        if not names:
            return {}
        client = self._client.get()
        answers = client.describe_topics(TopicCollection(list(names)), request_timeout=self._seconds)
        told = {name: self._answer(client, name, answer) for name, answer in answers.items()}
        return {
            name: Topic(_known(found.topic_id), len(found.partitions))
            for name, found in told.items()
            if found is not None
        }

    def _asked(self, logs: Collection[Log], spec: Any, committed: bool) -> dict[Log, int]:
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        client = self._client.get()
        asked = {TopicPartition(*log): spec for log in logs}
        answers = client.list_offsets(asked, isolation_level=level, request_timeout=self._seconds)
        found: dict[Log, int] = {}
        for place, answer in answers.items():
            told = self._answer(client, place.topic, answer)
            if told is not None:
                found[place.topic, place.partition] = int(told.offset)
        return found

    def _answer(self, client: AdminClient, topic: str, answer: Future[Any]) -> Any:
        try:
            # No limit here: the request has one of its own, and ends with a reason.
            return answer.result()
        except KafkaException as failure:
            error = failure.args[0]
        if error.code() in _NOT_THERE:
            return None
        if is_refusal(error):
            raise EnvironmentFault(refused(self._cluster, "DESCRIBE", f"topic {topic}")) from None
        client.poll(0)
        raise no_connection(self._cluster, error, tuple(self._client.reports.errors)) from None

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


def _known(told: Any) -> str | None:
    """Return an id as `replicator` and `state` write it; of no id all bits are 0."""
    most, least = told.get_most_significant_bits() & _BITS, told.get_least_significant_bits() & _BITS
    return str(uuid.UUID(int=most << 64 | least)) if most or least else None
