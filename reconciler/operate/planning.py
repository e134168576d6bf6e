"""Observes the clusters and plans what an apply would do."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.model.declared.topology import Topology
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.removals import DeletionKind
from reconciler.model.planning.steps import Notice, Plan
from reconciler.operate.reporter import SILENT, Reporter
from reconciler.operate.targets import check_names


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
            AB450 and AB451, a target would refuse what is planned.
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
    plan = only(plan, scope.topics, topology, observed) if scope.topics else plan
    return rehearsed(plan, topology), observed


def answering(targets: Sequence[str], observed: Mapping[str, ObservedCluster]) -> tuple[str, ...]:
    """Return the targets that answer: the others are sources of flows that are failed over, and need not."""
    return tuple(alias for alias in targets if not observed[alias].is_away)


def report_away(observed: Mapping[str, ObservedCluster], reporter: Reporter) -> None:
    """Report the clusters that are left out, because they do not answer and need not."""
    for alias in sorted(alias for alias, seen in observed.items() if seen.is_away):
        text = f"{alias} does not answer, and need not while all flows from it are failed over: it is left out"
        reporter.note(text, "caution")
