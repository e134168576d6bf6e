"""Carry a plan out with Kafka's admin requests: no state file, nothing beside the clusters.

Clusters are worked on side by side; on each, steps of a kind travel in batches. An error stops what depends on it and
nothing else. The declaration is put in force last, and only when everything else was done, but for single topics that
could not be made or changed. Running it again after a kill at any moment is safe, see `work`.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from reconciler.model.acls.requirements import covered
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.outcome import Outcome
from reconciler.model.planning.removals import Removal
from reconciler.model.planning.steps import (
    AclChange,
    AddPartitions,
    AlterConfig,
    CreateTopic,
    GrantAcl,
    Plan,
    RevokeAcl,
    TopicChange,
    comes_before_topics,
)
from reconciler.provision.grants import Grants
from reconciler.provision.removal import remove_topics
from reconciler.provision.work import MayChange, Progress, Work, put_in_force


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
        may_change: MayChange = lambda alias: None,
    ) -> None:
        self._topology = topology
        self._progress = progress
        self._may_change = may_change

    def prepare(self, plan: Plan) -> None:
        """Do nothing: whatever is planned can be asked of a cluster."""

    def settle(self, plan: Plan) -> list[str]:
        """Do nothing: no state is kept beside the clusters."""
        del plan
        return []

    def apply(self, plan: Plan) -> Outcome:
        """Carry out as much of the plan as can be, and return the result of every step.

        Raises:
            EnvironmentFault: AB304, a secret cannot be resolved; nothing was changed.
        """
        busy = [cluster for cluster in plan.clusters if cluster.steps]
        works = [Work(self._topology, plan, cluster, self._progress, self._may_change) for cluster in busy]
        outcome = Outcome()
        with ThreadPoolExecutor(max_workers=max(1, len(works))) as pool:
            for part in pool.map(lambda work: _carry_out(work, plan.topology), works):
                outcome.add(part)
        if not outcome.holds_back(plan):
            put_in_force(self._topology, plan, self._may_change, outcome)
        return outcome


def _carry_out(work: Work, topology: str) -> Outcome:
    """Carry the steps of one cluster out, kind after kind."""
    if not work.begin():
        return work.outcome
    created = work.of(CreateTopic)
    acls = [step for step in work.rest if isinstance(step, AclChange)]
    made = {step.name for step in created}
    _follow(work, [step for step in acls if comes_before_topics(step, made)], topology)
    created = _uncovered(work, created)
    if work.may_go_on(created):
        _create(work, created)
    changed = [step for step in work.rest if isinstance(step, TopicChange)]
    if work.may_go_on(changed):
        _change(work, changed)
    _follow(work, _of_topics(work, [step for step in acls if not comes_before_topics(step, made)]), topology)
    remove_topics(work, [step for step in work.rest if isinstance(step, Removal)], topology)
    return work.outcome


def _follow(work: Work, steps: Sequence[AclChange], topology: str) -> None:
    if steps and work.may_go_on(steps):
        part = Grants(work.cluster, topology).change(steps)
        work.take_over(part)


def _uncovered(work: Work, steps: Sequence[CreateTopic]) -> list[CreateTopic]:
    """Return the topics that no ACL covers which was to be revoked first; the others are not made."""
    told = [*(one.step for one in work.outcome.failed), *(one.step for one in work.outcome.skipped)]
    still = {step.binding.pattern for step in told if isinstance(step, RevokeAcl)}
    open_to_others = covered((step.name for step in steps), still)
    why = "an ACL that covers it is to be revoked first, and was not"
    work.skip([step for step in steps if step.name in open_to_others], why)
    return [step for step in steps if step.name not in open_to_others]


def _of_topics(work: Work, steps: Sequence[AclChange]) -> list[AclChange]:
    """Return the changes without grants on topics that were to be made and are not: another's may have the name."""
    made = {step.name for step in work.outcome.done if isinstance(step, CreateTopic)}
    missing = {step.name for step in work.of(CreateTopic)} - made

    def lacks(step: AclChange) -> bool:
        return isinstance(step, GrantAcl) and step.role == "followed" and step.binding.pattern.name in missing

    work.skip([step for step in steps if lacks(step)], "its topic could not be made")
    return [step for step in steps if not lacks(step)]


def _create(work: Work, steps: Sequence[CreateTopic]) -> None:
    """Make remote topics: write their ownership records, make them, confirm the records with the topics' ids."""
    if not work.intend(steps):
        return
    problems = work.admin.create_topics({step.name: step.topic for step in steps})
    for step in steps:
        if problem := problems.get(step.name):
            work.fail([step], problem)
    work.confirm([step for step in steps if step.name not in problems])


def _change(work: Work, steps: Sequence[TopicChange]) -> None:
    """Change existing topics, and record what was last applied to those where it worked."""
    grown = [step for step in steps if isinstance(step, AddPartitions)]
    altered = [step for step in steps if isinstance(step, AlterConfig)]
    not_grown = work.admin.add_partitions({step.name: step.topic.partitions for step in grown})
    not_altered = work.admin.alter_configs({step.name: step.changes for step in altered})
    problems = {id(step): not_grown[step.name] for step in grown if step.name in not_grown}
    problems |= {id(step): not_altered[step.name] for step in altered if step.name in not_altered}
    work.settle(steps, problems)
