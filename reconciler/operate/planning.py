"""Observes the clusters and plans what an apply would do."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.model.declared.topology import Topology
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.removals import DeletionKind
from reconciler.model.planning.steps import Notice, Plan
from reconciler.operate.deployments.observed import Deployments
from reconciler.operate.reporter import SILENT, Reporter
from reconciler.operate.targets import check_names, planned_clusters


@dataclass(frozen=True)
class PlanOptions:
    """What is planned, and what it may do.

    Attributes:
        clusters: aliases of the targets; none means all of enabled flows, and those where flows are to end.
        target: remote topics; none means all.
        allow_delete: by kind (`topic`, `acl`) how many things may be deleted. A kind that is not named is not planned.
        take_over: whether what another owner put in force may end.
    """

    clusters: Sequence[str] = ()
    target: Sequence[str] = ()
    allow_delete: Mapping[DeletionKind, int] = field(default_factory=dict)
    take_over: bool = False


@dataclass(frozen=True)
class PlanScope:
    """What a plan covers.

    Attributes:
        topics: remote topics; none means all.
        deletes: kinds of things that it deletes: copies that the declaration no longer covers, and ACLs on copies that
            other tools granted.
        notices: one for each cluster that could not be read when the targets were chosen.
    """

    topics: tuple[str, ...] = ()
    deletes: frozenset[DeletionKind] = frozenset()
    notices: tuple[Notice, ...] = ()


EVERYTHING = PlanScope()
WHOLE = PlanOptions()
_MOST_LOOKS = 4


@dataclass(frozen=True)
class PlannedApply:
    """A plan, and what it rests on.

    Attributes:
        topology: what is declared.
        options: what was asked for.
        targets: aliases of the clusters that are planned for.
        scope: what the plan covers.
        plan: what an apply would do.
        observed: the observed clusters by alias.
    """

    topology: Topology
    options: PlanOptions
    targets: tuple[str, ...]
    scope: PlanScope
    plan: Plan
    observed: Mapping[str, ObservedCluster]

    def check(self) -> None:
        """Check what an apply of this plan would refuse.

        Raises:
            Refused: AB420, it deletes more than is allowed; AB447, it would end what another owner put in force.
        """
        check_guardrails(self.topology, self.plan, self.observed, self.targets, self.options, self.scope.topics)


def plan(
    topology: Topology, options: PlanOptions = WHOLE, reporter: Reporter = SILENT, whole_data_centres: bool = False
) -> PlannedApply:
    """Return what an apply would do; changes nothing.

    Args:
        topology: what is declared.
        options: what is planned.
        reporter: receives progress.
        whole_data_centres: whether all clusters in the data centres of the targets are observed, too.

    Raises:
        InvalidArgument: `clusters` or `target`, a name is unknown.
        AnabranchError: as `observe_and_plan` raises it.
    """
    targets, notices = planned_clusters(topology, options.clusters, reporter)
    scope = PlanScope(tuple(options.target), frozenset(options.allow_delete), notices)
    also = data_centres_of(topology, targets) if whole_data_centres else ()
    planned, observed = observe_and_plan(topology, targets, scope, also, reporter)
    return PlannedApply(topology, options, targets, scope, planned, observed)


def data_centres_of(topology: Topology, targets: Collection[str]) -> tuple[str, ...]:
    """Return the aliases of all clusters in the data centres of targets."""
    places = {topology.clusters[alias].datacenter for alias in targets}
    return tuple(alias for alias, cluster in topology.clusters.items() if cluster.datacenter in places)


def check_guardrails(
    topology: Topology,
    plan: Plan,
    observed: Mapping[str, ObservedCluster],
    targets: Sequence[str],
    options: PlanOptions,
    topics: Sequence[str],
) -> None:
    """Check the owner of what a plan ends, and how much it deletes.

    Raises:
        Refused: AB420, it deletes more than is allowed; AB447, it would end what another owner put in force.
    """
    from reconciler.plan.guardrails.owners import check_owner
    from reconciler.plan.removal.deletion_limit import check_deletions

    check_owner(topology, observed, targets, options.take_over)
    check_deletions(plan, observed, options.allow_delete, topics)


def observe_and_plan(
    topology: Topology,
    targets: Sequence[str],
    scope: PlanScope = EVERYTHING,
    also: Collection[str] = (),
    reporter: Reporter = SILENT,
) -> tuple[Plan, dict[str, ObservedCluster]]:
    """Observe the clusters; return what an apply would do, and the observation that the plan rests on, by alias.

    Args:
        topology: what is declared.
        targets: aliases of the targets that are planned for.
        scope: what the plan covers; by default everything.
        also: aliases of clusters that are observed as targets are, and not planned for.
        reporter: receives progress.

    Raises:
        InvalidArgument: `target`, the scope names an unknown topic.
        Unreachable: AB310, some clusters do not answer.
        EnvironmentFault: AB304, AB311, AB312, AB313, a cluster cannot be read; AB360 to AB362, it does not allow what
            replication needs, or what a flow demands.
        Refused: AB401 to AB409, AB422, AB452 and AB453, a guardrail stands in the way; AB423, another cluster answers;
            AB450 and AB451, a target would refuse what is planned; AB760 to AB765, so would this machine what it is to
            run.
    """
    from reconciler.provision.rehearsal import Overtaken

    for _ in range(_MOST_LOOKS - 1):
        try:
            return _looked(topology, targets, scope, also, reporter)
        except Overtaken:
            # By a run, which makes copies as originals come: what it has made is observed by now.
            reporter.note("topics were made meanwhile: looking again")
    return _looked(topology, targets, scope, also, reporter)


def _looked(
    topology: Topology, targets: Sequence[str], scope: PlanScope, also: Collection[str], reporter: Reporter
) -> tuple[Plan, dict[str, ObservedCluster]]:
    """Observe and plan once; arguments and errors as of `observe_and_plan`.

    Raises:
        Overtaken: AB451, topics were made between the observation and the questions to the targets.
    """
    from reconciler.observe.topology import observe
    from reconciler.plan.ahead import build_plan_ahead
    from reconciler.plan.part import known_names, narrowed, only
    from reconciler.plan.removal.prune import cleared, pruned
    from reconciler.provision.rehearsal import rehearsed

    with reporter.working("looking at the clusters"):
        observed = observe(topology, {*targets, *also}, resting_may_be_away=True)
    part = topology
    if scope.topics:
        check_names(scope.topics, known_names(topology, observed, targets))
        part = narrowed(topology, observed, targets, scope.topics)
    there = answering(targets, observed)
    plan = build_plan_ahead(part, observed, there)
    plan = replace(plan, notices=(*plan.notices, *scope.notices))
    if "topic" in scope.deletes:
        plan = pruned(plan, topology, observed)
    if "acl" in scope.deletes:
        plan = cleared(plan, topology, observed)
    if scope.topics:
        plan = only(plan, scope.topics, topology, observed)
    else:
        plan = replace(plan, deployments=Deployments(topology).plans(targets))
    return rehearsed(plan, topology), observed


def answering(targets: Sequence[str], observed: Mapping[str, ObservedCluster]) -> tuple[str, ...]:
    """Return the targets that answer: the others are sources of flows that are failed over, and need not."""
    return tuple(alias for alias in targets if not observed[alias].is_away)


def report_away(observed: Mapping[str, ObservedCluster], reporter: Reporter) -> None:
    """Report the clusters that are left out, because they do not answer and need not."""
    for alias in sorted(alias for alias, seen in observed.items() if seen.is_away):
        text = f"{alias} does not answer, and need not while all flows from it are failed over: it is left out"
        reporter.note(text, "caution")
