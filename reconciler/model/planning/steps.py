"""The plan: a frozen value, built once, that printers show and provisioners carry out.

Because preview and apply interpret the same steps, they cannot differ.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal

from reconciler.model.acls.binding import Binding, Role
from reconciler.model.planning.changes import Change, Fate
from reconciler.model.planning.deployments import DeploymentPlan, DeploymentStep
from reconciler.model.planning.desired import DesiredTopic
from reconciler.model.planning.padding import Padding
from reconciler.model.planning.removals import DeleteTopic, DeletionKind, ForgetTopic, Removal
from reconciler.model.recorded.declaration import Declared

ChangeReason = Literal["source-change", "target-change", "missing", "obsolete"]
"""Why a setting changes: it changed at the source since the last apply, or at the target; the last apply did not set
it; or nothing declares it any longer."""

OwnershipReason = Literal["interrupted", "flow-renamed", "grown", "adopted", "made-anew", "rebuilt"]
"""Why an ownership record is written alone: an apply was killed before it could; the flow has another name now;
partitions were added to the remote topic, which never become fewer; it stood there before, and is taken over;
its original was made anew, and the copy goes on with that; or it was lost, and the records of copies prove it."""

RevocationCause = Literal["gone", "unfollowed", "wide"]
"""Why an ACL that follows originals is revoked: they no longer have it, or it is refused there; a flow that fills the
copy follows no ACLs; or it is on a pattern, as an older release granted it, and each copy has its own now."""


@dataclass(frozen=True)
class CreateInternalTopic:
    """Make one of the topics in which our own state lives."""

    cluster: str
    name: str


@dataclass(frozen=True)
class CreateTopic:
    """Make a remote topic."""

    topic: DesiredTopic

    @property
    def cluster(self) -> str:
        """Alias of the target."""
        return self.topic.cluster

    @property
    def name(self) -> str:
        """The remote topic."""
        return self.topic.name


@dataclass(frozen=True)
class _ChangeTopic:
    """What all changes of an existing remote topic share.

    Attributes:
        topic: as it should be.
        topic_id: the id it was observed with.
    """

    topic: DesiredTopic
    topic_id: str

    @property
    def cluster(self) -> str:
        """Alias of the target."""
        return self.topic.cluster

    @property
    def name(self) -> str:
        """The remote topic."""
        return self.topic.name


@dataclass(frozen=True)
class AddPartitions(_ChangeTopic):
    """Let a remote topic grow to as many partitions as the original has.

    Attributes:
        found: how many it has now.
    """

    found: int


@dataclass(frozen=True)
class ConfigChange:
    """One setting that changes.

    Attributes:
        key: Kafka's name of it.
        old: the topic-level value found; None when there is none.
        new: the desired value; None returns it to the brokers' default.
        reason: why.
    """

    key: str
    old: str | None
    new: str | None
    reason: ChangeReason


@dataclass(frozen=True)
class AlterConfig(_ChangeTopic):
    """Change some settings of a remote topic, and no others."""

    changes: tuple[ConfigChange, ...]


@dataclass(frozen=True)
class RecordOwnership(_ChangeTopic):
    """Write down that an existing topic is ours."""

    reason: OwnershipReason


@dataclass(frozen=True)
class _OneAcl:
    """What granting and revoking share.

    Attributes:
        cluster: alias of the target.
        binding: the ACL.
        flow: name of the flow that it is for.
        role: why it is granted, or was.
    """

    cluster: str
    binding: Binding
    flow: str
    role: Role = field(default="followed", kw_only=True)

    @property
    def name(self) -> str:
        """The ACL, in words."""
        return str(self.binding)


@dataclass(frozen=True)
class GrantAcl(_OneAcl):
    """Allow or deny a principal to read copies, as the originals do; or allow the replicator what it needs."""


@dataclass(frozen=True)
class RevokeAcl(_OneAcl):
    """Take away what an apply has granted.

    Attributes:
        is_kept: whether it stays, as another topology has granted it too; then only our record of it goes.
        with_topic: whether it goes because its topic is deleted; otherwise as the originals no longer have it.
        is_foreign: whether another principal granted it on a copy of ours; that takes `--allow-delete`.
        cause: why, where it follows originals and its topic stays.
    """

    is_kept: bool = False
    with_topic: bool = False
    is_foreign: bool = False
    cause: RevocationCause = "gone"


TopicChange = AddPartitions | AlterConfig | RecordOwnership
AclChange = GrantAcl | RevokeAcl


def comes_before_topics(step: AclChange, made: Collection[str]) -> bool:
    """Return whether a change of ACLs must be carried out before topics are made.

    No copy may come into being while an ACL covers it that is to be revoked, and nothing is granted on one before it is
    there: until then its name is free for others.

    Args:
        step: the change.
        made: names of the topics that are made with it.
    """
    if step.role == "own":
        return False
    if isinstance(step, GrantAcl):
        return step.binding.pattern.name not in made
    return not (step.with_topic or step.is_foreign)


Step = CreateInternalTopic | CreateTopic | TopicChange | AclChange | Removal
PlanStep = Step | DeploymentStep


@dataclass(frozen=True)
class Notice:
    """Something that the plan leaves as it is, or cannot do, and reports.

    Attributes:
        subject: the topic or flow it is about.
        message: what and why.
        pattern: the message with `{}` for each word of it that is this subject's own; empty where it has none. Printers
            print notices of one pattern once.
        own: these words.
    """

    subject: str
    message: str
    pattern: str = field(default="", compare=False)
    own: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def about(cls, subject: str, pattern: str, *own: object) -> Notice:
        """Return the notice whose message is a pattern with the words that are the subject's own."""
        words, pieces = tuple(map(str, own)), pattern.split("{}")
        # Not by `format`: words may hold braces.
        message = "".join(one for pair in zip(pieces, (*words, ""), strict=True) for one in pair)
        return cls(subject, message, pattern, words)


