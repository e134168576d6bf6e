"""The exact ACLs that a topology's flows need on their clusters, from the declaration alone.

Pure. `anabranch explain --acls` prints them, `doctor` holds them against live clusters. Each operation stands here
because some request needs it; where one gives another (`model.acls.requirements.IMPLIED`) the lesser is left out.
What is optional is what copying does without, with less: a warning, or another way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from reconciler.model.acls.requirements import (
    CLUSTER_NAME,
    COPYING,
    Acl,
    Purpose,
    ResourceKind,
    ResourcePattern,
    without_surplus,
)
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.own_names import (
    SHARED_NAMES,
    SHARED_PROBE_NAMES,
    StateNames,
    checkpoints_topic,
    lease_group,
    probe_prefix,
    state_names,
    syncs_topic,
    transactional_prefix,
    turn_group,
)
from reconciler.model.names.selection import is_literal
from reconciler.model.names.topic_names import HEARTBEATS
from reconciler.plan.acls.patterns import copies, narrowed, originals, patterns_of

PLACEHOLDER = "REPLICATOR"
"""Stands for the principal where the declaration names no user."""

_MARKERS = "transaction markers that fill gaps; CLUSTER_ACTION instead before Kafka 3.8"
_MARKERS_BEGUN = "transaction markers that fill gaps, in copies that were begun with identical offsets"
_CLUSTER = ResourcePattern(CLUSTER_NAME)
_FOLLOWING: tuple[Collection[Purpose], bool] = (["apply"], True)
_LOOK = "check before a copy begins whether its remote topic is ours"
_LOOKED = "when groups were last checked, between waves and in `status`"
_STATUS = "what `status` shows, and when groups were last checked"
_CONTROL = "commands such as `pause`, and which task has which partition"
_COPIES = "records of copies: topic ids, shifted runs; what the target supports"


@dataclass(frozen=True)
class _Need:
    """Operations of one flow on one side; for these purposes they are needed, or optional."""

    kind: ResourceKind
    pattern: ResourcePattern
    operations: Sequence[str]
    why: str
    purposes: Collection[Purpose] = COPYING
    is_optional: bool = False


def needed_acls(topology: Topology, flows: Collection[Flow], shared: Collection[str] = ()) -> tuple[Acl, ...]:
    """Return the ACLs that `flows` of `topology` need, by cluster in the order of declaration, each once.

    Args:
        topology: what is declared.
        flows: of it.
        shared: targets whose journals are still those that all topologies share, and must be there.
    """
    found = [
        Acl(alias, purpose, need.kind, need.pattern, operation, need.is_optional, need.why, (flow.name,))
        for flow in flows
        for alias, need in _needs(topology, flow, flow.target in shared)
        for purpose in need.purposes
        for operation in need.operations
    ]
    order = {alias: place for place, alias in enumerate(topology.aliases)}
    return tuple(sorted(without_surplus(found), key=lambda acl: order[acl.alias]))


def principal(cluster: Cluster) -> str:
    """Return the principal of ACLs on a cluster, as Kafka writes it; a placeholder where no user is declared."""
    if cluster.replicator is not None:
        return cluster.replicator.name
    return f"User:{cluster.security.user or PLACEHOLDER}"


def remarks(topology: Topology, flows: Collection[Flow]) -> dict[str, tuple[str, ...]]:
    """Return by cluster what ACLs cannot express of `flows`, and other remarks."""
    found: dict[str, list[str]] = {}
    for alias in dict.fromkeys(alias for flow in flows for alias in (flow.source, flow.target)):
        said = found.setdefault(alias, [])
        if principal(topology.clusters[alias]) == f"User:{PLACEHOLDER}":
            said.append(f"no user is declared: put the replicator's principal for User:{PLACEHOLDER}")
        for flow in flows:
            if flow.source == alias:
                said += _about_patterns(flow)
        if any(flow.target == alias for flow in flows):
            said.append(
                "before Kafka 3.0 writing the journals also needs IDEMPOTENT_WRITE on the cluster; later WRITE on a "
                "topic gives it"
            )
    return {alias: tuple(said) for alias, said in found.items()}


def _about_patterns(flow: Flow) -> Iterator[str]:
    for item in flow.topics.include:
        if not is_literal(item):
            said = ", ".join(map(str, patterns_of(item)))
            yield f"flow {flow.name}: ACLs have no regular expressions: {item} became {said}"
    if flow.topics.exclude:
        yield f"flow {flow.name}: what is excluded is not taken, though a prefix may allow it"
    if flow.policy.gives_any_name and not all(map(is_literal, flow.topics.include)):
        yield f"flow {flow.name}: a policy class may give copies any name, so its target allows all topics"


def _needs(topology: Topology, flow: Flow, is_shared: bool) -> Iterator[tuple[str, _Need]]:
    for need in (*_at_source(flow, topology.aliases), *_verified(originals(flow, topology.aliases), "originals")):
        yield flow.source, need
    names = SHARED_NAMES if is_shared else state_names(topology.name)
    for need in (
        *_of_copies(flow, topology.aliases),
        *_of_coordinators(topology.name, flow),
        *_of_journals(names),
        *_of_topics_beside(flow),
        *_of_probe(topology.name, flow, names),
        *_of_groups_at_target(topology.name, flow),
        *_of_looks(topology, flow, names),
        *_verified(copies(flow, topology.aliases), "copies"),
        *_of_verifying(topology.name, flow, names),
    ):
        yield flow.target, need


def _at_source(flow: Flow, aliases: Collection[str]) -> Iterator[_Need]:
    for pattern in originals(flow, aliases):
        yield _Need("topic", pattern, ["READ"], "originals")
        yield _Need("topic", pattern, ["DESCRIBE_CONFIGS"], "what copies are made like", ["apply"])
        yield _Need("topic", pattern, ["DESCRIBE_CONFIGS"], _LOOK, ["replicate"], is_optional=True)
    for pattern in _groups(flow):
        yield _Need("group", pattern, ["DESCRIBE"], "what groups have committed", ["replicate"])
    if flow.acls:
        yield _Need("cluster", _CLUSTER, ["DESCRIBE"], "the ACLs of originals, which copies follow", *_FOLLOWING)
        why = "whether a cluster without ACLs has an authorizer"
        yield _Need("cluster", _CLUSTER, ["DESCRIBE_CONFIGS"], why, *_FOLLOWING)


def _of_groups_at_target(topology: str, flow: Flow) -> Iterator[_Need]:
    if not flow.has_service:
        return
    yield _Need(
        "group",
        ResourcePattern(turn_group(topology, flow.name)),
        ["READ"],
        "election of the process that serves groups",
        ["replicate"],
    )
    yield _Need("topic", ResourcePattern(HEARTBEATS), ["CREATE", "WRITE"], "heartbeats", ["replicate"])
    if not flow.groups.include:
        return
    checkpoints = ResourcePattern(checkpoints_topic(flow.source, flow.checkpoints_separator))
    why = "where groups stand, at the source and in copies"
    yield _Need("topic", checkpoints, ["CREATE", "READ", "WRITE"], why, ["replicate"])
    if flow.groups.sync_offsets:
        for pattern in _groups(flow):
            yield _Need("group", pattern, ["READ"], "committing positions for groups", ["replicate"])


def _of_looks(topology: Topology, flow: Flow, names: StateNames) -> Iterator[_Need]:
    """Yield what is checked between waves: the state of flows, and when groups were last checked."""
    has_waves = len({topology.wave(one.target) for one in topology.flows if one.enabled}) > 1
    if has_waves:
        yield _Need("topic", ResourcePattern(names.status), ["READ"], "state of flows, between waves", ["apply"])
    if flow.groups.include and names == SHARED_NAMES:
        yield _Need("topic", ResourcePattern(HEARTBEATS), ["READ"], _LOOKED, ["apply"], is_optional=not has_waves)


def _groups(flow: Flow) -> tuple[ResourcePattern, ...]:
    # An item is a group's name as it stands, and what it matches as an expression.
    return narrowed(pattern for item in flow.groups.include for pattern in (ResourcePattern(item), *patterns_of(item)))


def _of_copies(flow: Flow, aliases: Collection[str]) -> Iterator[_Need]:
    for pattern in copies(flow, aliases):
        yield _Need("topic", pattern, ["READ"] if flow.failed_over else ["READ", "WRITE"], "copies")
        yield _Need("topic", pattern, ["DESCRIBE_CONFIGS"], _LOOK, ["replicate"], is_optional=True)
        if flow.failed_over:
            # Producers write there now: the replicator must not change their records.
            continue
        if flow.create:
            yield _Need("topic", pattern, ["CREATE"], "making them", ["apply"])
            yield _Need("topic", pattern, ["ALTER"], "letting them grow", ["apply"])
            yield _Need("topic", pattern, ["ALTER_CONFIGS"], "their settings", ["apply"])
        if flow.may_begin_identical:
            why = "padding, where originals have lost their beginning"
            yield _Need("topic", pattern, ["DELETE"], why, is_optional=True)
    if flow.acls:
        yield _Need("cluster", _CLUSTER, ["ALTER"], "ACLs of copies", *_FOLLOWING)


def _of_coordinators(topology: str, flow: Flow) -> Iterator[_Need]:
    yield _Need("group", ResourcePattern(lease_group(topology, flow.name)), ["READ"], "the lease; committed positions")
    ids = ResourcePattern(transactional_prefix(topology, flow.name), prefixed=True)
    why = "producers of partitions, and transactions"
    if not flow.repeats:
        yield _Need("transactional-id", ids, ["WRITE"], why)
    elif flow.offsets == "auto":
        begun = "copies that were begun with identical offsets"
        yield _Need("transactional-id", ids, ["WRITE"], begun, is_optional=True)
    if flow.demands_markers:
        yield _Need("cluster", _CLUSTER, ["ALTER"], _MARKERS)
    elif flow.fill == "markers" and flow.offsets == "auto":
        yield _Need("cluster", _CLUSTER, ["ALTER"], _MARKERS_BEGUN, is_optional=True)
    elif flow.may_begin_identical and flow.fill == "auto":
        yield _Need("cluster", _CLUSTER, ["ALTER"], _MARKERS, ["replicate"], is_optional=True)
    if _may_be_translated(flow) and not flow.repeats:
        why = "writing a transaction's marker that a broker left out (KAFKA-20734)"
        yield _Need("cluster", _CLUSTER, ["ALTER"], why, ["replicate"], is_optional=True)


def _of_journals(names: StateNames) -> Iterator[_Need]:
    for name, why in ((names.status, _STATUS), (names.control, _CONTROL), (names.copies, _COPIES)):
        yield _Need("topic", ResourcePattern(name), ["READ", "WRITE"], why, ["replicate"])
        yield _Need("topic", ResourcePattern(name), ["CREATE", "DESCRIBE"], why, ["apply"])
    why = "which remote topics are ours"
    yield _Need("topic", ResourcePattern(names.owned), ["READ"], why)
    yield _Need("topic", ResourcePattern(names.owned), ["CREATE", "WRITE"], why, ["apply"])


def _of_topics_beside(flow: Flow) -> Iterator[_Need]:
    if flow.dlq is not None:
        yield _Need("topic", ResourcePattern(flow.dlq), ["WRITE"], "records put aside (dlq)", ["replicate"])
        yield _Need("topic", ResourcePattern(flow.dlq), ["DESCRIBE"], "check that the dlq exists", ["apply"])
    if _may_be_translated(flow):
        syncs, why = ResourcePattern(syncs_topic(flow.source)), "where records with translated offsets stand"
        is_optional = flow.may_begin_identical
        yield _Need("topic", syncs, ["CREATE", "WRITE"], why, ["replicate"], is_optional)
        why = "a position that the group has lost"
        if not flow.repeats:
            yield _Need("topic", syncs, ["READ"], why, ["replicate"], is_optional=True)
        why = "keeping what an older release has made from being compacted at once"
        yield _Need("topic", syncs, ["DESCRIBE_CONFIGS", "ALTER_CONFIGS"], why, ["replicate"], is_optional=True)


def _of_probe(topology: str, flow: Flow, names: StateNames) -> Iterator[_Need]:
    if flow.repeats:
        return
    why = "probe of what the target supports"
    is_shared = names == SHARED_NAMES
    prefix = transactional_prefix(*SHARED_PROBE_NAMES) if is_shared else probe_prefix(topology)
    ids, scratch = ResourcePattern(prefix, prefixed=True), ResourcePattern(names.scratch)
    yield _Need("topic", scratch, ["CREATE", "READ", "WRITE"], why, ["replicate"], is_optional=True)
    yield _Need("transactional-id", ids, ["WRITE"], why, ["replicate"], is_optional=True)
    if is_shared:
        why = "record of what the target supports"
        yield _Need("topic", ResourcePattern(names.owned), ["WRITE"], why, ["replicate"], is_optional=True)


def _verified(patterns: Collection[ResourcePattern], why: str) -> Iterator[_Need]:
    """Yield what comparing topics takes."""
    for pattern in patterns:
        yield _Need("topic", pattern, ["READ"], why, ["verify"])
        yield _Need("topic", pattern, ["DESCRIBE_CONFIGS"], "what compaction may have taken", ["verify"], True)


def _of_verifying(topology: str, flow: Flow, names: StateNames) -> Iterator[_Need]:
    """Yield what explains at the target how copies stand to their originals."""
    yield _Need("topic", ResourcePattern(names.owned), ["READ"], "which offsets copies have", ["verify"])
    yield _Need("topic", ResourcePattern(names.copies), ["READ"], "shifted runs, and records put aside", ["verify"])
    if _may_be_translated(flow):
        group, why = ResourcePattern(lease_group(topology, flow.name)), "up to where copies must reach"
        yield _Need("group", group, ["DESCRIBE"], why, ["verify"], is_optional=True)
        why = "where copies begin, when nothing else is known of it"
        yield _Need("topic", ResourcePattern(syncs_topic(flow.source)), ["READ"], why, ["verify"], is_optional=True)


def _may_be_translated(flow: Flow) -> bool:
    return flow.offsets != "identical"
