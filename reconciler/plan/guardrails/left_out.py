"""Which topics a running flow must not touch, although it takes them, and why.

Pure. `replicate` evaluates it at each refresh, where `plan` and `apply` refuse as a whole: one topic that must not be
copied stops no other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.desired import DesiredTopic
from reconciler.plan.copies.desired import desired_of
from reconciler.plan.copies.flows import not_started
from reconciler.plan.copies.offsets import Observed, choices, taken_topics
from reconciler.plan.copies.recreated import kept_as_it_is, why_kept
from reconciler.plan.copies.refused_names import misnamed
from reconciler.plan.guardrails.permissions import refused_operations
from reconciler.plan.guardrails.refusals import is_made_elsewhere, refused_topics

Reasons = Mapping[str, Mapping[str, str]]
"""By flow and original topic, why something is not done with it."""


def left_out(topology: Topology, observed: Observed, targets: Collection[str]) -> Reasons:
    """Return, by flow and original, why a topic must not be copied; flows with no such topic are left out.

    A remote topic without an ownership record that stands just as we would have made it may be copied to.

    Args:
        topology: what is declared.
        observed: the targets and the sources of the flows into them.
        targets: aliases of target clusters.
    """
    found: dict[str, dict[str, str]] = {}
    for flow in topology.flows_into(targets):
        if stray := misnamed(topology, flow, observed):
            found[flow.name] = {name: str(problem) for name, problem in stray.items()}
    # What its policy stands against takes no name from the others.
    chosen = choices(without(topology, found), observed, targets)
    for topic in not_started(chosen):
        found.setdefault(topic.flow, {})[topic.topic] = f"{topic.remote} is {topic.why}"
    desired = desired_of(chosen, observed)
    elsewhere = _made_elsewhere(desired, observed)
    for (taker, name), problem in refused_topics(topology, observed, desired).items():
        if (taker, name) not in elsewhere:
            found.setdefault(taker, {})[name] = str(problem)
    return found


def hindered(topology: Topology, observed: Observed, targets: Collection[str]) -> Reasons:
    """Return, by flow and original, why a plan can do nothing for a topic that may be copied.

    What the replicator is not allowed now it parks by itself, and no other topic waits for it; what another tool has
    made it has to change.
    """
    found: dict[str, dict[str, str]] = {}
    chosen = choices(topology, observed, targets)
    for choice in chosen:
        if kept_as_it_is(choice.flow, choice.original, observed[choice.flow.target]) is not None:
            found.setdefault(choice.flow.name, {})[choice.original.name] = why_kept(choice.flow, choice.original)
    desired = desired_of(chosen, observed)
    elsewhere = _made_elsewhere(desired, observed)
    for topic in desired:
        if (topic.flow, topic.source_topic) in elsewhere:
            why = f"{topic.name} was not made by {topology.name}; the tool that made it has to change it"
            found.setdefault(topic.flow, {})[topic.source_topic] = why
        for problem in refused_operations(topology, observed, topic):
            found.setdefault(topic.flow, {})[topic.source_topic] = str(problem)
    return found


def unmade(topology: Topology, observed: Observed, hindrances: Reasons) -> Reasons:
    """Return which of the topics for which a plan can do nothing have no copy yet.

    Args:
        topology: what is declared.
        observed: the targets and the sources of the flows into them.
        hindrances: what `hindered` returned.
    """
    flows = {flow.name: flow for flow in topology.flows}
    return {
        name: {
            topic: why
            for topic, why in topics.items()
            if flows[name].remote_topic(topic) not in observed[flows[name].target].names
        }
        for name, topics in hindrances.items()
    }


def _made_elsewhere(desired: Collection[DesiredTopic], observed: Observed) -> set[tuple[str, str]]:
    return {
        (topic.flow, topic.source_topic)
        for topic in desired
        if topic.is_made and is_made_elsewhere(topic, observed[topic.cluster])
    }


def contenders(topology: Topology, flow: Flow) -> tuple[Flow, ...]:
    """Return the flows from other sources whose copies may have the names of this one's."""
    return tuple(
        other
        for other in topology.flows_into([flow.target])
        if other.source != flow.source and not (flow.policy.always_prefixes and other.policy.always_prefixes)
    )


def contested(topology: Topology, flow: Flow, observed: Observed) -> Reasons:
    """Return which topics of `flow` its contenders may copy to as well, while their sources cannot be read.

    What this topology has made for `flow` already stays.

    Args:
        topology: what is declared.
        flow: the flow.
        observed: its source and its target.
    """
    found: dict[str, str] = {}
    for original in taken_topics(flow, topology, observed):
        remote = flow.remote_topic(original.name)
        record = observed[flow.target].owned.get(remote)
        if record is None or (record.source, record.source_topic) != (flow.source, original.name):
            for other in contenders(topology, flow):
                theirs = other.policy.original(other.source, remote)
                if theirs is not None and other.takes(theirs, topology.aliases):
                    found[original.name] = f"{remote} may be the copy of {other.source}'s {theirs} (flow {other.name})"
                elif theirs is None and other.policy.may_name(other.source, remote):
                    said = f"a topic of {other.source}"
                    found[original.name] = f"{remote} may be the copy of {said} (flow {other.name})"
    return {flow.name: found} if found else {}


def without(topology: Topology, excluded: Reasons) -> Topology:
    """Return the topology whose flows take none of the named topics."""
    flows = tuple(flow.without(excluded.get(flow.name, {})) for flow in topology.flows)
    return replace(topology, flows=flows)
