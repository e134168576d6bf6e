"""Steps that take remote topics of ours away, and what never is taken.

`plan` makes them for `destroy` and for `apply --allow-delete`; the reconcile loop never does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from reconciler.model.recorded.ownership import OwnedTopic

RemovalReason = Literal["destroyed", "flow-gone", "not-taken", "recreated", "renamed"]
"""Why a topic is deleted: everything is; its flow is declared no longer; the flow takes its original no longer; or the
flow gives the copy another name now."""

DeletionKind = Literal["topic", "acl"]
"""What is deleted only where the user allows it: topics of ours, and ACLs that others granted on them."""
DELETION_KINDS: tuple[DeletionKind, ...] = get_args(DeletionKind)


@dataclass(frozen=True)
class DeleteTopic:
    """Delete a remote topic of ours with all its records, and forget that it was ours.

    Attributes:
        cluster: alias of the target.
        name: the remote topic.
        topic_id: its id, on record and observed; a topic with another one is not deleted.
        flow: name of the flow that filled it.
        source: alias of the source cluster.
        source_topic: the topic it is a copy of.
        reason: why.
        doubt: why the declaration would not have made it, although it is on record; empty where it may have.
    """

    cluster: str
    name: str
    topic_id: str
    flow: str
    source: str
    source_topic: str
    reason: RemovalReason
    doubt: str = ""

    @classmethod
    def of(cls, cluster: str, record: OwnedTopic, topic_id: str, reason: RemovalReason, doubt: str = "") -> DeleteTopic:
        """Return the deletion of a topic on record as ours.

        Args:
            cluster: alias of the target.
            record: of the topic.
            topic_id: as observed.
            reason: why.
            doubt: why the declaration would not have made it.
        """
        original = record.source, record.source_topic
        return cls(cluster, record.name, topic_id, record.flow, *original, reason, doubt)


@dataclass(frozen=True)
class ForgetTopic:
    """Remove the ownership record of a topic that is not there any more.

    Attributes:
        cluster: alias of the target.
        name: the remote topic.
        flow: name of the flow that filled it.
        source: alias of the source cluster.
        source_topic: the topic it was a copy of.
    """

    cluster: str
    name: str
    flow: str
    source: str
    source_topic: str


Removal = DeleteTopic | ForgetTopic
