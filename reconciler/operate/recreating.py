"""Recreates copies: pauses what copies into them, deletes them, makes them as declared, and resumes."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from reconciler.model.base.errors import AnabranchError, Problem, Refused, Unreachable
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.outcome import Outcome
from reconciler.model.planning.removals import DeleteTopic
from reconciler.model.planning.steps import Plan
from reconciler.model.recorded.pauses import PauseScope
from reconciler.operate.applying import EVERY_PLAN, Applied, Approval
from reconciler.operate.carrying import carry_out, refuse_when_moved_on
from reconciler.operate.locking import Locks
from reconciler.operate.planning import PlanOptions, PlanScope, observe_and_plan
from reconciler.operate.reporter import SILENT, Reporter
from reconciler.operate.targets import InvalidArgument, check_names, chosen_targets

# Tasks read pauses every second; between two rounds it takes longer, and what is in flight is finished first.
_PATIENCE = 90.0
_TICK = 0.2
_CONTROL_SECONDS = 30.0


@dataclass(frozen=True)
class RecreateOptions(PlanOptions):
    """Which copies are recreated (`target`, at least one), and what may be deleted for that.

    Attributes:
        wait: seconds to wait for the lock of each target, which an apply may hold.
    """

    wait: float = 60.0


@dataclass(frozen=True)
class _Place:
    """An original that a flow copies, with its number of partitions."""

    flow: str
    topic: str
    partitions: int


_Places = Mapping[str, Sequence[_Place]]
"""By alias of the target."""


class Recreating:
    """One recreation of copies; `run` does it.

    Args:
        topology: what is declared.
        options: which copies.
        reporter: receives progress and notices.

    Raises:
        InvalidArgument: `clusters` or `target`, a name is unknown.
        Unreachable: AB310, no target that answers has a copy of a name, and another does not answer.
        EnvironmentFault: AB304, AB311, AB312 or AB313, a cluster cannot be read.
    """

    def __init__(self, topology: Topology, options: RecreateOptions, reporter: Reporter = SILENT) -> None:
        if not options.target:
            message = "name the remote topics that are recreated"
            raise InvalidArgument(message, "target")
        self._options = options
        self._reporter = reporter
        self._names = tuple(dict.fromkeys(options.target))
        self.targets, flows = self._places(topology)
        # Clusters that these copies do not need may be away.
        self._topology = replace(topology, flows=tuple(flow for flow in topology.flows if flow.name in flows))

    def run(self, approval: Approval = EVERY_PLAN) -> Applied:
        """Plan, check, have it agreed on, and do it; what was paused before stays paused.

        Returns:
            What became of every step. Failures of single steps are in there, and are not raised.

        Raises:
            Locked: AB501, an apply is at work and did not end in time.
            Refused: AB407, the clusters have changed since the plan was shown; AB420, it deletes more than is allowed;
                AB436, a flow is failed over; AB447, what is in force is another owner's; AB458, a copy would not be
                made again; AB459, tasks did not stand still in time.
            AnabranchError: as `observe_and_plan` raises it.
        """
        with Locks(self._topology, self.targets, self._options.wait, self._reporter) as locks:
            plan, places = self._planned(approval)
            with self._standing_still(plan, places, locks):
                outcome = carry_out(self._topology, plan, locks, "deleting")
                if outcome.is_complete:
                    plan = self._made_again(plan, outcome, locks)
        return Applied(plan, outcome, locks.interrupts.exit_code)

    def _places(self, topology: Topology) -> tuple[tuple[str, ...], Collection[str]]:
        """Return the targets that have the copies, and the names of the flows between their clusters."""
        from reconciler.observe.topology import observe_owned
        from reconciler.plan.part import ours

        chosen = chosen_targets(topology, self._options.clusters)
        with self._reporter.working("looking for the copies"):
            observed, unseen = observe_owned(topology, chosen)
        here = {alias: ours(topology, target) for alias, target in observed.items()}
        known = frozenset[str]().union(*here.values())
        if unseen and not known.issuperset(self._names):
            raise Unreachable(unseen)
        check_names(self._names, known)
        targets = tuple(alias for alias in chosen if alias in here and not here[alias].isdisjoint(self._names))
        # A copy of several originals has one of them on record.
        flows = {
            flow.name
            for flow in topology.flows_into(targets)
            if any(flow.policy.may_name(flow.source, name) for name in self._names)
        }
        return targets, flows

    def _look(self) -> tuple[Plan, Mapping[str, ObservedCluster], _Places]:
        from reconciler.observe.topology import observe
        from reconciler.plan.removal.recreate import recreated, recreation_plan

        with self._reporter.working("looking at the clusters"):
            observed = observe(self._topology, self.targets)
        copies = recreated(self._topology, observed, self.targets, self._names)
        places: dict[str, list[_Place]] = {alias: [] for alias in self.targets}
        for (alias, _), originals in copies.items():
            places[alias] += [_Place(one.flow.name, one.original.name, one.original.partitions) for one in originals]
        return recreation_plan(self._topology, observed, copies), observed, places

    def _planned(self, approval: Approval) -> tuple[Plan, _Places]:
        plan, observed, places = self._look()
        approval.show(plan)
        self._check(plan, observed)
        if approval.agree(plan):
            now, observed, places = self._look()
            refuse_when_moved_on(plan, now)
            self._check(now, observed)
        return plan, places

    def _check(self, plan: Plan, observed: Mapping[str, ObservedCluster]) -> None:
        from reconciler.plan.guardrails.owners import check_owner
        from reconciler.plan.removal.deletion_limit import check_deletions

        check_owner(self._topology, observed, self.targets, self._options.take_over)
        check_deletions(plan, observed, self._options.allow_delete, self._names, is_destroy=True)

    def _made_again(self, deleted: Plan, outcome: Outcome, locks: Locks) -> Plan:
        """Make the topics as declared; add what became of that to `outcome`, and return the steps of both plans."""
        scope = PlanScope(self._names)
        plan, _ = observe_and_plan(self._topology, self.targets, scope, reporter=self._reporter)
        made = carry_out(self._topology, plan, locks, "making them again")
        outcome.add(made)
        outcome.stopped = made.stopped
        before = {cluster.alias: cluster.steps for cluster in deleted.clusters}
        clusters = tuple(replace(one, steps=(*before.get(one.alias, ()), *one.steps)) for one in plan.clusters)
        return replace(plan, clusters=clusters)

    # --- pauses ------------------------------------------------------------------------------------------------------

    @contextmanager
    def _standing_still(self, plan: Plan, places: _Places, locks: Locks) -> Iterator[None]:
        """Pause what copies into the topics, wait until nothing is in flight, and resume it in the end, whatever came.

        Raises:
            Refused: AB459, tasks went on; nothing was deleted.
        """
        from reconciler.state import control
        from reconciler.state.journals.user import user

        paused: dict[str, Sequence[PauseScope]] = {}
        try:
            for cluster in plan.clusters:
                if cluster.steps:
                    alias = cluster.alias
                    paused[alias] = self._running(alias, places[alias])
                    by = f"{user()} (recreate, until it is done)"
                    control.pause(self._topology.clusters[alias], self._topology.name, paused[alias], by)
            for cluster in plan.clusters:
                steps = [step for step in cluster.steps if isinstance(step, DeleteTopic)]
                self._await_stillness(cluster.alias, steps, locks)
            yield
        finally:
            for alias, scopes in paused.items():
                self._resume(alias, scopes)

    def _running(self, alias: str, places: Sequence[_Place]) -> list[PauseScope]:
        """Return what is not paused of some topics: whole ones, or partitions where these have rules of their own."""
        from reconciler.state.control import PauseRules

        rules = PauseRules(self._topology.clusters[alias], self._topology.name, _CONTROL_SECONDS)
        try:
            current = rules.current()
        finally:
            rules.close()
        chosen: list[PauseScope] = []
        for place in places:
            whole = PauseScope(place.flow, place.topic)
            running = [n for n in range(place.partitions) if not current.hold(place.flow, place.topic, n)]
            if len(running) == place.partitions and not any(whole in rule.around for rule in current.rules):
                chosen.append(whole)
            else:
                chosen += [PauseScope(place.flow, place.topic, n) for n in running]
        return chosen

    def _resume(self, alias: str, scopes: Sequence[PauseScope]) -> None:
        from reconciler.state import control

        try:
            control.resume(self._topology.clusters[alias], self._topology.name, scopes)
        except AnabranchError as error:
            self._reporter.warn(error.problems)
            self._reporter.note("resume with `anabranch resume`: " + ", ".join(map(str, scopes)), "caution")

    def _await_stillness(self, alias: str, steps: Sequence[DeleteTopic], locks: Locks) -> None:
        from reconciler.state.running import Copiers

        cluster = self._topology.clusters[alias]
        deadline = time.monotonic() + _PATIENCE
        with (
            self._reporter.working("waiting until tasks stand still"),
            Copiers(cluster, self._topology.name) as copiers,
        ):
            while moving := copiers.still_copied(steps, None):
                if time.monotonic() > deadline:
                    found = f"its tasks did not stand still within {_PATIENCE:g} s of a pause; nothing was deleted"
                    remedy = "see `anabranch status`; end that `replicate`, or do it again"
                    raise Refused([Problem("AB459", one.where, found, remedy) for one in moving.values()])
                locks.interrupts.check()
                time.sleep(_TICK)
