"""The flows of a failback: they copy new records of copies from a flow's target back to its source.

Copies with identical offsets go back with identical offsets, those with translated offsets with translated ones. They
are ordinary flows that run once until they have caught up, and are not declared in any file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal

from reconciler.checkpoints.groups.groups import Groups
from reconciler.failover.logs.cuts import TRANSLATED
from reconciler.failover.logs.handover import Handover, LogState, hand_over, log_states
from reconciler.model.base.errors import EnvironmentFault, Problem, Refused
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.groups import GroupRules
from reconciler.model.declared.start import Start
from reconciler.model.declared.topology import Topology
from reconciler.model.names.own_names import lease_group
from reconciler.model.names.renames import RenameRule
from reconciler.model.names.selection import Selection
from reconciler.model.offsets.committed import Log, Move
from reconciler.model.offsets.runs import Runs
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.model.recorded.failover import Cut, FailbackPlan
from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from reconciler.replicator.partition.place import differ
from reconciler.state.copies import Copies

Way = Literal["identical", "translated"]
_ENDINGS: dict[Way, str] = {"identical": "failback", "translated": "failback-translated"}


def backward(flow: Flow, way: Way, cuts: Iterable[Cut]) -> Flow:
    """Return the flow that copies some copies back to their originals.

    Args:
        flow: the flow that is failed over.
        way: the mode of their offsets.
        cuts: of the copies.
    """
    rules = tuple(RenameRule(cut.remote, cut.topic) for cut in cuts)
    return replace(
        flow,
        name=f"{flow.name}.{_ENDINGS[way]}",
        source=flow.target,
        target=flow.source,
        topics=Selection(tuple(rule.pattern for rule in rules)),
        policy=ReplicationPolicy("rename", rules=rules, otherwise="identity"),
        offsets=way,
        delivery="exactly-once",
        start=Start(),
        dlq=None,
        acls=False,
        groups=GroupRules(),
        failed_over=False,
        origin=f"failback of {flow.name}",
    )


def spec(topology: Topology, flow: Flow, run: str) -> FlowSpec:
    """Return the specification of a flow that is not declared."""
    source, target = topology.clusters[flow.source], topology.clusters[flow.target]
    return FlowSpec(topology.name, run, flow, source, target, topology.aliases)


def hand_originals(topology: Topology, flow: Flow, cuts: Iterable[Cut], there: Mapping[Log, LogState]) -> None:
    """Hand the logs of originals to the flow that copies back with identical offsets.

    Args:
        topology: the declaration.
        flow: what `backward` returned.
        cuts: of the copies.
        there: state of the copies' logs.

    Raises:
        Refused: AB705, an original was written to since the plan was read: it has diverged.
        AnabranchError: a cluster does not answer, or refuses.
    """
    cluster = topology.clusters[flow.target]
    ends = {(cut.topic, number): (cut, end) for cut in cuts for number, end in enumerate(cut.ends)}
    here = log_states(cluster, ends.keys())
    if grown := sorted(log for log, (_, (source, _)) in ends.items() if here[log].end > max(source, 0)):
        raise Refused([_grown(cluster, log) for log in grown])
    handovers = {
        log: Handover(
            there[cut.remote, log[1]].topic_id,
            here[log],
            # The shift back is the opposite of the copy's shift.
            here[log].end - (source - target),
        )
        for log, (cut, (source, target)) in ends.items()
    }
    hand_over(cluster, topology.name, flow.name, handovers)


def _grown(cluster: Cluster, log: Log) -> Problem:
    where = f"{cluster.where}, topic {log[0]}, partition {log[1]}"
    message = "it was written to while the plan was read: it and its copy have diverged, and nothing was copied back"
    return Problem("AB705", where, message, "stop its producers, then run failback again and read the new plan")


def runs_back(topology: str, source: Groups, flow: Flow, cuts: Iterable[Cut]) -> dict[Log, Runs]:
    """Return the shifted runs of records that came back, by partition of the originals.

    Args:
        topology: name of the topology.
        source: the source, to which the flow writes.
        flow: what `backward` returned.
        cuts: of the copies.

    Raises:
        AnabranchError: a cluster does not answer, or refuses.
    """
    logs = [(cut.topic, number) for cut in cuts for number in range(len(cut.ends))]
    ids = source.ids({topic for topic, _ in logs})
    copies = Copies(source.cluster, topology)
    try:
        copies.refresh()
        known = {log: copies.get(flow.name, *log) for log in logs}
    finally:
        copies.close()
    # Records of a topic that was made again since are void.
    return {
        log: one.runs for log, one in known.items() if one is not None and not differ(one.target_id, ids.get(log[0]))
    }


def expired(topology: str, flow: Flow, target: Groups, plan: FailbackPlan) -> dict[Log, tuple[int, OffsetMetadata]]:
    """Return the positions that the flow's group had when its copies were cut, and that have expired since.

    Positions that have not expired are newer than the cut: a transaction may have ended after it.

    Raises:
        AnabranchError: the target does not answer, or refuses.
    """
    there = {(one.topic, one.partition) for one in target.committed([lease_group(topology, flow.name)])}
    return {
        (cut.remote, number): (position, OffsetMetadata.parse(cut.note(number)))
        for cut in (plan.state.cuts[one.topic] for one in plan.topics if not one.is_rebuilt)
        for number, (position, _) in enumerate(cut.ends)
        if cut.mode == TRANSLATED and position >= 0 and cut.note(number) and (cut.remote, number) not in there
    }


def place_translated(
    topology: Topology, flow: Flow, cuts: Iterable[Cut], source: Groups, there: Mapping[Log, LogState]
) -> None:
    """Commit positions for the flow that copies back with translated offsets: it begins at the cuts of the copies.

    Args:
        topology: the declaration.
        flow: what `backward` returned.
        cuts: of the copies.
        source: the source, to which it writes.
        there: state of the copies' logs.

    Raises:
        AnabranchError: a cluster does not answer, or refuses.
    """
    ends = {(cut.topic, number): (cut, end[1]) for cut in cuts for number, end in enumerate(cut.ends)}
    here = log_states(source.cluster, ends.keys())
    positions = {
        log: (end, OffsetMetadata(there[cut.remote, log[1]].topic_id, here[log].topic_id))
        for log, (cut, end) in ends.items()
    }
    commit(source, lease_group(topology.name, flow.name), positions)


def commit(groups: Groups, group: str, positions: Mapping[Log, tuple[int, OffsetMetadata]]) -> None:
    """Commit positions of a flow that does not run, with their offset metadata.

    Raises:
        EnvironmentFault: the cluster refuses them.
    """
    moves = [Move(group, *log, None, offset, offset, str(note)) for log, (offset, note) in positions.items()]
    if moves and (wrong := groups.commit({group: moves})):
        raise EnvironmentFault(list(dict.fromkeys(wrong.values())))


def way_of(cut: Cut, rebuilt: bool) -> Way:
    """Return the mode in which a copy is copied back: into an empty topic always with identical offsets."""
    return "translated" if cut.mode == TRANSLATED and not rebuilt else "identical"
