"""How far a flow has copied, read from the target alone, as its source may be lost."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from reconciler.checkpoints.groups.groups import Groups
from reconciler.checkpoints.translation.history import SyncHistory
from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.own_names import lease_group
from reconciler.model.offsets.committed import Committed, Log
from reconciler.model.offsets.runs import CopyRecord
from reconciler.model.recorded.failover import Carried, Crossing, Cut
from reconciler.model.recorded.ownership import copies_of
from reconciler.replicator.commit.position_recovery import PositionUnknown, position_of
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from reconciler.replicator.partition.place import differ
from reconciler.state.copies import Copies
from reconciler.state.ownership import Ownership

TRANSLATED = "translated"
_SECONDS = 10.0


def crossings(topology: Topology, flow: Flow, target: Groups) -> list[Crossing]:
    """Return how far a flow has copied each partition of the copies that exist now.

    As in `without_copy`, copies whose originals the flow no longer selects (`Flow.hands_over`) are left out.

    Args:
        topology: the declaration.
        flow: one of its flows.
        target: reads its target cluster.

    Raises:
        Unreachable: AB310, the target does not answer.
        EnvironmentFault: AB311 or AB313, reading is refused; AB630, a partition of a copy has no leader.
    """
    name = topology.name
    records = copies_of(Ownership(target.cluster, name).read().values(), name, flow)
    copies = {topic: one for topic, one in records.items() if flow.hands_over(topic, topology.aliases)}
    # After the records of ownership: a copy may have been made, or have grown, since the last refresh.
    target.refresh()
    logs = {(one.name, number): one for one in copies.values() for number in range(target.partitions.get(one.name, 0))}
    bounds = target.bounds(logs)
    if missing := sorted(logs.keys() - bounds.keys()):
        raise EnvironmentFault([_no_leader(target.cluster, log) for log in missing])
    ids = target.ids({name for name, _ in logs})
    known = {
        log: record
        for log, record in remembered(target.cluster, name, flow.name, logs).items()
        if not differ(record.target_id, ids.get(log[0]))
    }
    committed: dict[Log, Committed] = {}
    if any(one.offsets == TRANSLATED for one in logs.values()):
        group = lease_group(name, flow.name)
        committed = {
            (one.topic, one.partition): one
            for one in target.committed([group])
            # The offset of a copy that was deleted is stale.
            if not differ(OffsetMetadata.parse(one.metadata).target_id, ids.get(one.topic))
        }
        # Offset syncs exist only for copies that were written to. Copy records are stored after the first commit, so a
        # copy without one may have begun.
        lost = {
            log: (one.source_topic, known.get(log) or CopyRecord(None, ids.get(log[0])))
            for log, one in logs.items()
            if one.offsets == TRANSLATED and log not in committed and bounds[log].end
        }
        committed |= _recalled(target.cluster, flow, lost)
    found = []
    for log, one in logs.items():
        end, record = bounds[log].end, known.get(log)
        note = str(OffsetMetadata(record.source_id if record else None, ids.get(one.name)))
        copied = end - (record.runs.shift if record else 0)
        if one.offsets == TRANSLATED:
            position = committed.get(log)
            copied, note = (-1, note) if position is None else (position.offset, position.metadata)
        found.append(Crossing(one.source_topic, one.name, log[1], one.offsets, copied, end, note=note))
    return found


def _recalled(target: Cluster, flow: Flow, lost: Mapping[Log, tuple[str, CopyRecord]]) -> dict[Log, Committed]:
    """Return positions of copies whose group offsets have expired, from their last offset syncs.

    Group offsets expire when the flow has not run for some days; a flow that goes on reads the syncs, too. Partitions
    without a usable sync are left out.

    Args:
        target: the cluster of the copies.
        flow: the flow.
        lost: by partition of the copy, its original and its copy record.
    """
    if not lost:
        return {}
    history = SyncHistory(target, flow.source, _SECONDS)
    found: dict[Log, Committed] = {}
    try:
        history.refresh()
        for log, (original, record) in lost.items():
            if history.is_behind:
                continue
            with contextlib.suppress(PositionUnknown):
                position = position_of(history.last((original, log[1])), record)
                found[log] = Committed("", *log, position.offset, position.note)
    finally:
        history.close()
    return found


def cuts(found: Iterable[Crossing]) -> dict[str, Cut]:
    """Return the cuts of copies, by original."""
    parts: dict[str, list[Crossing]] = {}
    for one in sorted(found, key=lambda one: one.partition):
        parts.setdefault(one.topic, []).append(one)
    return {
        topic: Cut(
            topic,
            some[0].remote,
            some[0].mode,
            tuple((one.copied, one.remote_end) for one in some),
            notes=tuple(one.note for one in some),
        )
        for topic, some in parts.items()
    }


def as_cut(one: Crossing, cut: Cut | None) -> Crossing:
    """Return how far a partition was copied, from its cut: later records of the copy are not the flow's."""
    if cut is None or one.partition >= len(cut.ends):
        return replace(one, copied=-1)
    copied, end = cut.ends[one.partition]
    return replace(one, copied=copied, remote_end=end)


def not_begun(found: Iterable[Crossing], originals: Mapping[str, int]) -> list[Crossing]:
    """Return the partitions of originals that their copies do not have yet.

    Args:
        found: what `crossings` returned.
        originals: number of partitions of each topic of the source.
    """
    most = {one.topic: one for one in sorted(found, key=lambda one: one.partition)}
    return [
        replace(last, partition=number, copied=-1, remote_end=0)
        for topic, last in most.items()
        for number in range(last.partition + 1, originals.get(topic, 0))
    ]


def without_copy(
    flow: Flow, aliases: Collection[str], found: Iterable[Crossing], originals: Mapping[str, int]
) -> list[Crossing]:
    """Return the partitions of originals without any copy: topics made since the last `apply`, or left out.

    Args:
        flow: the flow.
        aliases: the clusters of the topology.
        found: what `crossings` returned.
        originals: number of partitions of each topic of the source.
    """
    copied = {one.topic for one in found}
    return [
        Crossing(topic, flow.remote_topic(topic), number, flow.offsets, -1, 0)
        for topic, count in sorted(originals.items())
        if topic not in copied and flow.hands_over(topic, aliases)
        for number in range(count)
    ]


def before(one: Carried, known: Iterable[Cut]) -> Carried:
    """Return a position that is limited to the cut of its copy.

    Records after the cut were written later, and groups that come from the source have not read them.
    """
    cut = next((cut for cut in known if cut.remote == one.to_topic), None)
    if cut is None or one.to_offset is None or one.partition >= len(cut.ends):
        return one
    return replace(one, to_offset=min(one.to_offset, cut.ends[one.partition][1]))


def remembered(cluster: Cluster, topology: str, flow: str, logs: Iterable[Log]) -> dict[Log, CopyRecord]:
    """Return the copy records of a flow for some partitions; those without a record are left out.

    Raises:
        Unreachable: AB310, the cluster does not answer.
        EnvironmentFault: AB311, reading is refused.
    """
    copies = Copies(cluster, topology)
    try:
        copies.refresh()
        records = {log: copies.get(flow, *log) for log in logs}
    finally:
        copies.close()
    return {log: record for log, record in records.items() if record is not None}


def _no_leader(cluster: Cluster, log: Log) -> Problem:
    where = f"{cluster.where}, topic {log[0]}, partition {log[1]}"
    return Problem("AB630", where, "its log cannot be read: it has no leader now", "wait until its brokers are up")
