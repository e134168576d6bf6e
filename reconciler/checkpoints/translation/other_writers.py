"""Finds copies that several flows fill, whose group offsets cannot be translated for one source alone."""

from __future__ import annotations

from reconciler.model.offsets.committed import Log
from reconciler.replicator.partition.place import differ
from reconciler.state.copies import Copies


def fillers(copies: Copies, flow: str, remote: Log, target_id: str | None) -> list[str]:
    """Return which other flows have copied into a remote partition, in order.

    A flow that only announced a copy has copied nothing, and records of a deleted topic do not count.

    Args:
        copies: the copy records as they were read last.
        flow: whose copy it is.
        remote: the remote topic and the partition.
        target_id: id of the remote topic of today; None where that is not known.
    """
    others = copies.of_others(flow, *remote)
    return sorted(name for name, one in others.items() if one.is_begun and not differ(one.target_id, target_id))
