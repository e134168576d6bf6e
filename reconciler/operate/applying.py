"""Applies a declaration: locks, plan, guardrails, agreement, waves, and the record of what is in force."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.model.base.errors import AnabranchError, DeclaredInputError, EnvironmentFault, Problem, Refused
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.outcome import Outcome
from reconciler.model.planning.steps import Plan
from reconciler.operate.carrying import (
    MakeProvisioner,
    carry_out,
    direct,
    refuse_when_moved_on,
    refuse_while_copied,
    state_apart,
)
from reconciler.operate.locking import Locks
from reconciler.operate.moving import move_journals
from reconciler.operate.planning import PlanOptions, PlanScope, check_guardrails, observe_and_plan
from reconciler.operate.reporter import SILENT, Reporter
from reconciler.operate.rollout import WaveGate
from reconciler.operate.targets import InvalidArgument, planned_clusters

if TYPE_CHECKING:
    from reconciler.report.plan.file import SavedPlan

_PLAN_AGAIN = "make the plan again with `anabranch plan --out`, and review it"


@dataclass(frozen=True)
class ApplyOptions(PlanOptions):
    """How a declaration is applied.

    Attributes:
        wait: seconds to wait for the lock of each target, which another apply may hold.
        max_lag: seconds that a partition may be behind before the next wave begins.
        patience: seconds to wait for that.
        saved: a file of `write_plan`: that plan is carried out, if it is still what would be done.
    """

    wait: float = 60.0
    max_lag: float = 60.0
    patience: float = 600.0
    saved: Path | None = None


class Approval:
    """Receives a plan before it is carried out. This class agrees to every plan; a raised exception declines one.

    Neither method is called for a saved plan. Nothing is changed before both have returned.
    """

    def show(self, plan: Plan) -> None:
        """Receive the plan, before guardrails are checked."""

    def agree(self, plan: Plan) -> bool:
        """Agree to a plan that changes something, or raise an exception.

        Returns:
            Whether it was reviewed, which takes time: it is then made again, and AB407 raised where it has changed.
        """
        del plan
        return False


EVERY_PLAN = Approval()


@dataclass(frozen=True)
class Applied:
    """What became of an apply.

    Attributes:
        plan: what was carried out.
        outcome: what became of every step.
        exit_code: what a command ends with where not everything was done: 1, or 128 plus the number of a signal.
    """

    plan: Plan
    outcome: Outcome
    exit_code: int = 1


class Applying:
    """One apply, from its arguments on; `run` does it.

    Args:
        topology: what is declared.
        options: what is applied, and how.
        reporter: receives progress and notices.

    Attributes:
        targets: aliases of the clusters that it may change.
        scope: what its plans cover.

    Raises:
        InvalidArgument: `clusters` or `target`, a name is unknown, or stands beside a saved plan.
        DeclaredInputError: AB183, the file holds no plan.
        Refused: AB412, the saved plan was made from other files.
    """

    def __init__(self, topology: Topology, options: ApplyOptions, reporter: Reporter = SILENT) -> None:
        self._topology = topology
        self._options = options
        self._reporter = reporter
        self._saved = None if options.saved is None else _reviewed(topology, options)
        allowed = frozenset(options.allow_delete)
        if self._saved is not None:
            self.targets = self._saved.targets
            self.scope = PlanScope(self._saved.topics, self._saved.deletes | allowed)
        else:
            self.targets, notices = planned_clusters(topology, options.clusters, reporter)
            self.scope = PlanScope(tuple(options.target), allowed, notices)

    def run(self, approval: Approval = EVERY_PLAN, make: MakeProvisioner = direct) -> Applied:
        """Plan, check, have it agreed on, carry it out and record it.

        Args:
            approval: receives the plan.
            make: makes the provisioner; by default one without Pulumi.

        Returns:
            What became of every step. Failures of single steps are in there, and are not raised.

        Raises:
            Locked: AB501, another apply is at work and did not end in time.
            Refused: AB407, the clusters have changed since the plan was shown or saved; AB420, it deletes more than is
                allowed; AB421, a run copies into what it deletes; AB447, it would end what another owner put in force.
            AnabranchError: as `observe_and_plan` raises it; nothing was changed.
        """
        options = self._options
        with Locks(self._topology, self.targets, options.wait, self._reporter) as locks:
            plan = self._agreed(approval) if self._saved is None else self._unmoved(self._saved)
            if locks.take_rest(plan):
                # The topic that keeps the lock was made on the way; everything else must be as it was shown.
                refuse_when_moved_on(state_apart(plan), state_apart(self._made()))
            is_part = bool(self.scope.topics)
            # No running task has a declaration that is not put in force.
            gate = None if is_part else WaveGate(options.max_lag, options.patience)
            outcome = carry_out(self._topology, plan, locks, "applying", gate, make)
            if outcome.is_complete:
                self._settle(plan, locks, make)
        outcome.is_part = is_part
        return Applied(plan, outcome, locks.interrupts.exit_code)

    def _observed(self) -> tuple[Plan, Mapping[str, ObservedCluster]]:
        return observe_and_plan(self._topology, self.targets, self.scope, reporter=self._reporter)

    def _made(self) -> Plan:
        plan, observed = self._observed()
        self._check(plan, observed)
        return plan

    def _agreed(self, approval: Approval) -> Plan:
        plan, observed = self._observed()
        approval.show(plan)
        self._check(plan, observed)
        if not plan.changes_nothing and approval.agree(plan):
            refuse_when_moved_on(plan, self._made())
        return plan

    def _unmoved(self, saved: SavedPlan) -> Plan:
        """Return the plan of a file, made anew."""
        from reconciler.plan.findings.moved import moved
        from reconciler.report.plan.to_json import plan_json

        plan, observed = self._observed()
        if differences := moved(saved.plan, plan_json(plan)):
            raise Refused([Problem("AB407", str(saved.path), difference, _PLAN_AGAIN) for difference in differences])
        self._check(plan, observed)
        return plan

    def _check(self, plan: Plan, observed: Mapping[str, ObservedCluster]) -> None:
        check_guardrails(self._topology, plan, observed, self.targets, self._options, self.scope.topics)
        declared = {cluster.alias: cluster.declared.digest for cluster in plan.clusters if cluster.declared is not None}
        refuse_while_copied(self._topology, plan, declared)

    def _settle(self, plan: Plan, locks: Locks, make: MakeProvisioner) -> None:
        """Bring what a provisioner keeps up to date, and what former releases recorded: digests, shared journals."""
        from reconciler.provision.work import record_in_force

        try:
            record_in_force(self._topology, plan, locks.held, locks.check)
            if not self.scope.topics:
                for note in make(self._topology, lambda _: None, locks.check).settle(plan):
                    self._reporter.note(note)
        except AnabranchError as error:
            self._reporter.warn(error.problems)
        held = [alias for alias in self.targets if alias in locks.held]
        move_journals(self._topology, held, locks.check, self._reporter)


def put_in_force(
    topology: Topology, options: ApplyOptions, reporter: Reporter = SILENT, approval: Approval = EVERY_PLAN
) -> Applied:
    """Apply without a reader of the plan; it comes into force although single topics cannot be made.

    Raises:
        EnvironmentFault: something else does, and it is not in force, or not everywhere.
        AnabranchError: as `Applying` raises it.
    """
    applied = Applying(topology, options, reporter).run(approval)
    outcome = applied.outcome
    if outcome.holds_back(applied.plan):
        why = [] if outcome.stopped is None else [outcome.stopped]
        raise EnvironmentFault([*(one.problem for one in outcome.failed), *outcome.not_in_force, *why])
    return applied


def _reviewed(topology: Topology, options: ApplyOptions) -> SavedPlan:
    if options.clusters or options.target:
        message = "a plan file names its clusters and topics itself"
        raise InvalidArgument(message, "clusters" if options.clusters else "target")
    assert options.saved is not None
    return read_reviewed(topology, options.saved)


def read_reviewed(topology: Topology, path: Path) -> SavedPlan:
    """Read a plan file of this declaration.

    Raises:
        DeclaredInputError: AB183, it is no plan file.
        Refused: AB412, the plan was made from other files than these.
    """
    from reconciler.plan.findings.moved import moved
    from reconciler.report.plan.file import read_plan

    saved = read_plan(path)
    if (saved.topology, saved.digest) != (topology.name, topology.digest):
        found = f"was made from {saved.topology}, digest {saved.digest}; these files are {topology.name}, digest "
        raise Refused(Problem("AB412", str(path), f"{found}{topology.digest}", _PLAN_AGAIN))
    try:
        # A written plan can be compared with itself; a file that was edited by hand may not.
        is_whole = not moved(saved.plan, saved.plan)
    except (LookupError, TypeError, AttributeError, ValueError):
        is_whole = False
    if not is_whole or not topology.clusters.keys() >= set(saved.targets):
        raise DeclaredInputError(Problem("AB183", str(path), "is no plan as it was written", _PLAN_AGAIN))
    return saved
