"""For how long a cluster keeps the committed offsets of groups without members."""

from __future__ import annotations

from reconciler.model.declared.cluster import Cluster
from reconciler.state.confluent import clients

_KEY = "offsets.retention.minutes"
_USUALLY = 7 * 24 * 60
_SECONDS = 10.0


def retention_seconds(cluster: Cluster) -> float:
    """Return the retention in seconds: Kafka's default of seven days where the cluster does not return it.

    Raises:
        Unreachable: AB310, no answer.
        EnvironmentFault: what `clients.broker_settings` raises.
    """
    # Where reading the settings of brokers is refused, the default counts.
    entries = [settings.get(_KEY) for settings in clients.broker_settings(cluster, _SECONDS).values()]
    found = [_USUALLY, *(int(entry.value) for entry in entries if entry is not None and entry.value is not None)]
    return min(found) * 60.0
