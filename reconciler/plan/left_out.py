"""Which topics a running flow must not touch, although it takes them, and why.

Pure. `replicate` asks again and again, where `plan` and `apply` refuse as a whole: one topic that must not be copied
stops no other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from reconciler.model.topology import Topology
from reconciler.plan.desired import desired_of
from reconciler.plan.flows import not_started
from reconciler.plan.guardrails import refused_topics
from reconciler.plan.offsets import Observed, choices
from reconciler.plan.permissions import refused_operations

Reasons = Mapping[str, Mapping[str, str]]
"""By flow and original topic, why something is not done with it."""


def left_out(topology: Topology, observed: Observed, targets: Collection[str]) -> Reasons:
    """Return, by flow and original, why a topic must not be copied; flows with no such topic are left out.

    Args:
        topology: what is declared.
        observed: the targets and the sources of the flows into them.
        targets: aliases of target clusters.
    """
    chosen = choices(topology, observed, targets)
    found: dict[str, dict[str, str]] = {}
    for topic in not_started(chosen):
        found.setdefault(topic.flow, {})[topic.topic] = f"{topic.remote} is {topic.why}"
    for (flow, name), problem in refused_topics(topology, observed, desired_of(chosen, observed)).items():
        found.setdefault(flow, {})[name] = str(problem)
    return found


def hindered(topology: Topology, observed: Observed, targets: Collection[str]) -> Reasons:
    """Return what the replicator is not allowed now: it parks those topics by itself, and no other waits for them."""
    found: dict[str, dict[str, str]] = {}
    for topic in desired_of(choices(topology, observed, targets), observed):
        for problem in refused_operations(topology, observed, topic):
            found.setdefault(topic.flow, {})[topic.source_topic] = str(problem)
    return found


def without(topology: Topology, excluded: Reasons) -> Topology:
    """Return the topology whose flows take none of the named topics."""
    flows = tuple(flow.without(excluded.get(flow.name, {})) for flow in topology.flows)
    return Topology(topology.name, topology.clusters, flows)