@dataclass(frozen=True)
class NotStarted:
    """A topic that a flow takes, and that cannot be copied: no step is made for it, and nothing runs.

    Attributes:
        flow: name of the flow.
        source: alias.
        topic: the original.
        remote: what its copy would be called.
        reason: why.
    """

    flow: str
    source: str
    topic: str
    remote: str
    reason: str

    @property
    def why(self) -> str:
        """The reason, and what it means."""
        return f"not started: {self.reason}"


@dataclass(frozen=True)
class PlannedFlow:
    """A flow that the plan is for.

    Attributes:
        name: of the flow.
        source: alias.
        target: alias.
        tasks: how many replicate it.
        topics: how many it copies now.
        offsets: how the copies' offsets relate to the originals': `identical`, or `translated` where it copies none.
        offsets_reason: why.
        fill: how offsets without a record are filled: `markers` or `transactions`.
        fill_reason: why, and what it means.
        padding: what is filled before the first records. It is no part of what makes two plans differ: logs are
            trimmed all the time.
    """

    name: str
    source: str
    target: str
    tasks: int
    topics: int
    offsets: str
    offsets_reason: str = ""
    fill: str = "transactions"
    fill_reason: str = ""
    padding: Padding = field(default_factory=Padding, compare=False)


@dataclass(frozen=True)
class ClusterPlan:
    """What a plan holds for one target cluster.

    Attributes:
        alias: the cluster.
        datacenter: where it stands.
        steps: in the order in which they are carried out.
        flows: that end here.
        not_started: topics of these flows that this version cannot copy.
        left_alone: what is ours here, and stays as it is.
        warnings: what the user should know.
        declared: what is put in force when everything else is done; None where nothing is, as while only topics grow.
        wave: in which wave of a rollout it is changed; lower ones come first.
        changes: against the declaration that is in force, flow by flow.
    """

    alias: str
    datacenter: str
    steps: tuple[Step, ...] = ()
    flows: tuple[PlannedFlow, ...] = ()
    not_started: tuple[NotStarted, ...] = ()
    left_alone: tuple[Notice, ...] = ()
    warnings: tuple[Notice, ...] = ()
    declared: Declared | None = None
    wave: int = 1
    changes: tuple[Change, ...] = ()

    @property
    def is_unknown(self) -> bool:
        """Whether another declaration is in force whose content is not recorded."""
        return self.declared is not None and self.declared.is_unknown


