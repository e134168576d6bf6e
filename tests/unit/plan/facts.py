"""Topologies and observed clusters for the tests of the plan, short to write down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from reconciler.model.acls.binding import ObservedBindings, OwnedBinding
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.selection import Selection
from reconciler.model.planning.desired import DesiredTopic
from reconciler.model.planning.observed import ObservedCluster, ObservedTopic
from reconciler.model.planning.removals import Removal
from reconciler.model.planning.steps import (
    AclChange,
    AddPartitions,
    AlterConfig,
    CreateInternalTopic,
    CreateTopic,
    GrantAcl,
    Plan,
)
from reconciler.model.recorded.declaration import InForce
from reconciler.model.recorded.ownership import OwnedTopic
from reconciler.plan.build import build_plan

EAST = "us-east"
WEST = "eu-west"
INTERNAL = ("anabranch.payments.owned.internal", "anabranch.payments.status.internal")
DEFAULTS = {
    "cleanup.policy": "delete",
    "max.message.bytes": "1048588",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
}


def flow(source: str = EAST, target: str = WEST, include: Sequence[str] = (".*",), **fields: object) -> Flow:
    made = Flow(f"{source}-{target}", source, target, Selection(tuple(include)))
    return replace(made, **fields)  # type: ignore[arg-type]


def topology(*flows: Flow, name: str = "payments") -> Topology:
    flows = flows or (flow(),)
    aliases = dict.fromkeys(alias for one in flows for alias in (one.source, one.target))
    clusters = {alias: Cluster(alias, (f"{alias}.example:9092",), f"dc-{alias}") for alias in aliases}
    return Topology(name, clusters, flows)


def topic(
    name: str, partitions: int = 6, replication: int = 3, configs: Mapping[str, str] | None = None, topic_id: str = ""
) -> ObservedTopic:
    configs = configs or {}
    effective = {key: configs.get(key, default) for key, default in DEFAULTS.items()}
    return ObservedTopic(name, topic_id or f"id-of-{name}", partitions, replication, configs, effective)


def cluster(
    alias: str, *topics: ObservedTopic, brokers: int = 3, owned: Sequence[OwnedTopic] = (), internal: bool = True
) -> ObservedCluster:
    names = frozenset(one.name for one in topics) | (frozenset(INTERNAL) if internal else frozenset())
    return ObservedCluster(
        alias=alias,
        cluster_id=f"cluster-id-of-{alias}",
        brokers=brokers,
        names=names,
        topics={one.name: one for one in topics},
        owned={record.name: record for record in owned},
        journals=INTERNAL,
    )


def plan_of(declared: Topology, *clusters: ObservedCluster) -> Plan:
    observed = {one.alias: one for one in clusters}
    targets = [alias for alias in declared.aliases if any(f.target == alias for f in declared.flows)]
    return build_plan(declared, observed, targets)


def made(wanted: DesiredTopic, topic_id: str = "") -> ObservedTopic:
    """The topic that a cluster shows after `wanted` was made there."""
    return topic(wanted.name, wanted.partitions, wanted.replication_factor, wanted.configs, topic_id)


def record(wanted: DesiredTopic, declared: Topology, topic_id: str | None = "") -> OwnedTopic:
    return wanted.owned(declared.name, declared.digest, f"id-of-{wanted.name}" if topic_id == "" else topic_id)


def carried_out(plan: Plan, before: ObservedCluster) -> ObservedCluster:
    """What a cluster looks like after every step of a plan for it, by the words of the steps alone."""
    topics, owned, names, acls = dict(before.topics), dict(before.owned), set(before.names), before.acls
    for step in plan.steps:
        if step.cluster != before.alias:
            continue
        if isinstance(step, AclChange):
            acls = _changed(acls, step, plan.topology)
            continue
        if isinstance(step, Removal):
            names.discard(step.name)
            topics.pop(step.name, None)
            owned.pop(step.name)
            continue
        names.add(step.name)
        if isinstance(step, CreateInternalTopic):
            continue
        if isinstance(step, CreateTopic):
            topics[step.name] = made(step.topic)
        elif isinstance(step, AddPartitions):
            topics[step.name] = replace(topics[step.name], partitions=step.topic.partitions)
        elif isinstance(step, AlterConfig):
            configs = dict(topics[step.name].configs) | {c.key: c.new for c in step.changes if c.new is not None}
            gone = {c.key for c in step.changes if c.new is None}
            configs = {key: value for key, value in configs.items() if key not in gone}
            topics[step.name] = replace(topics[step.name], configs=configs)
        owned[step.name] = step.topic.owned(plan.topology, plan.digest, topics[step.name].topic_id)
    declared = next((one.declared for one in plan.clusters if one.alias == before.alias), None)
    in_force = before.in_force if declared is None else InForce(declared.digest, 1_800_000_000.0, "ops@host")
    said = before.declaration if declared is None else declared.declaration
    after = replace(before, topics=topics, owned=owned, names=frozenset(names), in_force=in_force, acls=acls)
    return replace(after, declaration=said)


def _changed(acls: ObservedBindings, step: AclChange, topology: str) -> ObservedBindings:
    one = OwnedBinding(step.binding, topology, step.flow, step.role)
    others = tuple(owned for owned in acls.owned if (owned.binding, owned.topology) != (one.binding, topology))
    if isinstance(step, GrantAcl):
        return replace(acls, bindings=acls.bindings | {step.binding}, owned=(*others, one))
    return replace(acls, bindings=acls.bindings - (set() if step.is_kept else {step.binding}), owned=others)
