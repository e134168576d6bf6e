"""Plan several hops at once: a copy that a plan makes may itself be an original, whose copies the same plan makes.

Pure. Without it a topic would cross a topology of many hops one apply at a time, and each plan would leave something to
the next. Called by the commands; the reconcile loop handles one flow, and repeats.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from reconciler.model.base.errors import AnabranchError, together
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.desired import DesiredTopic
from reconciler.model.planning.observed import EFFECTIVE_KEYS, PASSAGE_KEYS, ObservedCluster, ObservedTopic
from reconciler.model.planning.steps import (
    AddPartitions,
    AlterConfig,
    ConfigChange,
    CreateTopic,
    GrantAcl,
    Plan,
    RevokeAcl,
    Step,
)
from reconciler.plan.build import build_plan
from reconciler.plan.copies.offsets import Observed


def build_plan_ahead(topology: Topology, observed: Observed, targets: Collection[str]) -> Plan:
    """Return the plan after which there is nothing more to do, as far as the clusters are observed.

    Args:
        topology: what is declared.
        observed: the targets and the sources of the flows into them.
        targets: aliases of the target clusters to plan for.

    Raises:
        AnabranchError: what `build_plan` raises.
    """
    plan = build_plan(topology, observed, targets)
    if plan.is_empty or not any(flow.source in targets for flow in topology.flows_into(targets)):
        return plan
    # A name shows the clusters that a topic came through, and none takes it twice.
    for _ in topology.aliases:
        further = _each(topology, _ahead(observed, plan), observed, targets)
        if further.steps == plan.steps:
            return further
        plan = further
    return plan


def rests_on(observed: Observed, plan: Plan, alias: str) -> dict[str, ObservedCluster]:
    """Return what a plan's part for one target rests on: this cluster as it is, the others as they will be."""
    return {**_ahead(observed, plan), alias: observed[alias]}


def _each(topology: Topology, ahead: Observed, observed: Observed, targets: Collection[str]) -> Plan:
    """Plan for each target as it is, with the others as they will be."""
    plans, errors = [], []
    for alias in topology.aliases:
        if alias in targets:
            try:
                plans.append(build_plan(topology, {**ahead, alias: observed[alias]}, (alias,)))
            except AnabranchError as error:
                errors.append(error)
    if errors:
        raise together(errors)
    return replace(plans[0], clusters=tuple(cluster for plan in plans for cluster in plan.clusters))


def _ahead(observed: Observed, plan: Plan) -> dict[str, ObservedCluster]:
    """Return the clusters as they are when the plan is carried out, as far as flows from them are concerned."""
    steps: dict[str, list[Step]] = {}
    for step in plan.steps:
        steps.setdefault(step.cluster, []).append(step)
    return {alias: _after(cluster, steps.get(alias, ())) for alias, cluster in observed.items()}


def _after(cluster: ObservedCluster, steps: Iterable[Step]) -> ObservedCluster:
    made: dict[str, ObservedTopic] = {}
    bindings = set(cluster.acls.bindings)
    for step in steps:
        if isinstance(step, CreateTopic):
            made[step.name] = _made(step.topic)
        elif isinstance(step, AddPartitions):
            made[step.name] = _grown(made.get(step.name, cluster.topics[step.name]), step.topic.partitions)
        elif isinstance(step, AlterConfig):
            made[step.name] = _altered(made.get(step.name, cluster.topics[step.name]), step.changes)
        elif isinstance(step, GrantAcl):
            bindings.add(step.binding)
        elif isinstance(step, RevokeAcl) and not step.is_kept:
            bindings.discard(step.binding)
    return replace(
        cluster,
        topics={**cluster.topics, **made},
        names=cluster.names | made.keys(),
        acls=replace(cluster.acls, bindings=frozenset(bindings)),
    )


def _made(topic: DesiredTopic) -> ObservedTopic:
    """Return a topic as it will be; its id is known when it is made."""
    return ObservedTopic(
        name=topic.name,
        topic_id="",
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        configs=dict(topic.configs),
        effective={key: topic.configs[key] for key in (*EFFECTIVE_KEYS, *PASSAGE_KEYS) if key in topic.configs},
        starts=(0,) * topic.partitions,
        ends=(0,) * topic.partitions,
    )


def _grown(topic: ObservedTopic, partitions: int) -> ObservedTopic:
    more = (0,) * (partitions - topic.partitions)
    return replace(topic, partitions=partitions, starts=(*topic.starts, *more), ends=(*topic.ends, *more))


def _altered(topic: ObservedTopic, changes: Iterable[ConfigChange]) -> ObservedTopic:
    configs, effective = dict(topic.configs), dict(topic.effective)
    for change in changes:
        configs.pop(change.key, None)
        # The default that a removed setting falls back to is known to the brokers alone.
        if change.new is not None:
            configs[change.key] = change.new
            if change.key in effective:
                effective[change.key] = change.new
    return replace(topic, configs=configs, effective=effective)
