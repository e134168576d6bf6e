"""Records of ownership with topics and ACLs that no apply of this declaration would have made.

Pure. A record alone makes a topic ours, and records lie in a topic that others may be able to write to. So each is held
against the declaration: what that would not have made is deleted only by its name, and what it would not have granted
is never revoked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from reconciler.model.acls.binding import OwnedBinding
from reconciler.model.base.errors import Problem
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.own_names import DEFAULT_SEPARATOR
from reconciler.model.names.selection import Selection
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.removals import DeleteTopic
from reconciler.model.planning.steps import Notice, Plan
from reconciler.model.recorded.ownership import OwnedTopic

_FOLLOWED = frozenset({"READ", "DESCRIBE", "DESCRIBE_CONFIGS", "WRITE"})


def doubt(topology: Topology, alias: str, record: OwnedTopic) -> str:
    """Return why an apply of the declaration would not have made a topic that is on record; empty where it may have.

    It may have where its source is declared, and its name is what a flow from there names the copy of its original,
    or what the default policy does, as the policy of a flow that is gone or has another one now is not known. A name
    without the source's alias may be that of any topic, so there the flow must include the original as well.

    Args:
        topology: what is declared.
        alias: of the cluster.
        record: of a topic there.
    """
    if record.source not in topology.clusters:
        return f"no cluster {record.source} is declared"
    flows = [flow for flow in topology.flows if (flow.source, flow.target) == (record.source, alias)]
    if record.name in _prefixed(topology, record) or any(_names(flow, record) for flow in flows):
        return ""
    return f"no flow from {record.source} names the copy of {record.source_topic} so"


def check_named(plan: Plan, named: Collection[str]) -> Iterator[Problem]:
    """Yield the problem of each deletion of a topic in doubt that was not requested by its name.

    Args:
        plan: with its deletions.
        named: remote topics that `--target` names.
    """
    for step in plan.steps:
        if isinstance(step, DeleteTopic) and step.doubt and step.name not in named:
            yield Problem(
                "AB445",
                f"{step.cluster}, topic {step.name}",
                f"on record as ours, but {plan.topology} would not have made it: {step.doubt}",
                f"check its records and its origin; only `anabranch destroy FILE... --target {step.name}` deletes it",
            )


def is_granted_by_us(topology: Topology, target: ObservedCluster, record: OwnedBinding) -> bool:
    """Return whether an apply may have granted what is on record: of what follows originals, reading of copies alone.

    Args:
        topology: whose record it is.
        target: the cluster.
        record: of an ACL there.
    """
    if record.role == "own":
        return True
    one = record.binding
    if one.kind != "topic" or one.operation not in _FOLLOWED or one.pattern.is_everything:
        return False
    copies = {name for name, owned in target.owned.items() if owned.topology == topology.name}
    fronts = tuple(f"{alias}{separator}" for alias in topology.aliases for separator in _separators(topology))
    return one.pattern.name.startswith(fronts) or (not one.pattern.prefixed and one.pattern.name in copies)


def granted_by_others(topology: Topology, target: ObservedCluster) -> Iterator[Notice]:
    """Yield the ACLs that are on record as granted by this topology, and that it would not have granted."""
    for one in sorted(target.acls.owned_by(topology.name), key=lambda one: one.binding):
        if one.binding in target.acls.bindings and not is_granted_by_us(topology, target, one):
            why = f"is on record as granted by us, but {topology.name} would not have granted it: it stays"
            yield Notice(f"ACL {one.binding}", why)


def _prefixed(topology: Topology, record: OwnedTopic) -> Collection[str]:
    return {f"{record.source}{separator}{record.source_topic}" for separator in _separators(topology)}


def _separators(topology: Topology) -> Collection[str]:
    return {DEFAULT_SEPARATOR, *(flow.policy.separator for flow in topology.flows)}


def _names(flow: Flow, record: OwnedTopic) -> bool:
    # What the flow excludes today it may have taken.
    included = Selection(flow.topics.include).matches(record.source_topic)
    return (
        included
        and flow.nameless(record.source_topic) is None
        and flow.remote_topic(record.source_topic) == record.name
    )
