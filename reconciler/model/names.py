"""Names that a flow has at its target's coordinators; permissions are granted for them.

The replicator takes them, `observe` asks whether they are allowed.
"""

from __future__ import annotations


def lease_group(topology: str, flow: str) -> str:
    """Return the group whose members hold the leases of a flow's partitions."""
    return f"anabranch.{topology}.{flow}"


def transactional_prefix(topology: str, flow: str) -> str:
    """Return what all transactional ids of a flow begin with."""
    return f"anabranch.{topology}.{flow}."


def syncs_topic(source: str) -> str:
    """Return the topic at a target that holds the offset syncs of copies from `source`: MirrorMaker 2's name."""
    return f"mm2-offset-syncs.{source}.internal"
