"""What `apply`, `destroy` and `adopt` share once there is a plan: the last checks, and carrying it out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from reconciler.model.base.errors import AnabranchError, Problem, Refused
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.outcome import Outcome
from reconciler.model.planning.removals import DeleteTopic
from reconciler.model.planning.steps import ClusterPlan, CreateInternalTopic, Plan, Step
from reconciler.operate.deployments.carrying import DeploymentControls, DeploymentWork
from reconciler.operate.deployments.observed import Deployments
from reconciler.operate.locking import Locks
from reconciler.operate.rollout import WaveGate, in_waves

if TYPE_CHECKING:
    from reconciler.provision.work import Provisioner

MakeProvisioner = Callable[[Topology, Callable[[Step], None], Callable[[str], None]], "Provisioner"]
"""Makes a provisioner of the topology, of what is called after each step, and of what is called with an alias before
each change there; the last one raises an error where nothing may be changed any more."""
_MOVED_ON = "AB407"


def state_apart(plan: Plan) -> Plan:
    """Return a plan without the topics of our own state."""

    def rest(cluster: ClusterPlan) -> ClusterPlan:
        return replace(cluster, steps=tuple(s for s in cluster.steps if not isinstance(s, CreateInternalTopic)))

    return replace(plan, clusters=tuple(map(rest, plan.clusters)))


def refuse_when_moved_on(shown: Plan, now: Plan) -> None:
    """Refuse to carry out anything that was not shown; warnings and notices may change.

    Raises:
        Refused: AB407, the clusters have changed since the plan was shown; each difference is a problem.
    """
    from reconciler.plan.findings.moved import moved
    from reconciler.report.plan.to_json import plan_json

    if _without_notices(shown) == _without_notices(now):
        return
    message, remedy = "the clusters changed while the plan was read", "run it again and read the new plan"
    differences = moved(plan_json(shown), plan_json(now))
    messages = [f"{message}: {one}" for one in differences] or [message]
    raise Refused([Problem(_MOVED_ON, "", one, remedy) for one in messages])


def has_moved_on(error: AnabranchError) -> bool:
    """Return whether an apply ended because other processes changed the clusters meanwhile, and for nothing else.

    Where no plan is reviewed it can be made again at once: processes that begin together plan the same changes.
    """
    return all(problem.code == _MOVED_ON for problem in error.problems)


def _without_notices(plan: Plan) -> Plan:
    """Return a plan without warnings and notices."""
    clusters = tuple(replace(cluster, left_alone=(), warnings=()) for cluster in plan.clusters)
    return replace(plan, clusters=clusters, notices=())


def refuse_while_copied(topology: Topology, plan: Plan, declared: Mapping[str, str]) -> None:
    """Check that no run copies into topics that are to be deleted.

    Args:
        topology: what is declared.
        plan: with its deletions.
        declared: by alias, the digest of a declaration without these topics; its runs do not count.

    Raises:
        Refused: AB421, live runs copy into some.
        Unreachable: AB310, a target does not answer.
        EnvironmentFault: AB311, a status topic may not be read.
    """
    from reconciler.state.running import Copiers

    problems: list[Problem] = []
    for cluster in plan.clusters:
        steps = [step for step in cluster.steps if isinstance(step, DeleteTopic)]
        with Copiers(topology.clusters[cluster.alias], topology.name) as copiers:
            problems += copiers.still_copied(steps, declared.get(cluster.alias)).values()
    if problems:
        raise Refused(problems)


def direct(topology: Topology, progress: Callable[[Step], None], may_change: Callable[[str], None]) -> Provisioner:
    """Return the provisioner that sends Kafka's admin requests itself."""
    from reconciler.provision.direct import DirectProvisioner

    return DirectProvisioner(topology, progress, may_change)


def carry_out(
    topology: Topology,
    plan: Plan,
    locks: Locks,
    doing: str,
    gate: WaveGate | None = None,
    make: MakeProvisioner = direct,
) -> Outcome:
    """Carry out a plan that is agreed on; progress goes to the reporter of the locks.

    Args:
        topology: what is declared.
        plan: what is done.
        locks: of all targets that it changes.
        doing: what is reported meanwhile, such as `applying`.
        gate: what must hold between two waves, besides completion of the first.
        make: makes the provisioner; by default one without Pulumi.
    """
    if plan.changes_nothing:
        return Outcome()
    locks.interrupts.change()
    with locks.reporter.counting(doing, len(plan.steps) + len(plan.deployment_steps)) as advance:
        provisioner = make(topology, lambda _: advance(), locks.check)
        provisioner.prepare(plan)
        work = DeploymentWork(Deployments(topology), _controls(locks, advance, gate))

        def apply(part: Plan) -> Outcome:
            with work.files_ahead(part) as ahead:
                outcome = ahead.outcome = provisioner.apply(part)
            work.carry_out(part, outcome)
            return outcome

        outcome = in_waves(topology, plan, gate, apply, locks.interrupts, locks.reporter)
    if not outcome.is_complete and outcome.stopped is None:
        outcome.stopped = locks.interrupts.problem
    return outcome


def _controls(locks: Locks, advance: Callable[[], None], gate: WaveGate | None) -> DeploymentControls:
    def is_over() -> bool:
        return locks.interrupts.problem is not None

    def may_change(alias: str) -> None:
        # A target without journals has no lock.
        if alias in locks.held:
            locks.check(alias)
        else:
            locks.interrupts.check()

    controls = DeploymentControls(may_change, is_over, lambda _: advance(), locks.reporter)
    return controls if gate is None else replace(controls, patience=gate.patience)
