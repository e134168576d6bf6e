"""What `replicate` does for each flow again and again: observe, plan and provision as `apply` does, but only to follow.

New topics and partitions, settings that changed on originals, ACLs that were granted or revoked there. Nothing is
deleted, and what users changed at the target waits for `apply`, where an operator reads the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from reconciler.model.acls.requirements import ResourcePattern
from reconciler.model.base.errors import AnabranchError, EnvironmentFault, Unreachable
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.limits import Beyond
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.desired import TopicSetting
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.outcome import Growth
from reconciler.model.planning.removals import Removal
from reconciler.model.planning.steps import (
    AclChange,
    AddPartitions,
    AlterConfig,
    ClusterPlan,
    CreateInternalTopic,
    CreateTopic,
    GrantAcl,
    Plan,
    RecordOwnership,
    RevokeAcl,
    Step,
    TopicChange,
)
from reconciler.model.recorded.ownership import OwnedTopic
from reconciler.operate.flows.observations import Observation, SharedObservations


def growing(topology: Topology, make: bool = True) -> Callable[[str], Growth]:
    """Return a function that makes what the remote topics of a flow lack, and returns what became of it.

    Where `apply` refuses as a whole, it leaves out the topics that must not be touched. It raises an AnabranchError
    when a cluster cannot be read.

    Args:
        topology: the declaration.
        make: whether anything is made; otherwise it only returns what must not be touched, as far as it may read that.
    """
    from reconciler.plan.copies.offsets import choices, limited
    from reconciler.plan.copies.refused_names import misnamed
    from reconciler.plan.guardrails.left_out import contenders, hindered, left_out, unmade, without
    from reconciler.provision.direct import DirectProvisioner

    others = {flow.name: contenders(topology, flow) for flow in topology.flows}
    alike: dict[tuple[str, str, tuple[Flow, ...]], SharedObservations] = {}
    shared = {
        flow.name: alike.setdefault((flow.source, flow.target, others[flow.name]), SharedObservations())
        for flow in topology.flows
    }

    def grow(name: str) -> Growth:
        (flow,) = (flow for flow in topology.flows if flow.name == name)
        targets = (flow.target,)
        try:
            seen, contested = _look(topology, flow, others[name], shared[name])
        except EnvironmentFault as error:
            if make or isinstance(error, Unreachable):
                raise
            # A principal for which topics are made may lack the permission to read their settings.
            return Growth(problems=error.problems)
        part, observed = seen.part, seen.observed
        everywhere = seen.once("left out", lambda: left_out(part, observed, targets))
        # Whether a topic would come back depends on all flows together.
        stray = {topic: str(problem) for topic, problem in misnamed(topology, flow, observed).items()}
        unwanted = {**everywhere.get(name, {}), **contested, **stray}
        chosen = seen.once("choices", lambda: choices(part, observed, targets))
        translated = frozenset(
            choice.original.name for choice in chosen if choice.flow.name == name and choice.mode == "translated"
        )
        # Most flows leave out what all of them do: these share what follows.
        key = name if unwanted != everywhere.get(name, {}) else ""
        wanted = seen.once(("wanted", key), lambda: without(part, {**everywhere, name: unwanted}))
        (taking,) = (one for one in wanted.flows if one.name == name)
        beyond = limited(taking, wanted, observed).beyond
        if not make:
            return Growth(left_out=unwanted, translated=translated, beyond=beyond)
        refused = seen.once(("hindered", key), lambda: hindered(wanted, observed, targets))
        try:
            # Consumers go on reading a copy while nothing can be done for it.
            copied = seen.once(("copied", key), lambda: without(wanted, unmade(wanted, observed, refused)))
            going = seen.once(("going", key), lambda: without(wanted, refused))
            plan, more = within_growth(Wanted(going, copied, key), seen, taking)
        except AnabranchError as error:
            return Growth(left_out=unwanted, translated=translated, beyond=beyond, problems=error.problems)
        outcome = DirectProvisioner(topology).apply(replace(plan, digest=topology.digest))
        return Growth(outcome, unwanted, refused.get(name, {}), translated, (*beyond, *more))

    return grow


class Wanted(NamedTuple):
    """What a plan is for.

    Attributes:
        going: what may be made and changed.
        copied: the same, with what is copied and cannot be changed now: its ACLs follow.
        key: names both among those of one observation.
    """

    going: Topology
    copied: Topology
    key: str


def within_growth(wanted: Wanted, seen: Observation, flow: Flow) -> tuple[Plan, tuple[Beyond, ...]]:
    """Return what is done for a flow at one look, and what its limit of growth leaves to the next one.

    Args:
        wanted: what may be done.
        seen: the flow's clusters.
        flow: which one.

    Raises:
        AnabranchError: nothing can be planned.
    """
    from reconciler.plan.build import build_plan, with_acls_of
    from reconciler.plan.copies.limits import beyond_growth
    from reconciler.plan.guardrails.left_out import without

    observed, names = seen.observed, {one.name for one in wanted.copied.flows}

    def built(left_out: Collection[str]) -> Plan:
        beyond_it = {flow.name: dict.fromkeys(left_out, "beyond the limit of growth")}
        plan = build_plan(without(wanted.going, beyond_it), observed, (flow.target,))
        return with_acls_of(plan, without(wanted.copied, beyond_it), observed)

    def planned(left_out: Collection[str]) -> Plan:
        plan = built(left_out) if left_out else seen.once(("plan", wanted.key), lambda: built(()))
        return only_following(plan, flow.name, observed[flow.target].owned, names)

    plan = planned(())
    beyond = beyond_growth(flow, plan.steps)
    if beyond is None:
        return plan, ()
    # What is granted on a topic that is not made is left out with it.
    rest = planned(beyond.left_out)
    kept = {topic for topic, _ in beyond.not_enlarged}
    clusters = tuple(
        replace(cluster, steps=tuple(step for step in cluster.steps if not _enlarges(step, kept)))
        for cluster in rest.clusters
    )
    return replace(rest, clusters=clusters), (beyond,)


def _enlarges(step: Step, topics: Collection[str]) -> bool:
    return isinstance(step, AddPartitions) and step.topic.source_topic in topics


def _look(
    topology: Topology, flow: Flow, others: tuple[Flow, ...], shared: SharedObservations
) -> tuple[Observation, Mapping[str, str]]:
    """Observe what a flow's plan rests on.

    Args:
        topology: the declaration.
        flow: one of its flows.
        others: its contenders: from these and the flows beside it follows which topics two flows would take.
        shared: that of all flows between its clusters with the same contenders.

    Returns:
        The observation, and by original what flows from elsewhere might copy to the same remote topic when their
        clusters could not be read.
    """
    from reconciler.observe.topology import observe
    from reconciler.plan.guardrails.left_out import contested

    beside = tuple(one for one in topology.flows if (one.source, one.target) == (flow.source, flow.target))
    part = replace(topology, flows=(*beside, *others))
    try:
        return shared.newest(lambda: Observation(part, observe(part, (flow.target,)))), {}
    except AnabranchError:
        if not others:
            raise
    # The troubles of other clusters are not this flow's; but copies may hold records of theirs.
    alone = replace(topology, flows=beside)
    observed = observe(alone, (flow.target,))
    away = {one.source: ObservedCluster.away(one.source) for one in others if one.source not in observed}
    elsewhere = tuple(replace(one, topics=replace(one.topics, required=False)) for one in others if one.source in away)
    part = replace(topology, flows=(*beside, *elsewhere))
    return Observation(part, {**observed, **away}), contested(topology, flow, observed).get(flow.name, {})


def only_following(
    plan: Plan, flow: str, owned: Mapping[str, OwnedTopic], beside: Collection[str] = frozenset()
) -> Plan:
    """Return the steps of `plan` with which copies of a flow follow their originals, or end what a killed one began.

    Args:
        plan: for one target.
        flow: name of the flow.
        owned: the target's ownership records by topic.
        beside: names of all flows that the plan is for; an ACL on a pattern that one of them was granted covers copies
            of this one as well, and is taken back with what all copies beneath it get instead.
    """
    wide = {
        step.binding.pattern
        for step in plan.steps
        if isinstance(step, RevokeAcl) and step.cause == "wide" and step.flow in {flow, *beside}
    }
    made = {step.name for step in plan.steps if isinstance(step, CreateTopic)}
    clusters = tuple(
        ClusterPlan(
            cluster.alias,
            cluster.datacenter,
            tuple(
                _keeping_settings(one, owned)
                for step in cluster.steps
                for one in ([step] if _takes_back(step, wide, made) else _following(step, flow))
            ),
        )
        for cluster in plan.clusters
    )
    return replace(plan, clusters=clusters)


def _takes_back(step: Step, wide: Collection[ResourcePattern], made: Collection[str]) -> bool:
    """Return whether a step takes back an ACL on a pattern, or grants on a copy that is there what it gets instead."""
    if isinstance(step, RevokeAcl):
        return step.binding.pattern in wide
    if not isinstance(step, GrantAcl) or step.role != "followed" or step.binding.pattern.name in made:
        return False
    return any(pattern.covers(step.binding.pattern) for pattern in wide)


def _following(step: Step, flow: str) -> Iterator[Step]:
    """Yield the step, or what of it follows originals of a flow; nothing where it does not."""
    if isinstance(step, CreateInternalTopic):
        yield step
    elif isinstance(step, AclChange):
        # ACLs of the replicator itself are declared, and left to `apply`.
        if step.flow == flow and step.role == "followed":
            yield step
    elif isinstance(step, Removal) or step.topic.flow != flow:
        return
    elif isinstance(step, AlterConfig):
        if changes := tuple(change for change in step.changes if change.reason in ("source-change", "obsolete")):
            yield replace(step, changes=changes)
    elif not isinstance(step, RecordOwnership) or step.reason in ("interrupted", "made-anew"):
        yield step


def _keeping_settings(step: Step, owned: Mapping[str, OwnedTopic]) -> Step:
    """Reduce the record of an existing topic to the settings that were applied last and that are applied now."""
    if not isinstance(step, TopicChange) or step.name not in owned:
        return step
    applied = dict(owned[step.name].configs)
    for change in step.changes if isinstance(step, AlterConfig) else ():
        applied.pop(change.key, None)
        if change.new is not None:
            applied[change.key] = change.new
    settings = tuple(TopicSetting(key, value, "source") for key, value in sorted(applied.items()))
    return replace(step, topic=replace(step.topic, settings=settings))
