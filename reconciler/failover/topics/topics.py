"""Describes, makes and deletes topics of one cluster, one at a time; each change is waited for."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NoReturn

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import ConfigResource, ConfigSource, NewTopic, OffsetSpec, TopicDescription

from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.base.progress import Progress
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.config_rules import THROTTLES
from reconciler.state.confluent import clients, replicas
from reconciler.state.confluent.faults import UNANSWERED, in_words, is_refusal, refused, unreachable

_FIRST_SECONDS = 10.0
_ANSWER_SECONDS = 30.0
_PAUSE_SECONDS = 0.1
# The id that tools print of a topic without one.
_NO_ID = "A" * 22


@dataclass(frozen=True)
class Shape:
    """Partitions, replicas and configs of a topic.

    Attributes:
        partitions: number of partitions.
        replicas: replication factor.
        configs: configs set on the topic itself.
    """

    partitions: int
    replicas: int
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TopicOnCluster:
    """A topic that exists.

    Attributes:
        topic_id: as Kafka's tools print it, and ownership records hold it; None if brokers have no topic ids.
        shape: its shape now.
    """

    topic_id: str | None
    shape: Shape


class Topics:
    """Describes and changes topics of one cluster.

    Args:
        cluster: the cluster.
        seconds: how long to wait for a change to appear.

    Raises:
        Unreachable: AB310, it does not answer.
        EnvironmentFault: what `clients.ask` and `clients.make` raise, such as a refused login.
    """

    def __init__(self, cluster: Cluster, seconds: float) -> None:
        self._cluster = cluster
        self._seconds = seconds
        self._patience = cluster.clients.admin.patience(_ANSWER_SECONDS)
        self._client, seen = clients.metadata(cluster, _FIRST_SECONDS, _ANSWER_SECONDS)
        self._seen = seen

    def look(self, topic: str) -> TopicOnCluster | None:
        """Return a topic; None if it does not exist.

        Raises:
            Unreachable: AB310, no answer.
            EnvironmentFault: AB313, DESCRIBE or DESCRIBE_CONFIGS is refused; AB726, another answer.
        """
        described = self._described(topic)
        if described is None:
            return None
        (future,) = self._client.describe_configs(
            [ConfigResource(ConfigResource.Type.TOPIC, topic)], request_timeout=self._patience
        ).values()
        entries = self._answer(future, "DESCRIBE_CONFIGS", topic)
        if entries is None:
            return None
        configs = {
            name: entry.value
            for name, entry in sorted(entries.items())
            if ConfigSource(entry.source) is ConfigSource.DYNAMIC_TOPIC_CONFIG
            # Throttles name partitions and brokers of a running reassignment, and are not part of the shape.
            and not (entry.is_sensitive or name in THROTTLES)
        }
        shape = Shape(len(described.partitions), len(described.partitions[0].replicas), configs)
        return TopicOnCluster(_known(described), shape)

    def make(self, topic: str, shape: Shape, or_fewer: bool = False) -> bool:
        """Make a topic, without waiting until it appears; return False if it exists already.

        Args:
            topic: its name.
            shape: its shape.
            or_fewer: whether it gets as many replicas as Anabranch's internal topics there, not those of `shape`.

        Raises:
            Unreachable: AB310, no answer: whether it was made is unknown.
            EnvironmentFault: AB313, CREATE is refused; AB450, one that may have fewer waits for brokers that are down;
                AB726, the cluster does not make it.
        """

        def create(count: int) -> None:
            """Raises KafkaException."""
            new = NewTopic(topic, shape.partitions, count, config=dict(shape.configs))
            self._client.create_topics([new], request_timeout=self._patience)[topic].result()

        try:
            if or_fewer:
                replicas.make(self._seen, create, self._cluster.state_replication_factor)
            else:
                create(shape.replicas)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return False
            if or_fewer and replicas.is_too_few(error.args[0]):
                raise replicas.refused_now(self._cluster, f"topic {topic}", error.args[0], self._seen) from None
            self._raise(error.args[0], "CREATE", topic)
        return True

    def delete(self, topic: str, topic_id: str | None) -> None:
        """Delete a topic, and wait until it is gone; a topic that does not exist is no error.

        Args:
            topic: its name; the topic that has it when the request arrives is deleted.
            topic_id: its id: a topic with another id was made since by another client, and ends the wait.

        Raises:
            Unreachable: AB310, no answer: whether it was deleted is unknown.
            EnvironmentFault: AB313, DELETE is refused; AB726, the cluster does not delete it.
        """
        future = self._client.delete_topics([topic], request_timeout=self._patience)[topic]
        self._answer(future, "DELETE", topic)
        deadline = time.monotonic() + self._seconds
        while (described := self._described(topic)) is not None:
            if topic_id is not None and _known(described) != topic_id:
                return
            if time.monotonic() > deadline:
                raise self._fault(topic, f"is still there {self._seconds:g} s after it was deleted")
            time.sleep(_PAUSE_SECONDS)

    def await_led(self, topic: str, partitions: int, not_id: str | None = None) -> str | None:
        """Wait until a topic appears and the leaders of all its partitions answer; return its id.

        Args:
            topic: its name.
            partitions: the number of partitions that it must have.
            not_id: the id of the topic that had its name before.

        Raises:
            Unreachable: AB310, no answer.
            EnvironmentFault: AB313, DESCRIBE is refused; AB726, it takes too long.
        """
        progress = Progress(self._seconds)
        while True:
            described, led = self._described(topic), 0
            if described is not None and len(described.partitions) >= partitions:
                found = _known(described)
                if found is None or found != not_id:
                    led = len(self._ends(topic, partitions))
                if led == partitions:
                    return found
            if not progress.is_made(partitions - led):
                message = (
                    f"was made, but not every partition has a leader, and for {self._seconds:g} s none has got one"
                )
                raise self._fault(topic, message)
            time.sleep(_PAUSE_SECONDS)

    def bounds(self, topic: str, partitions: int) -> dict[int, tuple[int, int]]:
        """Return the log start and log end offsets of a topic, by partition.

        Partitions whose leader does not answer are left out. Between both there may be transaction markers alone.
        """
        starts, ends = self._ends(topic, partitions, OffsetSpec.earliest()), self._ends(topic, partitions)
        return {number: (starts[number], ends[number]) for number in starts.keys() & ends.keys()}

    def _ends(self, topic: str, partitions: int, spec: Any = None) -> dict[int, int]:
        """Return offsets by partition, log ends by default; partitions without an answering leader are left out."""
        asked = {TopicPartition(topic, number): spec or OffsetSpec.latest() for number in range(partitions)}
        answers = self._client.list_offsets(asked, request_timeout=self._patience)
        return {
            place.partition: int(future.result().offset)
            for place, future in answers.items()
            if future.exception() is None
        }

    def _described(self, topic: str) -> TopicDescription | None:
        future = self._client.describe_topics(TopicCollection([topic]), request_timeout=self._patience)[topic]
        found: TopicDescription | None = self._answer(future, "DESCRIBE", topic)
        return found

    def _answer(self, future: Future[Any], operation: str, topic: str) -> Any:
        """Return an answer; None if the topic does not exist."""
        try:
            # No limit here: the request has one of its own.
            return future.result()
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return None
            self._raise(error.args[0], operation, topic)

    def _raise(self, error: KafkaError, operation: str, topic: str) -> NoReturn:
        if is_refusal(error):
            raise EnvironmentFault(refused(self._cluster, operation, f"topic {topic}")) from None
        if error.code() in UNANSWERED:
            raise unreachable(self._cluster, f"{in_words(error)}; whether it did {operation} is unknown") from None
        raise self._fault(topic, f"{operation} failed: {in_words(error)}") from None

    def _fault(self, topic: str, what: str) -> EnvironmentFault:
        where = f"{self._cluster.where}, topic {topic}"
        return EnvironmentFault(Problem("AB726", where, what, "mend what the cluster names, then run it again"))


def _known(described: TopicDescription) -> str | None:
    found = str(described.topic_id)
    return None if found == _NO_ID else found
