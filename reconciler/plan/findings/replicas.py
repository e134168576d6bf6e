"""Copies, and topics of our own state, that have fewer replicas than they should; and brokers that are down.

Pure. What a topic should have is what is declared, or what its original has, as far as the target has brokers: those
that are down now are brokers of the target as well. Kafka adds replicas only by a reassignment, which no apply
does: so this is reported until it was done.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from reconciler.model.declared.flow import TARGETS_DEFAULT
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.desired import DesiredTopic
from reconciler.model.planning.drift import Drifted
from reconciler.model.planning.observed import ObservedCluster, ObservedTopic
from reconciler.model.planning.steps import Notice
from reconciler.model.recorded.ownership import OwnedTopic

_USUAL = 3
_SHOWN = 3
ADD = "an apply moves no data: `kafka-reassign-partitions.sh` adds replicas"


def replica_notices(topics: Collection[DesiredTopic], topology: Topology, target: ObservedCluster) -> Iterator[Notice]:
    """Yield which brokers of a target are down, and which topics have another number of replicas than they should.

    Args:
        topics: remote topics that are desired there.
        topology: what is declared.
        target: the cluster.
    """
    cluster = f"cluster {target.alias}"
    if target.down:
        which = ", ".join(map(str, target.down))
        yield Notice(
            cluster,
            f"{len(target.down)} of {target.brokers} brokers are down (ids {which}): topics are made with all their "
            "replicas, and those of brokers that are down follow when these are back",
        )
    fewer: dict[tuple[int, int], list[str]] = {}
    for topic in topics:
        found = target.topics.get(topic.name)
        if found is not None and topic.name in target.owned and found.replicas < topic.replication_factor:
            fewer.setdefault((found.replicas, topic.replication_factor), []).append(topic.name)
    wanted = state_replicas(topology, target)
    for name, count in target.state_replicas.items():
        if count < wanted:
            fewer.setdefault((count, wanted), []).append(name)
    for (count, needed), names in sorted(fewer.items()):
        said = f"{_replicas(count)}, and should have {needed}: {ADD}"
        if len(names) == 1:
            yield Notice(names[0], f"has {said}")
        else:
            rest = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            yield Notice(cluster, f"{len(names)} topics have {said} ({', '.join(sorted(names)[:_SHOWN])}{rest})")
    yield from _more(topics, topology, target)


def _more(topics: Collection[DesiredTopic], topology: Topology, target: ObservedCluster) -> Iterator[Notice]:
    """Yield which copies have more replicas than their flow declares."""
    factors = {flow.name: flow.replication_factor for flow in topology.flows}
    for topic in topics:
        found, asked = target.topics.get(topic.name), topic.replication_factor
        if found is None or topic.name not in target.owned or factors[topic.flow] is None:
            continue
        if found.replicas > asked:
            yield Notice(topic.name, f"has replication {found.replicas}, declared is {asked}: left as it is")


def state_replicas(topology: Topology, target: ObservedCluster) -> int:
    """Return how many replicas topics of our own state should have on a target."""
    return topology.clusters[target.alias].state_replication_factor or min(_USUAL, target.brokers)


def thin_copy(topology: Topology, record: OwnedTopic, found: ObservedTopic, alias: str) -> Iterator[Drifted]:
    """Yield that a copy has fewer replicas than its flow declares, or else than it was to be made with.

    Args:
        topology: what is declared.
        record: of the copy.
        found: the copy.
        alias: of its target.
    """
    flow = next((one for one in topology.flows if one.name == record.flow and one.target == alias), None)
    declared = flow.replication_factor if flow else None
    # A target's current default is read for plans alone.
    wanted = (None if declared == TARGETS_DEFAULT else declared) or record.replicas or 0
    if found.replicas < wanted:
        yield Drifted(alias, "changed", record.name, "replicas", str(wanted), str(found.replicas), ADD)


def thin_state(topology: Topology, target: ObservedCluster) -> Iterator[Drifted]:
    """Yield which topics of our own state have fewer replicas than they should."""
    wanted = state_replicas(topology, target)
    for name in target.journals:
        count = target.state_replicas.get(name, wanted)
        if count < wanted:
            yield Drifted(target.alias, "changed", name, "replicas", str(wanted), str(count), ADD)


def _replicas(count: int) -> str:
    return f"{count} replica{'' if count == 1 else 's'}"
