"""The topic of offset syncs at a target: compacted, but only after a week (`min.compaction.lag.ms`).

Moving a consumer that is far behind needs old syncs, and compaction keeps only the newest of each partition.
"""

from __future__ import annotations

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource

from reconciler.model.declared.cluster import Cluster
from reconciler.model.names.own_names import syncs_topic
from reconciler.state.confluent import clients
from reconciler.state.confluent.faults import is_refusal, no_connection
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import JournalTopic

KEPT_MS = 7 * 24 * 3_600_000
"""For how long syncs are kept at least: as long as Kafka keeps records by default."""

_LAG = "min.compaction.lag.ms"
# One batch has syncs of many partitions, which are nearly the same.
_CONFIG = {_LAG: str(KEPT_MS), "compression.type": "lz4"}


def ensure(cluster: Cluster, source: str, seconds: float) -> str | None:
    """Create the topic, or set the compaction lag of one that exists; a lag that is set on the topic stays.

    Args:
        cluster: the target.
        source: alias of the source cluster.
        seconds: how long an answer may take.

    Returns:
        A warning where the topic may lose syncs; None otherwise, and where DESCRIBE_CONFIGS is denied.

    Raises:
        Unreachable: AB310, the cluster does not answer.
        EnvironmentFault: AB311, creation was refused; or what `clients.ask` raises.
    """
    topic = JournalTopic(syncs_topic(source), _CONFIG)
    if Journal(cluster, topic, seconds).ensure():
        return None
    reports = clients.Reports()
    client = clients.make(AdminClient, cluster, reports=reports)
    resource = ConfigResource("topic", topic.name)
    try:
        # No limit for futures: requests have one of their own, and end with a reason.
        entry = client.describe_configs([resource], request_timeout=seconds)[resource].result().get(_LAG)
    except KafkaException as failure:
        if is_refusal(failure.args[0]):
            # A topic that Anabranch has created has the setting; whether this one is, cannot be read.
            return None
        client.poll(0)
        raise no_connection(cluster, failure.args[0], tuple(reports.errors)) from None
    if entry is None or ConfigSource(entry.source) is ConfigSource.DYNAMIC_TOPIC_CONFIG:
        return None
    setting = ConfigEntry(_LAG, str(KEPT_MS), incremental_operation=AlterConfigOpType.SET)
    change = ConfigResource("topic", topic.name, incremental_configs=[setting])
    try:
        client.incremental_alter_configs([change], request_timeout=seconds)[change].result()
    except KafkaException as failure:
        if not is_refusal(failure.args[0]):
            client.poll(0)
            raise no_connection(cluster, failure.args[0], tuple(reports.errors)) from None
        return (
            f"topic {topic.name} may be compacted at any time, so offsets of consumers that are far behind are "
            f"translated by reading both logs: grant ALTER_CONFIGS on it, or set {_LAG}={KEPT_MS} there"
        )
    return None
