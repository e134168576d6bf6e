"""Selected topics whose copies the replication policy cannot name.

Pure. A copy needs a name that Kafka takes, that no other topic of the same source has, by whichever flow, and under
which it does not come back to be copied again. The guardrails refuse a plan for it; a running `replicate` leaves such
topics out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from reconciler.model.base.errors import Problem
from reconciler.model.declared.cycles import endless_way, way_said
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.topic_names import metric_name
from reconciler.model.planning.desired import DesiredTopic
from reconciler.model.planning.observed import ObservedCluster

Observed = Mapping[str, ObservedCluster]

_SHOWN = 3


def misnamed(topology: Topology, flow: Flow, observed: Observed) -> Mapping[str, Problem]:
    """Return, by original, why a topic cannot be copied.

    Of several topics that would have one name, also by several flows between the same clusters, the one whose copy this
    topology has made keeps it, and only the others are reported.

    Args:
        topology: what is declared, with all flows that the copies might take further.
        flow: the flow.
        observed: its source and its target.
    """
    wanted = [name for name in sorted(observed[flow.source].names) if flow.wants(name, topology.aliases)]
    found: dict[str, Problem] = {}
    takers: dict[str, list[str]] = {}
    for name in wanted:
        why = flow.nameless(name)
        if why is None:
            takers.setdefault(flow.remote_topic(name), []).append(name)
        else:
            remedy = f"{flow.policy.remedy()}, or exclude {name} from flow {flow.name}"
            found[name] = _problem("AB406", flow, _where(flow, name), why, remedy)
    beside = _named_beside(topology, flow, observed[flow.source], takers.keys())
    for remote, names in takers.items():
        others = sorted(beside.get(remote, set()).difference(names))
        if len(names) + len(others) > 1:
            found |= _one_name(flow, remote, names, others, observed[flow.target])
    found |= _coming_back(topology, flow, [name for names in takers.values() for name in names])
    return found


def alike(
    topology: Topology, desired: Collection[DesiredTopic], observed: Observed
) -> Iterator[tuple[DesiredTopic, Problem]]:
    """Yield copies that are yet to be made and that brokers refuse for their name, as they have another one of it.

    Args:
        topology: what is declared.
        desired: remote topics.
        observed: their clusters.
    """
    for cluster in dict.fromkeys(topic.cluster for topic in desired):
        topics = [topic for topic in desired if topic.cluster == cluster]
        others = dict(one_metric_name([topic.name for topic in topics], observed[cluster].names))
        for topic in topics:
            if (other := others.get(topic.name)) is None:
                continue
            where = f"{topology.clusters[cluster].where}, topic {topic.name}"
            found = (
                f"differs from topic {other} in . and _ alone: brokers take these for one name, and refuse the second"
            )
            remedy = f"exclude {topic.source_topic} from flow {topic.flow}, have it named otherwise, or delete {other}"
            yield topic, Problem("AB452", where, found, remedy)


def one_metric_name(wanted: Collection[str], there: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield topics that are yet to be made, each with another one of the same name in brokers' metrics.

    Args:
        wanted: names of remote topics.
        there: names of the topics that the target has.
    """
    known: dict[str, str] = {}
    for name in (*sorted(there), *sorted(set(wanted).difference(there))):
        other = known.setdefault(metric_name(name), name)
        if other != name and name not in there:
            yield name, other


def _named_beside(
    topology: Topology, flow: Flow, source: ObservedCluster, remotes: Collection[str]
) -> Mapping[str, set[str]]:
    """Return, by remote topic, the originals that other flows between the same clusters would copy to it."""
    found: dict[str, set[str]] = {}
    for other in topology.flows_into((flow.target,)):
        if other.name == flow.name or other.source != flow.source:
            continue
        # Without rules and classes one policy gives one name to one topic alone.
        if other.policy == flow.policy and not flow.policy.is_written_out:
            continue
        for name in source.names:
            if other.takes(name, topology.aliases) and (remote := other.remote_topic(name)) in remotes:
                found.setdefault(remote, set()).add(name)
    return found


def _one_name(
    flow: Flow, remote: str, names: list[str], others: list[str], target: ObservedCluster
) -> Iterator[tuple[str, Problem]]:
    """Yield the problem of each of the flow's originals that share a name.

    Args:
        flow: the flow.
        remote: the name.
        names: originals to which the flow's policy gives it.
        others: further originals to which other flows between the same clusters give it.
        target: the flow's target.
    """
    record = target.owned.get(remote)
    holder = record.source_topic if record is not None and record.source == flow.source else None
    everybody = [*names, *others]
    said = ", ".join(everybody[:_SHOWN]) + (f" and {len(everybody) - _SHOWN} more" if len(everybody) > _SHOWN else "")
    message = f"expected a name of its own for each copy; found {remote} for {said} of {flow.source}"
    if others:
        message += f" (by other flows: {', '.join(others[:_SHOWN])})"
    if holder in everybody:
        message += f"; it is the copy of {holder} and stays that"
    excluded = f"exclude {', '.join(names[:_SHOWN])} from" if others else "exclude all of them but one from"
    remedy = f"{flow.policy.remedy()} so that the names differ, or {excluded} flow {flow.name}"
    places = {_where(flow, name) for name in names}
    where = places.pop() if len(places) == 1 else flow.policy.place
    for name in names:
        if name != holder:
            yield name, _problem("AB408", flow, where, message, remedy)


def _coming_back(topology: Topology, flow: Flow, names: list[str]) -> Iterator[tuple[str, Problem]]:
    flows = [one for one in topology.flows if one.enabled]
    # Rings of the other policies are found in the declaration, whatever the topics.
    if flow not in flows or not any(one.policy.is_written_out for one in flows):
        return
    for name in names:
        ring = endless_way(flows, topology.aliases, flow, name)
        if ring is not None:
            message = f"{flow.source}'s {name} would go round for ever: {way_said(ring)}"
            remedy = f"name copies so that no flow takes them back, or exclude {name} from flow {flow.name}"
            yield name, _problem("AB409", flow, _where(flow, name), message, remedy)


def _where(flow: Flow, topic: str) -> str:
    rule = flow.policy.rule_for(topic)
    return (rule.place if rule else "") or flow.policy.place


def _problem(code: str, flow: Flow, place: str, message: str, remedy: str) -> Problem:
    """Return what is wrong with a flow: at the place of its policy, or, where that stands in no file, at the flow."""
    if not place:
        return Problem(code, f"flow {flow.name}", message, remedy)
    return Problem(code, place, f"flow {flow.name}: {message}", remedy)
