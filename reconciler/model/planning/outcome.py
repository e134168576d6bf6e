"""What became of a plan: done, failed, not tried.

Values only; provisioners make them, reports and commands read them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model.base.errors import Problem
from reconciler.model.declared.limits import Beyond
from reconciler.model.planning.steps import CreateTopic, GrantAcl, Plan, PlanStep, TopicChange


@dataclass(frozen=True)
class Failure:
    """A step that was tried and failed."""

    step: PlanStep
    problem: Problem


@dataclass(frozen=True)
class Skipped:
    """A step that was not tried, and why."""

    step: PlanStep
    why: str


@dataclass
class Outcome:
    """What became of every step of a plan.

    Attributes:
        done: carried out, in the order in which they were finished.
        failed: tried in vain; what came of them at the cluster is unknown or nothing.
        skipped: not tried.
        in_force: aliases of the targets where the declaration was put in force, which is tried last, where nothing
            `holds_back`.
        not_in_force: why it was not, where it was tried in vain.
        closed: aliases of the targets where nothing is in force any more, as what was made there is destroyed.
        is_part: whether only a part of what is declared was planned, so that nothing was to be put in force.
        stopped: why the rest was not begun: the wave before is not well, or the user interrupted it.
    """

    done: list[PlanStep] = field(default_factory=list)
    failed: list[Failure] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    in_force: list[str] = field(default_factory=list)
    not_in_force: list[Problem] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    is_part: bool = False
    stopped: Problem | None = None

    @property
    def is_complete(self) -> bool:
        """Whether every step was carried out, and the declaration put in force."""
        return not self.failed and not self.skipped and not self.not_in_force and self.stopped is None

    @property
    def lacking(self) -> tuple[CreateTopic | TopicChange, ...]:
        """The steps of single topics that failed: these topics are missing, or not as they should be."""
        return tuple(one.step for one in self.failed if isinstance(one.step, CreateTopic | TopicChange))

    def holds_back(self, plan: Plan) -> bool:
        """Return whether something keeps a plan's declaration from coming into force.

        One topic that could not be made or changed does not: its flows copy the others, and try it again. Whatever
        concerns more than it does, and so does a target where no topic is left that could be copied.

        Args:
            plan: all of which was tried.
        """
        lacking = {(step.cluster, step.name) for step in self.lacking}
        if len(self.lacking) < len(self.failed) or self.not_in_force or self.stopped is not None:
            return True
        if not all(_topic_of(one.step) in lacking for one in self.skipped):
            return True
        counts = Counter(alias for alias, _ in lacking)
        topics = {cluster.alias: sum(flow.topics for flow in cluster.flows) for cluster in plan.clusters}
        return any(topics.get(alias, 0) <= count for alias, count in counts.items())

    def add(self, other: Outcome) -> None:
        """Take over what became of other steps."""
        self.done += other.done
        self.failed += other.failed
        self.skipped += other.skipped
        self.in_force += other.in_force
        self.not_in_force += other.not_in_force


def _topic_of(step: PlanStep) -> tuple[str, str]:
    """Return the cluster and the topic that a step is about."""
    return step.cluster, step.binding.pattern.name if isinstance(step, GrantAcl) else step.name


@dataclass(frozen=True)
class Growth:
    """What became of a refresh of the remote topics of one flow.

    Attributes:
        outcome: of the steps that made topics or let them grow.
        left_out: by original topic, why it must not be copied.
        hindered: by original topic, why nothing can be done for it now.
        translated: the original topics whose copies have offsets of their own; None where that is unknown.
        beyond: what the flow's limits leave out.
        problems: why nothing at all was made.
    """

    outcome: Outcome = field(default_factory=Outcome)
    left_out: Mapping[str, str] = field(default_factory=dict)
    hindered: Mapping[str, str] = field(default_factory=dict)
    translated: frozenset[str] | None = None
    beyond: tuple[Beyond, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def not_copied(self) -> Mapping[str, str]:
        """Why topics are not copied, by original: they must not be, or are beyond a limit."""
        return {topic: one.why for one in self.beyond for topic in one.left_out} | dict(self.left_out)