@dataclass(frozen=True)
class Plan:
    """Everything that an apply will do, and nothing else.

    Attributes:
        topology: name of the topology.
        digest: of its declaration.
        clusters: the targets, in the order of declaration.
        notices: what the user should know of clusters that it is not for.
        deployments: what data centres run, and which of it changes.
    """

    topology: str
    digest: str
    clusters: tuple[ClusterPlan, ...]
    notices: tuple[Notice, ...] = ()
    deployments: tuple[DeploymentPlan, ...] = ()

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps of all clusters."""
        return tuple(step for cluster in self.clusters for step in cluster.steps)

    @property
    def deployment_steps(self) -> tuple[DeploymentStep, ...]:
        """All steps of data centres."""
        return tuple(step for deployment in self.deployments for step in deployment.steps)

    @property
    def is_empty(self) -> bool:
        """Whether there is no step to carry out."""
        return not self.steps and not self.deployment_steps

    @property
    def to_put_in_force(self) -> tuple[tuple[str, str], ...]:
        """Targets, by alias, with the digests that are not in force there yet."""
        told = ((cluster.alias, cluster.declared) for cluster in self.clusters)
        return tuple((alias, one.digest) for alias, one in told if one is not None and not one.is_in_force)

    @property
    def changes_nothing(self) -> bool:
        """Whether an apply would change nothing at all."""
        return self.is_empty and not self.to_put_in_force

    @property
    def waves(self) -> tuple[int, ...]:
        """The waves of its clusters and of data centres that change, in their order, each once."""
        changing = {deployment.wave for deployment in self.deployments if deployment.steps}
        return tuple(sorted({cluster.wave for cluster in self.clusters} | changing))

    @property
    def to_add(self) -> int:
        """How many copies are made, ACLs granted and flows begun beside those that are in force."""
        made = sum(isinstance(step, CreateTopic | GrantAcl) for step in self.steps)
        return made + self._changing("begins")

    @property
    def own_to_add(self) -> int:
        """How many topics of our own state are made."""
        return sum(isinstance(step, CreateInternalTopic) for step in self.steps)

    @property
    def to_delete(self) -> int:
        """How many topics are deleted and ACLs revoked."""
        return sum(isinstance(step, DeleteTopic | RevokeAcl) for step in self.steps)

    def deletions(self, kind: DeletionKind, alias: str | None = None) -> int:
        """Return how many deletions need a permission of the user, on one cluster or on all."""
        return sum(
            (isinstance(step, DeleteTopic) if kind == "topic" else isinstance(step, RevokeAcl) and step.is_foreign)
            and alias in (None, step.cluster)
            for step in self.steps
        )

    @property
    def to_change(self) -> int:
        """How many existing topics are changed, each counted once, and records of topics that are gone.

        And what else of the declaration changes, by flow, cluster and topology; where it is unknown, once for a target.
        """
        changed = {(step.cluster, step.name) for step in self.steps if isinstance(step, TopicChange | ForgetTopic)}
        return len(changed) + self._changing("changes") + sum(cluster.is_unknown for cluster in self.clusters)

    @property
    def to_end(self) -> int:
        """How many flows end."""
        return self._changing("ends")

    def _changing(self, fate: Fate) -> int:
        return sum(change.fate == fate for cluster in self.clusters for change in cluster.changes)
