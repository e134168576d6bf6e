"""Carry a plan out with Kafka's admin requests: no state file, nothing beside the clusters.

Clusters are worked on side by side; on each, steps of a kind travel in batches. An error stops what depends on it and
nothing else. The declaration is put in force last, and only when everything else was done. Running it again after a
kill at any moment is safe: the ownership record of a topic is written before the topic is made, and confirmed with its
id after.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from reconciler.model.errors import AnabranchError, Problem
from reconciler.model.outcome import Failure, Outcome, Skipped
from reconciler.model.removals import Removal
from reconciler.model.steps import (
    AclChange,
    AddPartitions,
    AlterConfig,
    ClusterPlan,
    CreateInternalTopic,
    CreateTopic,
    Plan,
    RecordOwnership,
    Step,
    TopicChange,
)
from reconciler.model.topology import Topology
from reconciler.provision.admin import Admin
from reconciler.provision.grants import Grants
from reconciler.provision.removal import Remover, portions
from reconciler.state.declarations import Declarations
from reconciler.state.journal import Journal
from reconciler.state.ownership import INTERNAL_TOPICS, Ownership

Progress = Callable[[Step], None]
"""Called for each step as soon as it is done, from any thread."""


class DirectProvisioner:
    """Carries plans out by itself.

    Args:
        topology: the declaration that the plan was made from.
        progress: called for each finished step.
        may_change: asked right before each change of a target, by alias; raises an error where nothing may be changed.
    """

    def __init__(
        self,
        topology: Topology,
        progress: Progress = lambda step: None,
        may_change: Callable[[str], None] = lambda alias: None,
    ) -> None:
        self._topology = topology
        self._progress = progress
        self._may_change = may_change

    def apply(self, plan: Plan) -> Outcome:
        """Carry out as much of the plan as can be, and tell what became of every step.

        Raises:
            EnvironmentFault: AB304, a secret cannot be resolved; nothing was changed.
        """
        busy = [cluster for cluster in plan.clusters if cluster.steps]
        workers = [_ClusterWork(self._topology, plan, cluster, self._progress, self._may_change) for cluster in busy]
        outcome = Outcome()
        with ThreadPoolExecutor(max_workers=max(1, len(workers))) as pool:
            for part in pool.map(_ClusterWork.run, workers):
                outcome.add(part)
        if outcome.is_complete:
            self._put_in_force(plan, outcome)
        return outcome

    def _put_in_force(self, plan: Plan, outcome: Outcome) -> None:
        """Say at each target that this declaration is in force: who replicates another one ends it."""
        for alias, digest in plan.to_put_in_force:
            try:
                self._may_change(alias)
                Declarations(self._topology.clusters[alias], plan.topology).put_in_force(digest)
            except AnabranchError as error:
                outcome.not_in_force += error.problems
            else:
                outcome.in_force.append(alias)


class _ClusterWork:
    """The steps of one cluster."""

    def __init__(
        self,
        topology: Topology,
        plan: Plan,
        cluster_plan: ClusterPlan,
        progress: Progress,
        may_change: Callable[[str], None],
    ) -> None:
        self._cluster = topology.clusters[cluster_plan.alias]
        self._plan = plan
        self._steps = cluster_plan.steps
        self._declared = cluster_plan.declared
        self._progress = progress
        self._may_change = may_change
        self._admin = Admin(self._cluster)
        self._ownership = Ownership(self._cluster)
        self._outcome = Outcome()

    def run(self) -> Outcome:
        """Carry the steps out, kind after kind."""
        self._create_internal([step for step in self._steps if isinstance(step, CreateInternalTopic)])
        rest = [step for step in self._steps if not isinstance(step, CreateInternalTopic)]
        if self._outcome.failed:
            # Without the ownership record nobody would know later what is ours.
            self._skip(rest, "the topic that records what is ours could not be made")
            return self._outcome
        created = [step for step in rest if isinstance(step, CreateTopic)]
        if self._may_go_on(created):
            self._create(created)
        changed = [step for step in rest if isinstance(step, TopicChange)]
        if self._may_go_on(changed):
            self._change(changed)
        followed = [step for step in rest if isinstance(step, AclChange)]
        if followed and self._may_go_on(followed):
            part = Grants(self._cluster, self._plan.topology).change(followed)
            self._outcome.failed += part.failed
            self._done(part.done)
        self._remove([step for step in rest if isinstance(step, Removal)])
        return self._outcome

    def _may_go_on(self, steps: Sequence[Step]) -> bool:
        """Ask whether anything may be changed now; where it may not, the steps are not tried."""
        try:
            self._may_change(self._cluster.alias)
        except AnabranchError as error:
            self._skip(steps, error.problems[0].message)
            return False
        return True

    def _create_internal(self, steps: Sequence[CreateInternalTopic]) -> None:
        for step in steps:
            try:
                Journal(self._cluster, INTERNAL_TOPICS[step.name]).ensure()
            except AnabranchError as error:
                self._fail([step], error.problems[0])
            else:
                self._done([step])

    def _create(self, steps: Sequence[CreateTopic]) -> None:
        """Make remote topics: first say that they will be ours, then make them, then say that they are."""
        if not self._record(steps, dict.fromkeys((step.name for step in steps), None)):
            return
        problems = self._admin.create_topics({step.name: step.topic for step in steps})
        made = [step for step in steps if step.name not in problems]
        found, unseen = self._admin.await_topics({step.name: step.topic.partitions for step in made})
        for step in steps:
            if problem := problems.get(step.name) or unseen.get(step.name):
                self._fail([step], problem)
        seen = [step for step in made if step.name in found]
        if self._record(seen, {step.name: found[step.name] for step in seen}):
            lacking = self._admin.lacking({step.name: step.topic.operations for step in seen})
            for step in seen:
                if problem := lacking.get(step.name):
                    self._fail([step], problem)
            self._done([step for step in seen if step.name not in lacking])

    def _change(self, steps: Sequence[TopicChange]) -> None:
        """Change existing topics, and record what was last applied to those where it worked."""
        grown = [step for step in steps if isinstance(step, AddPartitions)]
        altered = [step for step in steps if isinstance(step, AlterConfig)]
        not_grown = self._admin.add_partitions({step.name: step.topic.partitions for step in grown})
        not_altered = self._admin.alter_configs({step.name: step.changes for step in altered})
        problems = {id(step): not_grown[step.name] for step in grown if step.name in not_grown}
        problems |= {id(step): not_altered[step.name] for step in altered if step.name in not_altered}
        whole: list[TopicChange] = []
        for step in steps:
            if id(step) in problems:
                self._fail([step], problems[id(step)])
            elif step.name not in not_grown.keys() | not_altered.keys():
                whole.append(step)
            elif isinstance(step, RecordOwnership):
                self._skip([step], "another change of this topic failed")
            else:
                # What half worked keeps its old record, which tells the next plan what was really applied last.
                self._done([step])
        if self._record(whole, {step.name: step.topic_id for step in whole}):
            self._done(whole)

    def _remove(self, steps: Sequence[Removal]) -> None:
        """Take topics away, last of all: nothing is deleted on a cluster where something else has failed."""
        if steps and not self._outcome.is_complete:
            self._skip(steps, "something else was not done, and nothing is deleted before")
            return
        declared = self._declared.digest if self._declared is not None else None
        remover = Remover(self._cluster, self._plan.topology, declared)
        for portion in portions(steps):
            if not self._may_go_on(portion):
                continue
            problems = remover.remove(portion)
            for step in portion:
                if step.name in problems:
                    self._fail([step], problems[step.name])
            self._done([step for step in portion if step.name not in problems])

    def _record(self, steps: Sequence[CreateTopic | TopicChange], topic_ids: dict[str, str | None]) -> bool:
        """Write the ownership records of the steps' topics; on failure the steps have failed."""
        if not steps:
            return True
        topics = {step.name: step.topic for step in steps}
        plan = self._plan
        records = [topic.owned(plan.topology, plan.digest, topic_ids[name]) for name, topic in topics.items()]
        try:
            self._ownership.write(records)
        except AnabranchError as error:
            self._fail(steps, error.problems[0])
            return False
        return True

    def _done(self, steps: Sequence[Step]) -> None:
        for step in steps:
            self._outcome.done.append(step)
            self._progress(step)

    def _fail(self, steps: Sequence[Step], problem: Problem) -> None:
        self._outcome.failed += [Failure(step, problem) for step in steps]

    def _skip(self, steps: Sequence[Step], why: str) -> None:
        self._outcome.skipped += [Skipped(step, why) for step in steps]
