"""Names that we have on target clusters; permissions are granted for them.

The replicator and the journals take them, `observe` asks whether they are allowed, `plan` says which must be.
"""

from __future__ import annotations

OWNED_TOPIC = "anabranch-owned.internal"
STATUS_TOPIC = "anabranch-status.internal"
CONTROL_TOPIC = "anabranch-control.internal"
COPIES_TOPIC = "anabranch-copies.internal"
SCRATCH_TOPIC = "anabranch-probe.internal"


def lease_group(topology: str, flow: str) -> str:
    """Return the group whose members hold the leases of a flow's partitions."""
    return f"anabranch.{topology}.{flow}"


def turn_group(topology: str, flow: str) -> str:
    """Return the group of which the process is a member that looks after a flow's consumer groups."""
    return f"{lease_group(topology, flow)}:groups"


def transactional_prefix(topology: str, flow: str) -> str:
    """Return what all transactional ids of a flow begin with."""
    return f"anabranch.{topology}.{flow}."


PROBE_NAMES = ("internal", "probe")
"""Topology and flow in whose names the probe speaks."""


SYNCS_PREFIX = "mm2-offset-syncs"
"""What the name of a topic of offset syncs begins with."""


def syncs_topic(source: str) -> str:
    """Return the topic at a target that holds the offset syncs of copies from `source`: MirrorMaker 2's name."""
    return f"{SYNCS_PREFIX}.{source}.internal"


DEFAULT_SEPARATOR = "."
CHECKPOINTS_SUFFIX = ("checkpoints", "internal")
"""What the name of a topic of checkpoints ends with, between separators."""


def checkpoints_topic(source: str, separator: str = DEFAULT_SEPARATOR) -> str:
    """Return the topic at a target that holds the checkpoints of groups of `source`.

    Args:
        source: alias of the source cluster.
        separator: of the replication policy. MirrorMaker 2 and its client put it into this name, too, unless
            `replication.policy.internal.topic.separator.enabled` is false.
    """
    return separator.join((source, *CHECKPOINTS_SUFFIX))
