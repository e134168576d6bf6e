"""One read-only connection to one cluster, and what its failures are called.

Called by the rest of this room only. It asks and never changes anything: it has no method that writes. Every failure
becomes one of the house's errors, naming the cluster, its address, and who was refused what.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ClusterMetadata, ConfigEntry, ConfigResource, TopicDescription

from reconciler.model.cluster import Cluster
from reconciler.model.errors import AnabranchError, EnvironmentFault, Problem
from reconciler.state.faults import in_words, is_authentication, is_refusal, principal, refused
from reconciler.state.journal import unreachable

CONNECT_SECONDS = 4.0
ANSWER_SECONDS = 30.0
_FIRST_SECONDS = 0.5
_PAUSE_SECONDS = 0.05
# librdkafka logs lost connections to stderr by itself; here they become errors in our own words.
_QUIET = {"log_level": "2"}
Configs = Mapping[str, ConfigEntry]


class Connection:
    """A connection to one cluster, made at once.

    Args:
        cluster: which one.
        seconds: how long it may take to answer for the first time.

    Raises:
        Unreachable: AB310, nobody answers at its addresses.
        EnvironmentFault: AB312 it does not let us in, AB304 a secret cannot be resolved.
    """

    def __init__(self, cluster: Cluster, seconds: float = CONNECT_SECONDS) -> None:
        self._cluster = cluster
        self._reported: list[KafkaError] = []
        settings = {"error_cb": self._reported.append, "socket.connection.setup.timeout.ms": 3000}
        self._client = AdminClient(cluster.librdkafka() | _QUIET | settings)
        self.metadata = self._connect(seconds)

    def describe_topics(self, names: Collection[str]) -> dict[str, TopicDescription]:
        """Return what the cluster says about the named topics, in one request; those that are gone are left out.

        Raises:
            EnvironmentFault: AB313, DESCRIBE is refused.
            Unreachable: AB310, no answer.
        """
        if not names:
            return {}
        futures = self._client.describe_topics(TopicCollection(list(names)), request_timeout=ANSWER_SECONDS)
        return self._collect({f"topic {name}": futures[name] for name in names}, "DESCRIBE")

    def topic_configs(self, names: Collection[str]) -> dict[str, Configs]:
        """Return every setting of the named topics with its source, in one request.

        Raises:
            EnvironmentFault: AB313, DESCRIBE_CONFIGS is refused.
            Unreachable: AB310, no answer.
        """
        if not names:
            return {}
        wanted = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in names]
        futures = self._client.describe_configs(wanted, request_timeout=ANSWER_SECONDS)
        return self._collect({f"topic {place.name}": future for place, future in futures.items()}, "DESCRIBE_CONFIGS")

    def config_keys(self, topic: str | None) -> frozenset[str]:
        """Return the names of a topic's settings, or of a broker's for None; empty when the user may not see them."""
        kind = ConfigResource.Type.BROKER if topic is None else ConfigResource.Type.TOPIC
        wanted = ConfigResource(kind, str(min(self.metadata.brokers)) if topic is None else topic)
        (future,) = self._client.describe_configs([wanted], request_timeout=ANSWER_SECONDS).values()
        try:
            return frozenset(future.result())
        except KafkaException:
            return frozenset()

    def _connect(self, seconds: float) -> ClusterMetadata:
        """Ask for the topics until they come, and give up early where it is plain that they will not."""
        start = time.monotonic()
        patience = _FIRST_SECONDS
        while True:
            try:
                return self._client.list_topics(timeout=patience)
            except KafkaException as error:
                failure = error.args[0]
            self._client.poll(0)
            # A connection that nothing is wrong with may be slow: the list of a large cluster takes its time.
            left = start + (seconds if self._reported else ANSWER_SECONDS) - time.monotonic()
            if left <= 0 or any(is_authentication(error) for error in self._reported):
                raise self._cannot_connect(failure)
            time.sleep(_PAUSE_SECONDS)
            patience = min(2 * patience, max(left, _FIRST_SECONDS))

    def _cannot_connect(self, failure: KafkaError) -> AnabranchError:
        """Return the error that says why there is no connection, from what librdkafka reported meanwhile."""
        for error in self._reported:
            if is_authentication(error):
                return EnvironmentFault(
                    Problem(
                        "AB312",
                        self._cluster.where,
                        f"does not let {principal(self._cluster)} in: {in_words(error)}",
                        "check security: protocol, mechanism, username and the password it refers to",
                    )
                )
        told = sorted({in_words(error) for error in self._reported if error.code() != KafkaError._ALL_BROKERS_DOWN})
        if told:
            return unreachable(self._cluster, "; ".join(told))
        if any(error.code() == KafkaError._ALL_BROKERS_DOWN for error in self._reported):
            protocol = self._cluster.security.protocol
            return unreachable(self._cluster, f"connections are closed at once; does it speak {protocol}?")
        return unreachable(self._cluster, failure.str())

    def _collect(self, futures: Mapping[str, Future[Any]], operation: str) -> dict[str, Any]:
        """Return the answers by name; what was refused is named, all of it."""
        answers: dict[str, Any] = {}
        problems: list[Problem] = []
        for resource, future in futures.items():
            try:
                # No limit here: the request has one of its own.
                answers[resource.partition(" ")[2]] = future.result()
            except KafkaException as error:
                if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    continue
                if not is_refusal(error.args[0]):
                    raise unreachable(self._cluster, in_words(error.args[0])) from None
                problems.append(refused(self._cluster, operation, resource))
        if problems:
            raise EnvironmentFault(problems)
        return answers
