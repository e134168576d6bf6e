"""One read-only connection to one cluster, and the errors that its failures become.

Called by the rest of this room only. It has no method that writes, and requests that would change something are sent as
validate-only. Every failure becomes one of the product's errors, which names the cluster, its address, the user and the
refused operation.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from concurrent.futures import Future
from typing import Any, Literal

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    TopicDescription,
)

from reconciler.model.acls.binding import Binding, Sight
from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.planning.observed import Offsets
from reconciler.observe import registered
from reconciler.observe.reach import ANSWER_SECONDS, CONNECT_SECONDS, reached
from reconciler.state.confluent import bindings
from reconciler.state.confluent.faults import in_words, is_refusal, refused, unreachable

OFFSETS_SECONDS = 10.0
Configs = Mapping[str, ConfigEntry]


def operations_of(described: Any) -> frozenset[str] | None:
    """Return the authorised operations of a description by Kafka's names; None when the response has none."""
    operations = described.authorized_operations
    return None if operations is None else frozenset(operation.name for operation in operations)


class Connection:
    """A connection to one cluster, made at once.

    Args:
        cluster: which one.
        seconds: how long it may take to answer for the first time.

    Raises:
        AnabranchError: those of `reach.reached`.
    """

    def __init__(self, cluster: Cluster, seconds: float = CONNECT_SECONDS) -> None:
        self._cluster = cluster
        self._operations: frozenset[str] | None = None
        self._patience = cluster.clients.admin.patience(ANSWER_SECONDS)
        self._client, self.metadata = reached(cluster, seconds)

    def describe_topics(self, names: Collection[str]) -> dict[str, TopicDescription]:
        """Return the descriptions of the named topics, from one request; topics that do not exist are left out.

        Raises:
            EnvironmentFault: AB313, DESCRIBE is refused.
            Unreachable: AB310, no answer.
        """
        if not names:
            return {}
        futures = self._client.describe_topics(
            TopicCollection(list(names)), include_authorized_operations=True, request_timeout=self._patience
        )
        return self._collect({f"topic {name}": futures[name] for name in names}, "DESCRIBE")

    def topic_operations(self, names: Collection[str]) -> dict[str, frozenset[str] | None]:
        """Return our operations on topics, None where the response has none; topics that do not exist are left out.

        Raises:
            Unreachable: AB310, no answer.
        """
        if not names:
            return {}
        futures = self._client.describe_topics(
            TopicCollection(list(names)), include_authorized_operations=True, request_timeout=self._patience
        )
        found: dict[str, frozenset[str] | None] = {}
        for name, future in futures.items():
            try:
                found[name] = operations_of(future.result())
            except KafkaException as error:
                if is_refusal(error.args[0]):
                    found[name] = frozenset()
                elif error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise unreachable(self._cluster, in_words(error.args[0])) from None
        return found

    def topic_configs(self, names: Collection[str]) -> dict[str, Configs]:
        """Return every setting of the named topics with its source, in one request.

        Raises:
            EnvironmentFault: AB313, DESCRIBE_CONFIGS is refused.
            Unreachable: AB310, no answer.
        """
        if not names:
            return {}
        wanted = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in names]
        futures = self._client.describe_configs(wanted, request_timeout=self._patience)
        return self._collect({f"topic {place.name}": future for place, future in futures.items()}, "DESCRIBE_CONFIGS")

    def validate_topic(self, new: NewTopic) -> Future[Any]:
        """Ask whether a topic could be made; it is not. The future raises KafkaException where something is wrong."""
        asked = self._client.create_topics([new], validate_only=True, request_timeout=self._patience)
        future: Future[Any] = asked[new.topic]
        return future

    def validate_setting(self, topic: str, key: str, value: str) -> Future[Any]:
        """Ask whether a topic would take a value of a setting; nothing is set. The future raises KafkaException."""
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        change = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        asked = self._client.incremental_alter_configs([change], validate_only=True, request_timeout=self._patience)
        future: Future[Any] = asked[change]
        return future

    def cleanup_policies(self, names: Collection[str]) -> dict[str, str]:
        """Return the `cleanup.policy` of the named topics, in one request; without those that we may not ask for it."""
        if not names:
            return {}
        wanted = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in names]
        found: dict[str, str] = {}
        for place, future in self._client.describe_configs(wanted, request_timeout=self._patience).items():
            try:
                found[place.name] = str(future.result()["cleanup.policy"].value)
            except (KafkaException, KeyError):
                continue
        return found

    def config_keys(self, topic: str | None) -> frozenset[str]:
        """Return the names of a topic's settings, or of a broker's for None; empty when the user may not see them."""
        return frozenset(self._settings_of(topic))

    def _settings_of(self, topic: str | None) -> Configs:
        """Return a topic's settings, or a broker's for None; empty when the user may not see them."""
        kind = ConfigResource.Type.BROKER if topic is None else ConfigResource.Type.TOPIC
        wanted = ConfigResource(kind, str(min(self.metadata.brokers)) if topic is None else topic)
        (future,) = self._client.describe_configs([wanted], request_timeout=self._patience).values()
        try:
            found: Configs = future.result()
        except KafkaException:
            return {}
        return found

    def default_replicas(self) -> int | None:
        """Return what brokers have as `default.replication.factor`; None when the user may not see it."""
        entry = self._settings_of(None).get("default.replication.factor")
        return int(entry.value) if entry is not None and entry.value and entry.value.isdecimal() else None

    def log_bounds(self, partitions: Mapping[str, int]) -> dict[str, tuple[Offsets, Offsets]]:
        """Return where the logs of topics begin and end; what is not known, as without a leader, is None.

        Args:
            partitions: how many each topic has, by name.
        """
        places = [(name, number) for name, count in partitions.items() for number in range(count)]
        starts, ends = self._offsets(places, OffsetSpec.earliest()), self._offsets(places, OffsetSpec.latest())
        return {
            name: (
                tuple(starts.get((name, number)) for number in range(count)),
                tuple(ends.get((name, number)) for number in range(count)),
            )
            for name, count in partitions.items()
        }

    def cluster_operations(self) -> frozenset[str]:
        """Return what we may do on the cluster itself; empty when the user may not see that. It is asked once."""
        if self._operations is None:
            future = self._client.describe_cluster(include_authorized_operations=True, request_timeout=self._patience)
            try:
                self._operations = operations_of(future.result()) or frozenset()
            except KafkaException:
                self._operations = frozenset()
        return self._operations

    def bindings(self) -> tuple[Sight, frozenset[Binding]]:
        """Return how well ACLs can be seen, and which there are.

        The client reports a refusal, and a cluster without an authorizer, as an empty list of ACLs. So our operations
        on the cluster are read first; without ACLs, the brokers' settings show whether there is an authorizer.

        Raises:
            Unreachable: AB310, no answer.
        """
        if "DESCRIBE" not in self.cluster_operations():
            return "hidden", frozenset()
        future = self._client.describe_acls(bindings.EVERY, request_timeout=self._patience)
        try:
            known = [bindings.from_kafka(one) for one in future.result()]
        except KafkaException as error:
            raise unreachable(self._cluster, in_words(error.args[0])) from None
        found = frozenset(one for one in known if one is not None)
        if found:
            return "seen", found
        authorizer = self._settings_of(None).get("authorizer.class.name")
        return ("unsure" if authorizer is None else "seen" if authorizer.value else "off"), found

    def may_be_open(self) -> bool:
        """Return whether brokers have a setting by which topics without ACLs may be open to all users.

        DESCRIBE_CONFIGS shows its name; its value is never shown, as it is a setting of the authorizer.
        """
        return "allow.everyone.if.no.acl.found" in self._settings_of(None)

    def consumer_groups(self) -> frozenset[str] | None:
        """Return the names of all consumer groups that the user may see; None where a broker does not list its own."""
        try:
            listed = self._client.list_consumer_groups(request_timeout=self._patience).result()
        except KafkaException:
            return None
        return None if listed.errors else frozenset(one.group_id for one in listed.valid)

    def group_operations(self, groups: Collection[str]) -> dict[str, frozenset[str] | None]:
        """Return our operations on groups, whether they exist or not; None for one where that is unknown."""
        if not groups:
            return {}
        futures = self._client.describe_consumer_groups(
            list(groups), include_authorized_operations=True, request_timeout=self._patience
        )
        return {group: self._operations_on(future) for group, future in futures.items()}

    def _operations_on(self, described: Future[Any]) -> frozenset[str] | None:
        try:
            return operations_of(described.result())
        except KafkaException as error:
            # Every other operation implies DESCRIBE.
            return frozenset() if error.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED else None

    def why_no_transactions(self, ids: Collection[str]) -> dict[str, Literal["refused", "unknown"]]:
        """Return on which transactional ids WRITE is refused, or unknown to the cluster; no answer counts as allowed.

        Raises:
            EnvironmentFault: as the class.
        """
        return registered.why_no_transactions(self._cluster, ids)

    def _offsets(self, places: Collection[tuple[str, int]], spec: OffsetSpec) -> dict[tuple[str, int], int]:
        if not places:
            return {}
        asked = {TopicPartition(name, number): spec for name, number in places}
        found: dict[tuple[str, int], int] = {}
        for place, future in self._client.list_offsets(
            asked, request_timeout=self._cluster.clients.admin.patience(OFFSETS_SECONDS)
        ).items():
            with contextlib.suppress(KafkaException):
                found[place.topic, place.partition] = future.result().offset
        return found

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
