"""What every provisioner does around its own part: our own topics first, the records of what is ours, and the outcome.

`direct` makes topics between `begin` and `confirm` with the `admin` that is here; the Pulumi provisioner leaves that to
Pulumi. Both write the record of a topic before it is made, and confirm it with the topic's id after, so that the
next run recognises what a killed one has made.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol, TypeVar

from reconciler.model.acls.requirements import covered
from reconciler.model.base.errors import AnabranchError, Problem
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.deployments import DeploymentStep
from reconciler.model.planning.outcome import Failure, Outcome, Skipped
from reconciler.model.planning.steps import (
    AclChange,
    ClusterPlan,
    CreateInternalTopic,
    CreateTopic,
    Plan,
    RecordOwnership,
    RevokeAcl,
    Step,
    TopicChange,
    comes_before_topics,
)
from reconciler.provision.admin import Admin
from reconciler.state.declarations import Declarations
from reconciler.state.journals.home import journals
from reconciler.state.journals.journal import Journal
from reconciler.state.ownership import Ownership

Progress = Callable[[Step], None]
"""Called for each step as soon as it is done, from any thread."""

MayChange = Callable[[str], None]
"""Asked right before each change of a target, by alias; raises an AnabranchError where nothing may be changed."""

Kind = TypeVar("Kind", bound=Step)

_LOG = logging.getLogger(__name__)


class Provisioner(Protocol):
    """Carries plans out."""

    def prepare(self, plan: Plan) -> None:
        """Make sure that a plan can be carried out at all, before the first wave of it is.

        Raises:
            AnabranchError: it cannot; nothing was changed.
        """

    def apply(self, plan: Plan) -> Outcome:
        """Carry out as much of the plan as can be, and return the result of every step.

        Args:
            plan: all of what was prepared, or a wave of it.

        Raises:
            AnabranchError: nothing was changed, or nothing but topics of our own state.
        """

    def settle(self, plan: Plan) -> list[str]:
        """Bring what it keeps beside the clusters in line with them, wherever a plan that was carried out had no step.

        Returns:
            What was changed of it, a sentence each.

        Raises:
            AnabranchError: it cannot be brought in line; the clusters are as they were.
        """


class Work:
    """The steps of one cluster.

    Args:
        topology: the declaration that the plan was made from.
        plan: all of it.
        cluster_plan: this cluster's part.
        progress: called for each finished step.
        may_change: asked right before each change.

    Attributes:
        cluster: the target.
        admin: changes it.
        outcome: what became of the steps so far.
        declared: the digest that is put in force there when everything is done; None where none is.

    Raises:
        EnvironmentFault: AB304 a secret cannot be resolved, AB306 `security` cannot be used on this machine.
    """

    def __init__(
        self, topology: Topology, plan: Plan, cluster_plan: ClusterPlan, progress: Progress, may_change: MayChange
    ) -> None:
        self.cluster = topology.clusters[cluster_plan.alias]
        self.admin = Admin(self.cluster)
        self.outcome = Outcome()
        self.declared = cluster_plan.declared.digest if cluster_plan.declared is not None else None
        self._plan = plan
        self._steps = cluster_plan.steps
        self._progress = progress
        self._may_change = may_change
        self._ownership = Ownership(self.cluster, plan.topology)

    @property
    def rest(self) -> list[Step]:
        """Every step that `begin` does not carry out."""
        return [step for step in self._steps if not isinstance(step, CreateInternalTopic)]

    @property
    def open(self) -> list[Step]:
        """Every step without a result yet."""
        failed, skipped = self.outcome.failed, self.outcome.skipped
        ended = [*self.outcome.done, *(one.step for one in failed), *(one.step for one in skipped)]
        known = {id(step) for step in ended}
        return [step for step in self._steps if id(step) not in known]

    def of(self, kind: type[Kind]) -> list[Kind]:
        """Return the steps of a kind."""
        return [step for step in self._steps if isinstance(step, kind)]

    def before_topics(self) -> list[AclChange]:
        """Return the changes of ACLs before which no topic may be made, as one that is to be revoked covers it."""
        made = {step.name for step in self.of(CreateTopic)}
        acls = [step for step in self.rest if isinstance(step, AclChange) and comes_before_topics(step, made)]
        revoked = {step.binding.pattern for step in acls if isinstance(step, RevokeAcl)}
        return acls if covered(made, revoked) else []

    def begin(self) -> bool:
        """Make the topics of our own state; where that fails nothing else is tried.

        Without the ownership record our topics could not be recognised later.
        """
        for step in self.of(CreateInternalTopic):
            try:
                Journal(self.cluster, journals(self.cluster, self._plan.topology).named(step.name)).ensure()
            except AnabranchError as error:
                self.fail([step], error.problems[0])
            else:
                self.done([step])
        if self.outcome.failed:
            self.skip(self.rest, "the topic that records what is ours could not be made")
            return False
        return True

    def may_go_on(self, steps: Sequence[Step]) -> bool:
        """Ask whether anything may be changed now; where it may not, the steps are not tried."""
        try:
            self._may_change(self.cluster.alias)
        except AnabranchError as error:
            self.skip(steps, error.problems[0].message)
            return False
        return True

    def intend(self, steps: Sequence[CreateTopic]) -> bool:
        """Record that topics which are about to be made are ours; on failure the steps have failed."""
        return self._record(steps, dict.fromkeys((step.name for step in steps), None))

    def confirm(self, steps: Sequence[CreateTopic]) -> None:
        """Wait until topics that were made are there, record their ids, and look whether we may work with them."""
        found, unseen = self.admin.await_topics({step.name: step.topic.partitions for step in steps})
        for step in steps:
            if problem := unseen.get(step.name):
                self.fail([step], problem)
        seen = [step for step in steps if step.name in found]
        if self._record(seen, {step.name: found[step.name] for step in seen}):
            lacking = self.admin.lacking({step.name: step.topic.operations for step in seen})
            for step in seen:
                if problem := lacking.get(step.name):
                    self.fail([step], problem)
            self.done([step for step in seen if step.name not in lacking])

    def settle(self, steps: Sequence[TopicChange], problems: Mapping[int, Problem]) -> None:
        """Record what was last applied to changed topics, where everything about a topic worked.

        Args:
            steps: all changes of the topics.
            problems: by `id` of the step, why it failed.
        """
        broken = {step.name for step in steps if id(step) in problems}
        whole: list[TopicChange] = []
        for step in steps:
            if id(step) in problems:
                self.fail([step], problems[id(step)])
            elif step.name not in broken:
                whole.append(step)
            elif isinstance(step, RecordOwnership):
                self.skip([step], "another change of this topic failed")
            else:
                # A change that half worked keeps its old record, by which the next plan compares.
                self.done([step])
        if self._record(whole, {step.name: step.topic_id for step in whole}):
            self.done(whole)

    def done(self, steps: Sequence[Step]) -> None:
        """Record that steps were carried out."""
        for step in steps:
            _LOG.debug("%s: done: %s of %s", self.cluster.where, type(step).__name__, step.name)
            self.outcome.done.append(step)
            self._progress(step)

    def take_over(self, part: Outcome) -> None:
        """Record what became of steps that another part of this room has carried out."""
        self.outcome.failed += part.failed
        self.done([step for step in part.done if not isinstance(step, DeploymentStep)])

    def fail(self, steps: Sequence[Step], problem: Problem) -> None:
        """Record that steps failed."""
        self.outcome.failed += [Failure(step, problem) for step in steps]

    def skip(self, steps: Sequence[Step], why: str) -> None:
        """Record that steps were skipped."""
        self.outcome.skipped += [Skipped(step, why) for step in steps]

    def _record(self, steps: Sequence[CreateTopic | TopicChange], topic_ids: Mapping[str, str | None]) -> bool:
        """Write the ownership records of the steps' topics; on failure the steps have failed."""
        if not steps:
            return True
        topics = {step.name: step.topic for step in steps}
        plan = self._plan
        records = [topic.owned(plan.topology, plan.digest, topic_ids[name]) for name, topic in topics.items()]
        try:
            self._ownership.write(records)
        except AnabranchError as error:
            self.fail(steps, error.problems[0])
            return False
        return True


def record_in_force(topology: Topology, plan: Plan, targets: Collection[str], may_change: MayChange) -> None:
    """Record what is in force where not all of it is recorded, as former releases left a digest: later plans compare.

    Args:
        topology: the declaration.
        plan: of it.
        targets: aliases of those whose locks are held.
        may_change: asked before each change, by alias.

    Raises:
        AnabranchError: a target does not answer, or does not take it.
    """
    for cluster in plan.clusters:
        one = cluster.declared
        if cluster.alias in targets and one is not None and one.is_in_force and not one.is_recorded:
            may_change(cluster.alias)
            Declarations(topology.clusters[cluster.alias], plan.topology).put_in_force(one.digest, one)


def put_in_force(topology: Topology, plan: Plan, may_change: MayChange, outcome: Outcome) -> None:
    """Record at each target that this declaration is in force: runs with another one end."""
    declared = {cluster.alias: cluster.declared for cluster in plan.clusters}
    for alias, digest in plan.to_put_in_force:
        try:
            may_change(alias)
            Declarations(topology.clusters[alias], plan.topology).put_in_force(digest, declared[alias])
        except AnabranchError as error:
            outcome.not_in_force += error.problems
        else:
            outcome.in_force.append(alias)
