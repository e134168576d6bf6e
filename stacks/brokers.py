"""Brokers whose settings the Kafka provider takes for those of topics."""

from __future__ import annotations

from confluent_kafka.admin import ConfigSource

from reconciler.model.base.errors import Problem, Refused
from reconciler.model.declared.cluster import Cluster
from reconciler.state.confluent import clients

_SECONDS = 30.0

DEFAULTS_OF_TOPICS = frozenset(
    {
        *("compression.type", "message.max.bytes", "min.insync.replicas", "unclean.leader.election.enable"),
        *("log.cleaner.delete.retention.ms", "log.cleaner.max.compaction.lag.ms", "log.cleaner.min.cleanable.ratio"),
        *("log.cleaner.min.compaction.lag.ms", "log.cleanup.policy", "log.flush.interval.messages"),
        *("log.flush.interval.ms", "log.index.interval.bytes", "log.index.size.max.bytes"),
        *("log.message.timestamp.after.max.ms", "log.message.timestamp.before.max.ms", "log.message.timestamp.type"),
        *("log.preallocate", "log.retention.bytes", "log.retention.hours", "log.retention.minutes"),
        *("log.retention.ms", "log.roll.hours", "log.roll.jitter.hours", "log.roll.jitter.ms", "log.roll.ms"),
        *("log.segment.bytes", "log.segment.delete.delay.ms"),
    }
)
"""Settings of brokers that topics have unless they have their own ("Topic-Level Configs" of Kafka's documentation)."""


def check_brokers(cluster: Cluster) -> None:
    """Make sure that no broker has a setting of its own, set while it runs, that topics take over.

    The provider (0.13) reads such a value as one of the topic: what it reads never equals what is declared, each change
    fails after it was made, and imported topics are changed. What holds for all brokers, or stands in the file that a
    broker starts with, is no trouble. Where the user may not see the settings of brokers nothing is known.

    Raises:
        Refused: AB448, some broker has one.
        Unreachable: AB310, no answer.
        EnvironmentFault: what `clients.broker_settings` raises.
    """
    own: dict[str, list[int]] = {}
    for node, settings in clients.broker_settings(cluster, _SECONDS).items():
        for key in DEFAULTS_OF_TOPICS & settings.keys():
            if settings[key].source == ConfigSource.DYNAMIC_BROKER_CONFIG.value:
                own.setdefault(key, []).append(node)
    if own:
        said = "; ".join(f"{key} at broker {', '.join(map(str, sorted(nodes)))}" for key, nodes in sorted(own.items()))
        message = f"brokers have settings of their own that the Pulumi provider takes for those of topics: {said}"
        remedy = "set them for all brokers (--entity-default) or in their files, or use --provisioner direct"
        raise Refused(Problem("AB448", cluster.where, message, remedy))
