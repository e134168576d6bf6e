"""Where the copies of a flow stand, as the target alone tells it: its source may be gone."""

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
    """Return how far a flow has copied, partition by partition, in the copies that are there now.

    They are copies of what the flow hands over (`Flow.hands_over`), as `without_copy` goes by: one of an original that
    it takes no longer stays as it is.

    Args:
        topology: the declaration.
        flow: one of its flows.
        target: of its target cluster.

    Raises:
        Unreachable: AB310, the target does not answer.
        EnvironmentFault: AB311 or AB313, reading is refused; AB630, a partition of a copy has no leader.
    """
    name = topology.name
    records = copies_of(Ownership(target.cluster, name).read().values(), name, flow)
    copies = {topic: one for topic, one in records.items() if flow.hands_over(topic, topology.aliases)}
    # Behind the records of ownership: a copy may have been made, or have grown, since anybody looked.
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
            # One in a copy that was deleted is nobody's any more.
            if not differ(OffsetMetadata.parse(one.metadata).target_id, ids.get(one.topic))
        }
        # Syncs can speak only of what was written to. What is remembered of a copy is stored behind its first commit:
        # that nothing is known of one does not say that it never began.
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
    """Return the positions of copies that their group has forgotten, as their last offset syncs tell them.

    The group's offsets expire when nothing has run for some days; a flow that goes on looks there, too. A position
    that nobody tells is left out.

    Args:
        target: where the copies are.
        flow: which flow.
        lost: by partition of the copy, its original and what is remembered of it.
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
    """Return where copies stand as cuts, by original."""
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
    """Return how far a partition was copied as its cut tells it; what stands behind that others have written since."""
    if cut is None or one.partition >= len(cut.ends):
        return replace(one, copied=-1)
    copied, end = cut.ends[one.partition]
    return replace(one, copied=copied, remote_end=end)


def not_begun(found: Iterable[Crossing], originals: Mapping[str, int]) -> list[Crossing]:
    """Return the partitions of originals that their copies do not have yet.

    Args:
        found: of the copies.
        originals: how many partitions topics of the source have.
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
    """Return the partitions of originals that have no copy at all: made since anybody looked, or left out.

    Args:
        flow: which flow.
        aliases: the clusters of the topology.
        found: of the copies.
        originals: how many partitions topics of the source have.
    """
    copied = {one.topic for one in found}
    return [
        Crossing(topic, flow.remote_topic(topic), number, flow.offsets, -1, 0)
        for topic, count in sorted(originals.items())
        if topic not in copied and flow.hands_over(topic, aliases)
        for number in range(count)
    ]


def before(one: Carried, known: Iterable[Cut]) -> Carried:
    """Return where a position of the source goes on: at the end of what was copied at most.

    What stands behind that others wrote, and nobody has read it who comes from the source.
    """
    cut = next((cut for cut in known if cut.remote == one.to_topic), None)
    if cut is None or one.to_offset is None or one.partition >= len(cut.ends):
        return one
    return replace(one, to_offset=min(one.to_offset, cut.ends[one.partition][1]))


def remembered(cluster: Cluster, topology: str, flow: str, logs: Iterable[Log]) -> dict[Log, CopyRecord]:
    """Return what is remembered of logs of a cluster as copies of a flow, as far as anything is.

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
