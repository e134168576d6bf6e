"""Remote topics with everything that stands on them, for a provisioner that replaces a topic's settings as a whole.

Pure. The Pulumi program declares these: its provider resets every setting that is not declared (a throttle that an
operator set, say), and takes a topic that is no longer declared for one to delete. So what others have set is declared
too, and what is ours stays declared as it is when its source is gone. ACLs likewise: those that are ours, all of them.
"""

from __future__ import annotations

from collections.abc import Collection

from reconciler.model.base.errors import Refused
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.desired import DesiredTopic, WholeAcl, WholeTopic
from reconciler.model.planning.observed import ObservedCluster
from reconciler.plan.acls.bindings import our_bindings
from reconciler.plan.copies.desired import desired_topics
from reconciler.plan.copies.differences import obsolete_keys
from reconciler.plan.copies.failed_over import resolved, running
from reconciler.plan.copies.offsets import Observed, choices
from reconciler.plan.guardrails.refusals import impossible, is_ours


def whole_topics(topology: Topology, observed: Observed, targets: Collection[str]) -> tuple[WholeTopic, ...]:
    """Return the remote topics of the target clusters, by cluster and name.

    Args:
        topology: what is declared.
        observed: the targets and the sources of the flows into them.
        targets: aliases of target clusters.

    Raises:
        Refused: AB402 to AB404, AB406, AB408 or AB409, with every refusal.
    """
    desired = desired_topics(topology, observed, targets)
    problems = tuple(impossible(running(resolved(topology, observed)), observed, desired, targets))
    if problems:
        raise Refused(problems)
    wanted = [_whole(topic, observed[topic.cluster], topology) for topic in desired if topic.is_made]
    named = {(topic.cluster, topic.name) for topic in wanted}
    left = [
        topic
        for alias in targets
        for topic in _ours_as_they_are(observed[alias], topology)
        if (topic.cluster, topic.name) not in named
    ]
    return tuple(sorted(wanted + left, key=lambda topic: (topic.cluster, topic.name)))


def whole_acls(topology: Topology, observed: Observed, targets: Collection[str]) -> tuple[WholeAcl, ...]:
    """Return the ACLs of copies that are ours on the target clusters, or will be, by cluster and ACL.

    Args:
        topology: what is declared.
        observed: the targets and the sources of the flows into them.
        targets: aliases of target clusters.
    """
    chosen = choices(topology, observed, targets)
    return tuple(
        WholeAcl(alias, binding, flow)
        for alias in sorted(targets)
        for binding, flow in sorted(our_bindings(topology, observed, chosen, alias).items())
    )


def as_it_stands(topic: WholeTopic, target: ObservedCluster) -> WholeTopic | None:
    """Return a topic with everything that it has now; None where it is not there."""
    found = target.topics.get(topic.name)
    if found is None:
        return None
    return WholeTopic(
        topic.cluster, topic.name, topic.flow, found.partitions, found.replication_factor, dict(found.configs)
    )


def _whole(topic: DesiredTopic, target: ObservedCluster, topology: Topology) -> WholeTopic:
    """Return a desired topic on top of what stands there."""
    found, record = target.topics.get(topic.name), target.owned.get(topic.name)
    configs = dict(topic.configs)
    partitions, replication = topic.partitions, topic.replication_factor
    if found is not None:
        accepted = {s.key for s in topic.settings if s.accepts(found.configs.get(s.key))}
        theirs = {key: value for key, value in found.configs.items() if key not in configs or key in accepted}
        if record is not None and is_ours(found, record, topology.name):
            theirs = {key: theirs[key] for key in theirs.keys() - obsolete_keys(topic, found, record)}
        configs |= theirs
        partitions, replication = max(partitions, found.partitions), found.replication_factor
    return WholeTopic(
        cluster=topic.cluster,
        name=topic.name,
        flow=topic.flow,
        partitions=partitions,
        replication_factor=replication,
        configs={key: configs[key] for key in sorted(configs)},
    )


def _ours_as_they_are(target: ObservedCluster, topology: Topology) -> list[WholeTopic]:
    """Return every topic that this topology has made on a cluster, just as it stands.

    One cluster may be declared twice; then what a flow into the other one fills is not this one's.
    """
    elsewhere = {flow.name for flow in topology.flows if flow.target != target.alias}
    return [
        WholeTopic(target.alias, name, record.flow, found.partitions, found.replication_factor, dict(found.configs))
        for name, record in target.owned.items()
        if record.flow not in elsewhere
        and (found := target.topics.get(name)) is not None
        and is_ours(found, record, topology.name)
    ]
