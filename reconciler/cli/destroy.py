"""`anabranch destroy`: delete the copies that this topology has made, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated

import typer

from reconciler.cli.common import TERMINAL, Files, check_can_ask, confirm, load_topology, say
from reconciler.cli.planning import print_outcome, show_plan
from reconciler.cli.shared_options import (
    AllowDelete,
    Clusters,
    DeletesYes,
    LockWait,
    PlanOutput,
    TakeOver,
    Topics,
    allowances,
)
from reconciler.model.base.errors import Unreachable
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.outcome import Outcome, Skipped
from reconciler.model.planning.removals import DeletionKind
from reconciler.model.planning.steps import Plan
from reconciler.operate.carrying import carry_out, refuse_when_moved_on, refuse_while_copied
from reconciler.operate.deployments.observed import Deployments
from reconciler.operate.locking import Locks
from reconciler.operate.planning import answering, report_away
from reconciler.operate.targets import check_names, chosen_targets


def destroy(
    files: Files,
    *,
    allow_delete: AllowDelete = None,
    take_over: TakeOver = False,
    yes: DeletesYes = False,
    output: PlanOutput = "text",
    clusters: Clusters = None,
    target: Topics = None,
    state: Annotated[
        bool, typer.Option("--state", help="Delete the topology's state topics too, once nothing else is left.")
    ] = False,
    wait: LockWait = 60.0,
) -> None:
    """Delete the copies that this topology has made at its targets, with all records; sources are not read."""
    topology = load_topology(files)
    targets, allowed, only = _targets(topology, clusters), allowances(allow_delete), tuple(target or ())
    if state and only:
        message = "the state is needed while copies are left, and --target leaves some"
        raise typer.BadParameter(message, param_hint="--state")
    # Of the clusters none but the targets are needed, not even to be there.
    between = tuple(flow for flow in topology.flows if flow.source in targets)
    with Locks(replace(topology, flows=between), targets, wait, TERMINAL) as locks:
        plan, observed = _planned(topology, targets, only)
        report_away(observed, TERMINAL)
        show_plan(plan, output, asks=not yes)
        _guard(topology, plan, observed, allowed, only, take_over)
        if not plan.changes_nothing and not yes:
            check_can_ask(yes)
            confirm(topology, plan.deletions("topic"))
        is_new = locks.take_rest(plan)
        if is_new or not (plan.changes_nothing or yes):
            now, observed = _planned(topology, targets, only)
            refuse_when_moved_on(plan, now)
            _guard(topology, now, observed, allowed, only, take_over)
        outcome = _destroyed(topology, plan, locks)
        outcome.is_part = bool(only)
    print_outcome(plan, outcome, output)
    if not outcome.is_complete:
        raise typer.Exit(locks.interrupts.exit_code)
    if state:
        _remove_state(topology, [cluster.alias for cluster in plan.clusters])


def _targets(topology: Topology, clusters: Sequence[str] | None) -> tuple[str, ...]:
    """Return the named clusters, or the targets of all flows, enabled or not; all clusters where there are no flows."""
    if clusters:
        return chosen_targets(topology, clusters)
    targets = {flow.target for flow in topology.flows}
    granted = {alias for alias, cluster in topology.clusters.items() if cluster.replicator is not None}
    return tuple(alias for alias in topology.aliases if alias in targets | granted) or topology.aliases


def _planned(
    topology: Topology, targets: Sequence[str], only: Sequence[str]
) -> tuple[Plan, Mapping[str, ObservedCluster]]:
    from reconciler.observe.topology import observe_owned
    from reconciler.plan.part import ours
    from reconciler.plan.removal.destroy import destroy_plan

    with TERMINAL.working("looking at the clusters"):
        observed, unseen = observe_owned(topology, targets, resting_may_be_away=True)
    if unseen:
        raise Unreachable(unseen)
    check_names(only, {name for target in observed.values() for name in (*ours(topology, target), *target.names)})
    there = answering(targets, observed)
    plan = destroy_plan(topology, observed, there, only)
    return plan if only else replace(plan, deployments=Deployments(topology).removal(there)), observed


def _guard(
    topology: Topology,
    plan: Plan,
    observed: Mapping[str, ObservedCluster],
    allowed: Mapping[DeletionKind, int] | None,
    named: Sequence[str],
    take_over: bool,
) -> None:
    from reconciler.plan.guardrails.owners import check_owner
    from reconciler.plan.removal.deletion_limit import check_deletions

    check_owner(topology, observed, [cluster.alias for cluster in plan.clusters], take_over)
    check_deletions(plan, observed, allowed or {}, named, is_destroy=True)
    if not plan.deployment_steps:
        refuse_while_copied(topology, plan, {})


def _destroyed(topology: Topology, plan: Plan, locks: Locks) -> Outcome:
    """Stop what is deployed, record that nothing is in force any more, then delete."""
    from reconciler.provision.removal import end_what_is_in_force

    if plan.changes_nothing:
        return Outcome()
    if plan.deployment_steps:
        stopped = carry_out(topology, replace(plan, clusters=()), locks, "stopping")
        if not stopped.is_complete:
            stopped.skipped += [Skipped(step, "processes still run") for step in plan.steps]
            return stopped
        refuse_while_copied(topology, plan, {})
        outcome = _destroyed(topology, replace(plan, deployments=()), locks)
        outcome.done[:0] = stopped.done
        return outcome
    locks.interrupts.change()
    closed = end_what_is_in_force(topology, plan, locks.check)
    rest = replace(plan, clusters=tuple(replace(cluster, declared=None) for cluster in plan.clusters))
    outcome = carry_out(topology, rest, locks, "destroying")
    outcome.closed = closed
    return outcome


def _remove_state(topology: Topology, targets: Sequence[str]) -> None:
    """Delete the state topics at some targets, after the release of the lock, which lies in one of them."""
    from reconciler.provision.state_removal import StateRemover

    for alias in targets:
        remover = StateRemover(topology.clusters[alias], topology.name)
        try:
            names = remover.remove_state()
        finally:
            remover.close()
        say(f"{alias}: deleted {', '.join(names)}" if names else f"{alias}: no state topics are there")
