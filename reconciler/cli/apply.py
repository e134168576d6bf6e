"""`anabranch apply`: show the plan, ask, carry it out, put the declaration in force, and say what became of it all."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.common import FORMAT, TERMINAL, Files, as_written, load_topology, print_problems
from reconciler.cli.deleting import AllowDelete, allowances, confirm, go_on
from reconciler.cli.owning import TakeOver
from reconciler.cli.planning import PlanFormat, print_outcome, show_plan, tell_next
from reconciler.cli.provisioner import ChosenProvisioner, PulumiDir, provisioning
from reconciler.cli.targeting import Clusters, Topics
from reconciler.model.base.errors import AnabranchError, DeclaredInputError, Problem, Refused
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.removals import DeletionKind
from reconciler.model.planning.steps import Notice, Plan
from reconciler.operate.carrying import carry_out, refuse_when_moved_on, refuse_while_copied, state_apart
from reconciler.operate.locking import Locks
from reconciler.operate.moving import move_journals
from reconciler.operate.planning import PlanScope, observe_and_plan
from reconciler.operate.rollout import WaveGate
from reconciler.operate.targets import planned_clusters

if TYPE_CHECKING:
    from reconciler.report.plan.file import SavedPlan

_PLAN_AGAIN = "make the plan again with `anabranch plan --out`, and review it"


def apply(
    files: Files,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    output: Annotated[
        PlanFormat, typer.Option(*FORMAT, callback=as_written, help="How plan and outcome are written.")
    ] = "text",
    clusters: Clusters = None,
    target: Topics = None,
    allow_delete: AllowDelete = None,
    take_over: TakeOver = False,
    saved: Annotated[
        Path | None,
        typer.Option(
            "--plan", metavar="FILE", help="Carry out the plan that `plan --out` wrote, unless something has moved."
        ),
    ] = None,
    wait: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", min=0.0, help="How long to wait for another apply to end.")
    ] = 60.0,
    max_lag: Annotated[
        float,
        typer.Option("--max-lag", metavar="SECONDS", min=0.0, help="How far behind flows may be before the next wave."),
    ] = 60.0,
    patience: Annotated[
        float, typer.Option("--patience", metavar="SECONDS", min=0.0, help="How long to wait for that.")
    ] = 600.0,
    provisioner: ChosenProvisioner = "auto",
    pulumi_dir: PulumiDir = None,
) -> None:
    """Make the target clusters what the declaration says, and put it in force there: show the plan, ask, do it."""
    topology = load_topology(files)
    by = provisioning(provisioner, pulumi_dir, files)
    allowed = allowances(allow_delete) or {}
    reviewed = _read(topology, saved, clusters, target) if saved is not None else None
    targets, notices = (
        (reviewed.targets, ()) if reviewed is not None else planned_clusters(topology, clusters, TERMINAL)
    )
    if reviewed is None and not yes and not sys.stdin.isatty():
        message = "it is needed where there is no terminal to ask on; `anabranch plan` shows what would be done"
        raise typer.BadParameter(message, param_hint="--yes")
    planning = _Planning(topology, targets, _scope(target, allowed, reviewed, notices), allowed, take_over)
    by.check_part(planning.scope.topics)
    with Locks(topology, targets, wait, TERMINAL) as locks:
        plan = planning.shown(output, yes) if reviewed is None else planning.checked(reviewed)
        if locks.take_rest(plan):
            # Where the lock is kept was made on the way; everything else must be as it was shown.
            refuse_when_moved_on(state_apart(plan), state_apart(planning.made()))
        is_part = bool(planning.scope.topics)
        # What is not put in force no running task has.
        gate = None if is_part else WaveGate(max_lag, patience)
        outcome = carry_out(topology, plan, locks, "applying", gate, by.make)
        if outcome.is_complete:
            _settle(topology, plan, targets, locks)
    outcome.is_part = is_part
    print_outcome(plan, outcome, output)
    if output == "text" and outcome.is_complete and topology.flows_into(outcome.in_force):
        tell_next("replicate", files)
    if not outcome.is_complete:
        raise typer.Exit(locks.interrupts.exit_code)


def _settle(topology: Topology, plan: Plan, targets: Sequence[str], locks: Locks) -> None:
    """Bring records of former releases up to date: what is in force, where only its digest is kept, and journals."""
    from reconciler.provision.work import record_in_force

    try:
        record_in_force(topology, plan, locks.held, locks.check)
    except AnabranchError as error:
        print_problems(error.problems, severity="warning")
    move_journals(topology, [alias for alias in targets if alias in locks.held], locks.check, TERMINAL)


def _scope(
    target: Sequence[str] | None,
    allowed: Collection[DeletionKind],
    reviewed: SavedPlan | None,
    notices: tuple[Notice, ...],
) -> PlanScope:
    if reviewed is not None:
        return PlanScope(reviewed.topics, reviewed.deletes | frozenset(allowed))
    return PlanScope(tuple(target or ()), frozenset(allowed), notices)


@dataclass(frozen=True)
class _Planning:
    """How plans are made, again and again, until one is carried out.

    Attributes:
        topology: what is declared.
        targets: aliases of the targets.
        scope: of what the plan is.
        allowed: how many things of each kind may be deleted.
        take_over: whether another owner's declaration may end by it.
    """

    topology: Topology
    targets: Sequence[str]
    scope: PlanScope
    allowed: Mapping[DeletionKind, int]
    take_over: bool

    def made(self) -> Plan:
        """Return the plan as it is now.

        Raises:
            Refused: AB420, it deletes more than is allowed; AB421, something copies into what it deletes; AB447, what
                it ends is another owner's.
        """
        plan, observed = observe_and_plan(self.topology, self.targets, self.scope, reporter=TERMINAL)
        self._guard(plan, observed)
        return plan

    def shown(self, output: PlanFormat, yes: bool) -> Plan:
        """Make a plan, show it and ask.

        Raises:
            Refused: AB407, the clusters have changed since the plan was shown; AB420, AB421 or AB447.
        """
        plan, observed = observe_and_plan(self.topology, self.targets, self.scope, reporter=TERMINAL)
        show_plan(plan, output, asks=not yes)
        self._guard(plan, observed)
        if not plan.changes_nothing and not yes:
            if deleted := plan.deletions("topic"):
                confirm(self.topology, deleted)
            else:
                go_on()
            refuse_when_moved_on(plan, self.made())
        return plan

    def checked(self, saved: SavedPlan) -> Plan:
        """Return the plan of a file, made anew.

        Raises:
            Refused: AB407, it is not what would be done now; AB420, AB421 or AB447.
        """
        from reconciler.plan.findings.moved import moved
        from reconciler.report.plan.to_json import plan_json

        plan, observed = observe_and_plan(self.topology, self.targets, self.scope, reporter=TERMINAL)
        if differences := moved(saved.plan, plan_json(plan)):
            raise Refused([Problem("AB407", str(saved.path), difference, _PLAN_AGAIN) for difference in differences])
        self._guard(plan, observed)
        return plan

    def _guard(self, plan: Plan, observed: Mapping[str, ObservedCluster]) -> None:
        from reconciler.plan.guardrails.owners import check_owner
        from reconciler.plan.removal.deletion_limit import check_deletions

        check_owner(self.topology, observed, self.targets, self.take_over)
        check_deletions(plan, observed, self.allowed, self.scope.topics)
        declared = {cluster.alias: cluster.declared.digest for cluster in plan.clusters if cluster.declared is not None}
        refuse_while_copied(self.topology, plan, declared)


def _read(topology: Topology, path: Path, clusters: Sequence[str] | None, topics: Sequence[str] | None) -> SavedPlan:
    """Read a plan file; whoever hands it over has reviewed it.

    Raises:
        DeclaredInputError: AB183, it is no plan file.
        Refused: AB412, the plan was made from other files than these.
    """
    from reconciler.plan.findings.moved import moved
    from reconciler.report.plan.file import read_plan

    if clusters or topics:
        message = "a plan file says of what it is"
        raise typer.BadParameter(message, param_hint="--clusters" if clusters else "--target")
    saved = read_plan(path)
    if (saved.topology, saved.digest) != (topology.name, topology.digest):
        found = f"was made from {saved.topology}, digest {saved.digest}; these files are {topology.name}, digest "
        raise Refused(Problem("AB412", str(path), f"{found}{topology.digest}", _PLAN_AGAIN))
    try:
        # Whatever was written compares with itself; a file that somebody has changed by hand may not.
        is_whole = not moved(saved.plan, saved.plan)
    except (LookupError, TypeError, AttributeError, ValueError):
        is_whole = False
    if not is_whole or not topology.clusters.keys() >= set(saved.targets):
        raise DeclaredInputError(Problem("AB183", str(path), "is no plan as it was written", _PLAN_AGAIN))
    return saved
