"""Which topic-level settings a remote topic gets, and why.

Pure. The rules: what is set on the original topic is set on the copy, less a list of exceptions; what decides which
records a topic keeps and takes is set even where the original only has it from its brokers; and what identical offsets
need is set whatever the original says.
"""

from __future__ import annotations

from reconciler.model.desired import Setting
from reconciler.model.observed import EFFECTIVE_KEYS, NO_BOUND, ObservedCluster, ObservedTopic

MIRROR_MAKER_EXCLUDES = frozenset(
    {
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "message.timestamp.difference.max.ms",
        "message.timestamp.type",
        "unclean.leader.election.enable",
        "min.insync.replicas",
    }
)
"""What MirrorMaker 2 does not copy (`config.properties.exclude`): it belongs to the cluster, not to the topic."""

EXCLUDED = MIRROR_MAKER_EXCLUDES | {
    # Identical offsets decide about these.
    "compression.type",
    "message.format.version",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    # Where a cluster keeps old segments is its own affair; how long it keeps records is `retention.*`, which is copied.
    "local.retention.bytes",
    "local.retention.ms",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
    "remote.storage.enable",
}

FLOORS = frozenset({"max.message.bytes", "min.insync.replicas"})
"""Settings of which more at the target is as good, and left alone."""

_SAFE_REPLICATION = 3


def settings_of(original: ObservedTopic, target: ObservedCluster, replication: int) -> tuple[Setting, ...]:
    """Return the settings of the remote topic of `original`, by key.

    Args:
        original: the topic at the source.
        target: whose brokers must know every key.
        replication: how many replicas the remote topic has or gets.
    """
    settings = {
        key: Setting(key, value, "source", floor=key in FLOORS)
        for key, value in original.configs.items()
        if key not in EXCLUDED and target.knows_key(key)
    }
    for key in EFFECTIVE_KEYS:
        # A target whose brokers default to a shorter retention would delete what the source still has.
        if key in original.effective and key not in settings:
            settings[key] = Setting(key, original.effective[key], "source-default", floor=key in FLOORS)
    settings |= {setting.key: setting for setting in _for_identical_offsets(target, replication)}
    return tuple(settings[key] for key in sorted(settings))


def unknown_keys(original: ObservedTopic, target: ObservedCluster) -> tuple[str, ...]:
    """Return the settings of `original` that are left out because the target's brokers do not know them."""
    return tuple(sorted(key for key in original.configs if key not in EXCLUDED and not target.knows_key(key)))


def _for_identical_offsets(target: ObservedCluster, replication: int) -> tuple[Setting, ...]:
    """Return what lets batches pass byte for byte, whatever their age, and stay where they were acknowledged.

    Since Kafka 4.0 brokers refuse timestamps more than an hour ahead of their clock (KIP-1030): both bounds are lifted.
    """
    values = {
        "compression.type": "producer",
        "message.timestamp.type": "CreateTime",
        "unclean.leader.election.enable": "false",
    } | dict.fromkeys(target.timestamp_keys, NO_BOUND)
    needed = [Setting(key, value, "identical-offsets") for key, value in values.items()]
    if replication >= _SAFE_REPLICATION:
        needed.append(Setting("min.insync.replicas", "2", "identical-offsets", floor=True))
    return tuple(needed)
