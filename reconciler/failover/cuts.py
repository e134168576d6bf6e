"""Where the copies of a flow stand, as the target alone tells it: its source may be gone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconciler.checkpoints.groups import Groups
from reconciler.model.cluster import Cluster
from reconciler.model.committed import Log
from reconciler.model.errors import EnvironmentFault, Problem
from reconciler.model.failover import Crossing, Cut
from reconciler.model.flow import Flow
from reconciler.model.names import lease_group
from reconciler.model.naming import is_heartbeats
from reconciler.model.ownership import OwnedTopic
from reconciler.state.copies import Copies
from reconciler.state.ownership import Ownership

TRANSLATED = "translated"


def copies_of(records: Iterable[OwnedTopic], topology: str, flow: Flow) -> dict[str, OwnedTopic]:
    """Return a flow's copies among the records of its target, by original; those of heartbeats stay where they are."""
    return {
        one.source_topic: one
        for one in records
        if (one.topology, one.flow) == (topology, flow.name)
        and not is_heartbeats(one.source_topic, flow.policy.separator)
    }


def crossings(topology: str, flow: Flow, target: Groups) -> list[Crossing]:
    """Return how far a flow has copied, partition by partition.

    Args:
        topology: name of the topology.
        flow: one of its flows.
        target: of its target cluster.

    Raises:
        Unreachable: AB310, the target does not answer.
        EnvironmentFault: AB311 or AB313, reading is refused; AB630, a partition of a copy has no leader.
    """
    copies = copies_of(Ownership(target.cluster).read().values(), topology, flow)
    logs = {(one.name, number): one for one in copies.values() for number in range(target.partitions.get(one.name, 0))}
    bounds = target.bounds(logs)
    if missing := sorted(logs.keys() - bounds.keys()):
        raise EnvironmentFault([_no_leader(target.cluster, log) for log in missing])
    shifts = _shifts(target.cluster, flow.name, [log for log, one in logs.items() if one.offsets != TRANSLATED])
    committed: dict[Log, int] = {}
    if any(one.offsets == TRANSLATED for one in logs.values()):
        group = lease_group(topology, flow.name)
        committed = {(one.topic, one.partition): one.offset for one in target.committed([group])}
    found = []
    for log, one in logs.items():
        end = bounds[log].end
        copied = committed.get(log, -1) if one.offsets == TRANSLATED else end - shifts.get(log, 0)
        found.append(Crossing(one.source_topic, one.name, log[1], one.offsets, copied, end))
    return found


def cuts(found: Iterable[Crossing]) -> dict[str, Cut]:
    """Return where copies stand as cuts, by original."""
    parts: dict[str, list[Crossing]] = {}
    for one in found:
        parts.setdefault(one.topic, []).append(one)
    return {
        topic: Cut(
            topic,
            some[0].remote,
            some[0].mode,
            tuple((one.copied, one.remote_end) for one in sorted(some, key=lambda one: one.partition)),
        )
        for topic, some in parts.items()
    }


def _shifts(target: Cluster, flow: str, logs: Iterable[Log]) -> Mapping[Log, int]:
    """Return by how much the ends of remote logs are above their originals' offsets."""
    copies = Copies(target)
    try:
        copies.refresh()
        records = {log: copies.get(flow, *log) for log in logs}
    finally:
        copies.close()
    return {log: record.runs.shift for log, record in records.items() if record is not None}


def _no_leader(cluster: Cluster, log: Log) -> Problem:
    where = f"{cluster.where}, topic {log[0]}, partition {log[1]}"
    return Problem("AB630", where, "its log cannot be looked at: it has no leader now", "wait until its brokers are up")
