"""What Pulumi's provider for Kafka does at a cluster, as far as topics and ACLs go, with the traits that matter.

It makes a topic and fails when it exists; it replaces all settings of a topic at once; making an ACL that exists, or
deleting one that does not, changes nothing. Used by the `pulumi` of the tests.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

SECONDS = 300.0
OPERATIONS = {
    "Read": AclOperation.READ,
    "Write": AclOperation.WRITE,
    "Describe": AclOperation.DESCRIBE,
    "DescribeConfigs": AclOperation.DESCRIBE_CONFIGS,
}
"""As the provider spells them; it takes no other spelling."""

Inputs = Mapping[str, Any]


class Refused(Exception):
    """The cluster did not do it; the message is what it said."""


class Cluster:
    """A cluster as an explicit provider reaches it.

    Args:
        provider: its inputs.
    """

    def __init__(self, provider: Inputs) -> None:
        settings: dict[str, Any] = {"bootstrap.servers": ",".join(json.loads(provider["bootstrapServers"]))}
        if provider["saslUsername"]:
            settings |= {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": provider["saslMechanism"].upper(),
                "sasl.username": provider["saslUsername"],
                "sasl.password": provider["saslPassword"],
            }
        self._admin = AdminClient(settings | {"log_level": 2})

    def read_topic(self, name: str) -> dict[str, Any] | None:
        """Return what stands there, as the provider's inputs; None when nothing does."""
        seen = self._admin.list_topics(timeout=SECONDS).topics.get(name)
        if seen is None:
            return None
        (future,) = self._admin.describe_configs([ConfigResource("topic", name)]).values()
        entries = future.result(SECONDS).values()
        configs = {e.name: e.value for e in entries if ConfigSource(e.source) is ConfigSource.DYNAMIC_TOPIC_CONFIG}
        replicas = len(seen.partitions[0].replicas)
        return {"name": name, "partitions": len(seen.partitions), "replicationFactor": replicas, "config": configs}

    def create_topic(self, wanted: Inputs) -> None:
        name = wanted["name"]
        partitions, replicas = int(wanted["partitions"]), int(wanted["replicationFactor"])
        new = NewTopic(name, partitions, replicas, config=dict(wanted.get("config") or {}))
        _result(self._admin.create_topics([new])[name])
        deadline = time.monotonic() + SECONDS
        while self.read_topic(name) is None and time.monotonic() < deadline:
            time.sleep(0.05)

    def update_topic(self, old: Inputs, wanted: Inputs) -> None:
        """Set all settings, and let the topic grow where the state, not the cluster, has fewer partitions."""
        name, config = wanted["name"], dict(wanted.get("config") or {})
        there = (self.read_topic(name) or {}).get("config", {})
        entries = [_set(key, value) for key, value in config.items()]
        entries += [_unset(key) for key in there.keys() - config.keys()]
        resource = ConfigResource("topic", name, incremental_configs=entries)
        _result(self._admin.incremental_alter_configs([resource])[resource])
        if int(wanted["partitions"]) != int(old["partitions"]):
            _result(self._admin.create_partitions([NewPartitions(name, int(wanted["partitions"]))])[name])

    def create_acl(self, wanted: Inputs) -> None:
        binding = AclBinding(*_acl(wanted))
        _result(self._admin.create_acls([binding])[binding])

    def delete_acl(self, gone: Inputs) -> None:
        those = AclBindingFilter(*_acl(gone))
        _result(self._admin.delete_acls([those])[those])


def _acl(inputs: Inputs) -> tuple[Any, ...]:
    return (
        ResourceType[inputs["aclResourceType"].upper()],
        inputs["aclResourceName"],
        ResourcePatternType[inputs["resourcePatternTypeFilter"].upper()],
        inputs["aclPrincipal"],
        inputs["aclHost"],
        AclOperation[
            {"DescribeConfigs": "DESCRIBE_CONFIGS"}.get(inputs["aclOperation"], inputs["aclOperation"].upper())
        ],
        AclPermissionType[inputs["aclPermissionType"].upper()],
    )


def _set(key: str, value: str) -> ConfigEntry:
    return ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)


def _unset(key: str) -> ConfigEntry:
    return ConfigEntry(key, None, incremental_operation=AlterConfigOpType.DELETE)


def _result(future: Any) -> None:
    try:
        future.result(SECONDS)
    except KafkaException as error:
        raise Refused(error.args[0].str()) from None
