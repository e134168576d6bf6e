"""For how long a cluster keeps the committed offsets of groups without members."""

from __future__ import annotations

from confluent_kafka import KafkaException
from confluent_kafka.admin import ConfigResource, ResourceType

from reconciler.model.declared.cluster import Cluster
from reconciler.state.confluent import clients

_KEY = "offsets.retention.minutes"
_USUALLY = 7 * 24 * 60
_SECONDS = 10.0


def retention_seconds(cluster: Cluster) -> float:
    """Return the retention in seconds: Kafka's default of seven days where the cluster does not return it.

    Raises:
        Unreachable: AB310, no answer.
        EnvironmentFault: what `clients.metadata` raises.
    """
    client, seen = clients.metadata(cluster, _SECONDS)
    asked = [ConfigResource(ResourceType.BROKER, str(node)) for node in seen.brokers]
    found = [_USUALLY]
    for future in client.describe_configs(asked, request_timeout=_SECONDS).values():
        try:
            entry = future.result().get(_KEY)
        except KafkaException:
            # Where reading the settings of brokers is refused, the default counts.
            continue
        if entry is not None and entry.value is not None:
            found.append(int(entry.value))
    return min(found) * 60.0
