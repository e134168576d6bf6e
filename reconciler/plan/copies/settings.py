"""Which topic-level settings a remote topic gets, and why.

Pure. The rules: what is set on the original topic is set on the copy, less a list of exceptions; what decides which
records a topic keeps and takes is set even where the original only has it from its brokers; what a flow declares wins
over both; and what identical offsets need is always set.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model.declared.config_rules import FIXED, THROTTLES, ConfigRules
from reconciler.model.planning.desired import TopicSetting
from reconciler.model.planning.observed import EFFECTIVE_KEYS, NO_BOUND, ObservedCluster, ObservedTopic

MIRROR_MAKER_EXCLUDES = frozenset(
    {
        *THROTTLES,
        "message.timestamp.difference.max.ms",
        "message.timestamp.type",
        "unclean.leader.election.enable",
        "min.insync.replicas",
    }
)
"""What MirrorMaker 2 does not copy (`config.properties.exclude`): it belongs to the cluster, not to the topic."""

DEAD_LETTERS = "errors.deadletterqueue.group.enable"

EXCLUDED = MIRROR_MAKER_EXCLUDES | {
    # Identical offsets decide about these.
    *FIXED,
    # Where a cluster keeps old segments is its own decision; how long it keeps records is `retention.*`, which is
    # copied.
    "local.retention.bytes",
    "local.retention.ms",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
    "remote.storage.enable",
    # With it brokers write what share groups give up into the topic (KIP-1191, Kafka 4.4), and a copy has one writer.
    DEAD_LETTERS,
}

OF_CLUSTERS = EXCLUDED - FIXED - {DEAD_LETTERS}
"""Settings that no copy gets from its original, and that do no harm to one: what tools set of them is no drift."""

FLOORS = frozenset({"max.decompressed.message.bytes", "max.message.bytes", "min.insync.replicas"})
"""Settings of which more at the target is as good, and left alone."""

_SAFE_REPLICATION = 3


def settings_of(
    original: ObservedTopic,
    target: ObservedCluster,
    replication: int,
    rules: ConfigRules,
    applied: Mapping[str, str] | None = None,
) -> tuple[TopicSetting, ...]:
    """Return the settings of the remote topic of `original`, by key.

    Args:
        original: the topic at the source.
        target: whose brokers must have every key.
        replication: how many replicas the remote topic has or gets.
        rules: of the flow.
        applied: what was last applied to the remote topic; None where it is still to be made.
    """
    if rules.sync or applied is None:
        settings = _of_original(original, target, rules)
    else:
        settings = {key: TopicSetting(key, value, "kept", floor=key in FLOORS) for key, value in applied.items()}
    for needed in _for_identical_offsets(target, replication):
        # Where more is as good, the original may have more.
        if not (needed.floor and needed.accepts(settings[needed.key].value if needed.key in settings else None)):
            settings[needed.key] = needed
    settings |= {key: TopicSetting(key, value, "declared") for key, value in rules.set if key not in FIXED}
    return tuple(settings[key] for key in sorted(settings))


def _of_original(original: ObservedTopic, target: ObservedCluster, rules: ConfigRules) -> dict[str, TopicSetting]:
    settings = {
        key: TopicSetting(key, value, "source", floor=key in FLOORS)
        for key, value in original.configs.items()
        if _is_copied(key, rules) and target.knows_key(key)
    }
    for key in EFFECTIVE_KEYS:
        # A target whose brokers default to a shorter retention would delete what the source still has.
        if key in original.effective and key not in settings and rules.copies(key, is_excluded=False):
            settings[key] = TopicSetting(key, original.effective[key], "source-default", floor=key in FLOORS)
    return settings


def _is_copied(key: str, rules: ConfigRules) -> bool:
    return key not in FIXED and rules.copies(key, is_excluded=key in EXCLUDED)


def unknown_keys(original: ObservedTopic, target: ObservedCluster, rules: ConfigRules) -> tuple[str, ...]:
    """Return the settings of `original` that are left out because the target's brokers do not have them."""
    return tuple(sorted(key for key in original.configs if _is_copied(key, rules) and not target.knows_key(key)))


def _for_identical_offsets(target: ObservedCluster, replication: int) -> tuple[TopicSetting, ...]:
    """Return what lets batches pass byte for byte, whatever their age, and stay where they were acknowledged.

    Since Kafka 4.0 brokers refuse timestamps more than an hour ahead of their clock (KIP-1030): both bounds are lifted.
    """
    values = {
        "compression.type": "producer",
        "message.timestamp.type": "CreateTime",
        "unclean.leader.election.enable": "false",
    } | dict.fromkeys(target.timestamp_keys, NO_BOUND)
    needed = [TopicSetting(key, value, "identical-offsets") for key, value in values.items()]
    if replication >= _SAFE_REPLICATION:
        needed.append(TopicSetting("min.insync.replicas", "2", "identical-offsets", floor=True))
    return tuple(needed)
