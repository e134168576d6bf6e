"""Which originals the copies on a target hold records of, and whether the ACLs of these originals are known.

Pure. A consumer of a copy reads all that it holds, so what its consumers may do follows from all its originals.
Called by `followed`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.recorded.ownership import OwnedTopic
from reconciler.plan.copies.offsets import Choice, Observed
from reconciler.plan.guardrails.refusals import is_ours


class CopySource(NamedTuple):
    """One original of a copy.

    Attributes:
        source: alias of the cluster that it is on.
        topic: its name there; empty where it is unknown.
        flow: what copies it, or did; None where no such flow is declared.
    """

    source: str
    topic: str
    flow: Flow | None


Fillers = tuple[CopySource, ...]


def copies_at(topology: Topology, observed: Observed, chosen: Collection[Choice], alias: str) -> Mapping[str, Fillers]:
    """Return the originals of each copy of this topology on a target, also of one that the plan is about to make.

    A topic of another owner is none, whatever its name. Flows that are not enabled fill nothing; what they copied has
    an original here only beside those of flows that do.

    Args:
        topology: what is declared, all flows as they are failed over.
        observed: the target, and the sources that answer.
        chosen: the choices for topics of flows into the target.
        alias: of the target.
    """
    target = observed[alias]
    flows = {flow.name: flow for flow in topology.flows if flow.target == alias}
    found: dict[str, list[CopySource]] = {}
    here = [(flow, choice) for choice in chosen if (flow := flows.get(choice.flow.name))]
    # Nothing is made for a flow that is failed over.
    resting = {choice.remote for flow, choice in here if flow.failed_over or choice.flow.failed_over}
    for flow, choice in here:
        if _is_copied(choice, target, topology.name, choice.remote in resting):
            found.setdefault(choice.remote, []).append(CopySource(flow.source, choice.original.name, flow))
    for record in _on_record(topology, target):
        known = found.get(record.name, [])
        if all((one.source, one.topic) != (record.source, record.source_topic) for one in known):
            takers: list[Flow | None] = [*_takers(record, flows.values(), topology)]
            if not takers and known:
                takers = [flows.get(record.flow)]
            more = [CopySource(record.source, record.source_topic, flow) for flow in takers]
            if more:
                found[record.name] = [*known, *more]
    for flow in flows.values():
        if flow.enabled and (flow.source not in observed or observed[flow.source].is_away):
            for remote, known in found.items():
                topic = _may_be_original(flow, remote, topology)
                if topic is not None and all((one.source, one.topic) != (flow.source, topic) for one in known):
                    known.append(CopySource(flow.source, topic, flow))
    return {remote: tuple(fillers) for remote, fillers in sorted(found.items())}


def is_closed(fillers: Fillers) -> bool:
    """Return whether a flow that fills a copy, or did, follows no ACLs (`acls: false`)."""
    return any(filler.flow is not None and not filler.flow.acls for filler in fillers)


def is_seen(filler: CopySource, observed: Observed) -> bool:
    """Return whether the ACLs of an original are known."""
    source = observed.get(filler.source)
    return source is not None and source.acls.sight == "seen" and bool(filler.topic)


def _is_copied(choice: Choice, target: ObservedCluster, topology: str, is_resting: bool) -> bool:
    """Return whether a choice's remote topic holds the copy of its original, or will when the plan is carried out.

    Args:
        choice: of a flow.
        target: where it ends.
        topology: name of the topology.
        is_resting: whether a remote topic that is not there is not made.
    """
    record, existing = target.owned.get(choice.remote), target.topics.get(choice.remote)
    if choice.blocked is not None:
        return False
    if existing is None and choice.remote not in target.names:
        return not is_resting
    if record is None or record.topology != topology:
        return False
    if existing is not None and not is_ours(existing, record, topology):
        return False
    is_its_own = (record.source, record.source_topic) == (choice.flow.source, choice.original.name)
    # With identical offsets it holds one original, and takes no other.
    return is_its_own or record.offsets != "identical"


def _on_record(topology: Topology, target: ObservedCluster) -> Iterator[OwnedTopic]:
    """Yield the records of the copies that are there."""
    for name, record in sorted(target.owned.items()):
        if record.topology != topology.name or name not in target.names:
            continue
        existing = target.topics.get(name)
        if existing is None or is_ours(existing, record, topology.name):
            yield record


def _takers(record: OwnedTopic, flows: Iterable[Flow], topology: Topology) -> Iterator[Flow]:
    """Yield the flows that take the original on a copy's record, whether it is there or not, and fill that copy."""
    for flow in flows:
        if flow.enabled and flow.source == record.source and flow.takes(record.source_topic, topology.aliases):
            names_it = record.offsets != "identical" and flow.remote_topic(record.source_topic) == record.name
            if names_it or flow.name == record.flow:
                yield flow


def _may_be_original(flow: Flow, remote: str, topology: Topology) -> str | None:
    """Return the topic of an unreachable source that a copy may hold; empty where its name does not show it."""
    original = flow.policy.original(flow.source, remote)
    if original is not None:
        return original if flow.takes(original, topology.aliases) else None
    return "" if flow.policy.may_name(flow.source, remote) else None
