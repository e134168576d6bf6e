"""Why a partition does not run: one place for the codes, the words and the choice between pausing and parking.

`channel` and `identical` ask here. Each text names the offset or the error, and what to do; docs/reference/errors.md
explains every code.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Literal

from reconciler.model.base.errors import AnabranchError, Unreachable
from reconciler.model.declared.cluster import Cluster
from reconciler.model.tasks.status import PartitionState, PartitionStatus, Reason
from reconciler.records.batch import Batch, UnreadableBatch
from reconciler.records.decompression import DecompressedTooLarge
from reconciler.replicator.partition.shares import Place
from reconciler.wire import BrokerError, ConnectionLost, ErrorCode, NotLetIn, ProduceAnswer, error_name

AUTHORIZATION = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
# No connection for want of other credentials, certificates or libraries.
NOT_LET_IN = {"AB304", "AB306", "AB307", "AB312", "AB318", "AB319"}
# A broker closes connections on large requests.
LARGE_REQUESTS = "AB239"
_LEAST_DECLARED = 64 * 1024
TOO_LARGE = {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}
REFUSED_FOR_GOOD = {ErrorCode.INVALID_TIMESTAMP, ErrorCode.POLICY_VIOLATION, ErrorCode.INVALID_RECORD}

Verdict = tuple[PartitionState, Reason]
Side = Literal["source", "target"]
# Stands in a reason until a task says it, which knows both clusters.
_USERS = {side: f"the replicator's user at the {side}" for side in ("source", "target")}


def damaged(batch: Batch) -> Reason:
    """Return the reason for a batch whose checksum does not fit."""
    text = "is corrupt: its checksum does not fit; check the source broker's disk and network"
    return Reason("AB216", f"batch at source offset {batch.base_offset} {text}")


def damaged_in_flight(remote: str, offset: int) -> Verdict:
    """Return why a partition is read anew, looking at each checksum."""
    text = f"what was read for offset {offset} of {remote} is corrupt, and the target did not take it; reading it again"
    return PartitionState.OPENING, Reason("AB220", text)


def oversized(offset: int, error: DecompressedTooLarge) -> Reason:
    """Return the reason for a batch that would have to be decompressed, and is too large then."""
    text = (
        f"the batch at source offset {offset} has {error.size:,} bytes, and more than {error.most:,} decompressed, as "
        "which it must be rewritten or compared: let the flow's largest-batch be more if it may be so large, or let "
        "batches pass as they are (compression: source)"
    )
    return Reason("AB235", text)


def unreadable(error: UnreadableBatch) -> Reason:
    """Return the reason for a batch that cannot be read."""
    if isinstance(error.__cause__, DecompressedTooLarge):
        return oversized(error.offset, error.__cause__)
    return Reason("AB201", f"{error}; check the source broker's disk, or copy from behind it")


def unforeseen(what: str, error: Exception) -> Reason:
    """Return the reason for an error that nobody foresaw."""
    text = f"{what} failed in a way that nobody foresaw: {type(error).__name__}: {error}; please report it"
    return Reason("AB200", text)


def undecodable(offset: int, error: ValueError) -> Reason:
    """Return the reason for a batch that must be rewritten and cannot be decoded."""
    if isinstance(error, DecompressedTooLarge):
        return oversized(offset, error)
    text = f"the batch that holds source offset {offset} must be rewritten and cannot be: {error}"
    return Reason("AB207", text)


def why_failed(remote: str, expected: int, size: int, answer: ProduceAnswer, anywhere: bool = False) -> Verdict | None:
    """Return what a produce answer means for the partition, or None when the batch landed where it must.

    Args:
        remote: name of the remote topic.
        expected: the offset at which the batch must have landed.
        size: its bytes.
        answer: what the target said.
        anywhere: whether it may land at any offset.
    """
    code = answer.error
    if code == ErrorCode.NONE:
        if answer.base_offset == expected or anywhere:
            return None
        # Takeover finds out whose records stand there; going on here could only make it worse.
        text = f"the batch of offset {expected} landed at {answer.base_offset}: somebody else writes to {remote}"
        return PartitionState.OPENING, Reason("AB211", text)
    detail = f" ({answer.message})" if answer.message else ""
    if code in TOO_LARGE:
        text = (
            f"the batch at offset {expected} has {size:,} bytes, more than {remote} allows: raise its max.message.bytes"
        )
        return PartitionState.PARKED, Reason("AB212", text)
    if code in AUTHORIZATION:
        return PartitionState.PARKED, not_allowed("WRITE", f"topic {remote}", error_name(code))
    if code in REFUSED_FOR_GOOD:
        return refused(f"the batch at offset {expected} of {remote}", answer)
    if code in (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_PRODUCER_EPOCH):
        text = f"another owner was first at offset {expected} of {remote} ({error_name(code)})"
        return PartitionState.OPENING, Reason("AB221", text)
    return PartitionState.OPENING, Reason("AB220", f"target answered {error_name(code)} at offset {expected}{detail}")


def refused(what: str, answer: ProduceAnswer) -> Verdict:
    """Return why a partition parks of which the target will never take something, and what helps.

    Args:
        what: is refused.
        answer: what the target said.
    """
    said = said_of(answer)
    remedy = "or change the setting of the copy that stands against it"
    if answer.error == ErrorCode.INVALID_TIMESTAMP:
        remedy = "or see with `anabranch plan` which bound for timestamps somebody has set on the copy"
    elif "without key" in said:
        # The words of Kafka's brokers, of a compacted topic.
        remedy = "or let the copy keep records without a key (`configs.set: {cleanup.policy: delete}`)"
    text = f"the target refuses {what} ({said}): have such records put aside (declare `dlq`), {remedy}"
    return PartitionState.PARKED, Reason("AB217", text)


def said_of(answer: ProduceAnswer, message: str | None = None) -> str:
    """Return what the target says of what it refuses, in a few words.

    Args:
        answer: what it said.
        message: of one record; by default of the first that is named, as that of the whole batch lists records.
    """
    name = error_name(answer.error)
    message = message or next((one.message for one in answer.records if one.message), answer.message)
    return f"{name}: {message.rstrip('. ')}" if message else name


def is_for_good(error: int) -> bool:
    """Tell whether the target will never take the record that it refuses with an error."""
    return error in TOO_LARGE or error in REFUSED_FOR_GOOD


def why_no_letter(topic: str, reason: Reason, size: int, answer: ProduceAnswer) -> Verdict | None:
    """Return why a record could not be put aside, None when it was.

    Args:
        topic: where to.
        reason: why it is put aside.
        size: bytes of its batch there.
        answer: what the target said.
    """
    if not answer.error:
        return None
    if answer.error in AUTHORIZATION:
        return PartitionState.PARKED, not_allowed("WRITE", f"topic {topic}", error_name(answer.error))
    name = error_name(answer.error)
    if is_for_good(answer.error):
        text = f"{reason}; and the dead-letter topic {topic} does not take it either ({name}, {size:,} bytes)"
        return PartitionState.PARKED, Reason("AB229", text)
    return PartitionState.OPENING, Reason("AB220", f"the dead-letter topic {topic} answered {name}")


def too_large_together(remote: str, size: int) -> Verdict:
    """Return why a partition goes on with smaller batches."""
    text = f"{remote} takes no such batch of {size:,} bytes; going on with smaller ones"
    return PartitionState.OPENING, Reason("AB220", text)


def not_allowed(operation: str, resource: str, name: str, side: Side = "target") -> Reason:
    """Return the reason for an operation that a cluster's ACLs refuse; `with_user` says whom."""
    return Reason("AB213", f"{operation} on {resource} is refused ({name}): grant it to {_USERS[side]}")


def with_user(status: PartitionStatus, source: Cluster, target: Cluster) -> PartitionStatus:
    """Return what is said of a partition, with the users and the clusters of both sides by name."""
    reason = status.reason
    if reason is None:
        return status
    text = reason.text
    for side, cluster in (("source", source), ("target", target)):
        text = text.replace(_USERS[side], f"{cluster.user} on {cluster.where}")
    return status if text == reason.text else replace(status, reason=Reason(reason.code, text))


def why_refused(error: BrokerError, operation: str, resource: str, side: Side = "target") -> Verdict:
    """Return what an error answer to any other request means.

    Args:
        error: the broker's answer.
        operation: the ACL operation that the request needs.
        resource: what it was for, such as `topic us-east.orders`.
        side: which cluster answered.
    """
    if error.code in AUTHORIZATION:
        return PartitionState.PARKED, not_allowed(operation, resource, error.name, side)
    # What it cannot read of a request came damaged over the network, and is sent again.
    if error.code == ErrorCode.CORRUPT_MESSAGE and operation != "WRITE":
        return _damaged(f"the {side} cannot read {resource} ({error.name})")
    return PartitionState.OPENING, Reason("AB220", f"{resource}: {error}")


def why_no_data(code: int, topic: str, offset: int) -> Verdict:
    """Return what an error in a fetch answer means for the partition, of which an offset was asked for."""
    if code in AUTHORIZATION:
        return PartitionState.PARKED, not_allowed("READ", f"topic {topic}", error_name(code), "source")
    if code == ErrorCode.OFFSET_OUT_OF_RANGE:
        return PartitionState.OPENING, Reason("AB220", f"source says {error_name(code)}: its log start or end moved")
    if code == ErrorCode.CORRUPT_MESSAGE:
        return _damaged(f"the source cannot read topic {topic} from offset {offset} on ({error_name(code)})")
    return PartitionState.OPENING, Reason("AB220", f"source answered {error_name(code)} for topic {topic}")


def _damaged(found: str) -> Verdict:
    remedy = "its log is damaged on the leader's disk; let another replica lead, or see what the broker's log says"
    return PartitionState.PARKED, Reason("AB216", f"{found}: {remedy}")


def no_answer(error: ConnectionLost, what: str = "") -> Reason:
    """Return the reason for a request that got no answer.

    Args:
        error: why.
        what: what was asked of whom, where the error does not say it by itself.
    """
    return Reason(error.code, str(error) if isinstance(error, NotLetIn) or not what else f"{what}: {error}")


def closes_on_large(where: str, refused: int, passed: int) -> Reason:
    """Return what is said where a broker closes connections on large requests.

    Args:
        where: which one.
        refused: bytes of batches in the smallest request on which it did.
        passed: in the largest one that it took; 0 where it took none.
    """
    takes = f"and takes {passed:,}; requests are smaller now" if passed else "and has taken none yet"
    bound = passed or refused // 2
    # Less than that cannot be declared.
    declare = f"declare `clients: {{producer: {{max.request.size: {bound}}}}}` for the cluster, or "
    remedy = f"{declare if bound >= _LEAST_DECLARED else ''}raise socket.request.max.bytes of its brokers"
    what = f"closes the connection on a request with {refused:,} bytes of batches, {takes}"
    return Reason(LARGE_REQUESTS, f"{where}: {what}: {remedy}")


def no_journal(error: AnabranchError) -> Verdict:
    """Return what the trouble with one of our own topics means for a partition."""
    codes = {problem.code for problem in error.problems}
    if codes & NOT_LET_IN:
        return PartitionState.OPENING, Reason("AB232", str(error))
    if isinstance(error, Unreachable):
        return PartitionState.OPENING, Reason("AB220", str(error))
    return PartitionState.PARKED, Reason("AB213", str(error))


def missing_topic(side: Side, topic: str, code: int) -> Verdict:
    """Return what a topic's error in a metadata answer means."""
    if code in AUTHORIZATION:
        return PartitionState.PARKED, not_allowed("DESCRIBE", f"topic {topic}", error_name(code), side)
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        remedy = (
            "run `anabranch apply` to create it"
            if side == "target"
            else "it was deleted, or is not visible to this user"
        )
        return PartitionState.PARKED, Reason("AB214", f"topic {topic} does not exist at the {side}: {remedy}")
    return PartitionState.OPENING, Reason("AB220", f"{side} topic {topic}: {error_name(code)}")


def made_anew(place: Place, before: int | None = None) -> Verdict:
    """Return why no partition of a topic that was made anew is copied, as its flow is not to go on with it.

    Args:
        place: one of them.
        before: up to where its former one was copied, where positions tell it.
    """
    old = "the old records" if before is None else f"the old records before offset {before:,}"
    lost = "" if before is None else "; what came behind them is lost"
    text = (
        f"topic {place.topic} was deleted at the source and made again; its copy {place.remote} holds {old}{lost}: "
        "delete the copy and run `anabranch apply`, or declare `on-recreate: restart` to have the new records behind "
        "the old ones"
    )
    return PartitionState.PARKED, Reason("AB218", text)


def missing_partition(side: Side, topic: str, partition: int, count: int) -> Verdict:
    """Return what it means that a topic has no such partition: copies are to get it, and originals never lose one.

    Args:
        side: of the topic.
        topic: its name.
        partition: its number.
        count: how many partitions it has.
    """
    remedy = (
        "run `anabranch apply` to add it"
        if side == "target"
        else f"it has {count}, as topics that are made anew may; what its copy holds of this one stays"
    )
    text = f"partition {partition} of topic {topic} does not exist at the {side}: {remedy}"
    return PartitionState.PARKED, Reason("AB214", text)


def paused(by: str) -> Reason | None:
    """Return the reason of a partition that was paused, None where it is not known who did it.

    Args:
        by: who and since when, in words.
    """
    return Reason("AB230", f"paused {by}; `anabranch resume` lets it go on") if by else None


def not_of_the_flow(place: Place, why: str) -> Reason:
    """Return the reason for a partition that was assigned to a task and that its flow does not declare so."""
    text = (
        f"{place.topic}/{place.partition} was to be copied to {place.remote!r} ({place.offsets} offsets), and {why}; "
        "nothing is read or written. See who may WRITE the control topic of the target"
    )
    return Reason("AB238", text)


def held_elsewhere(run: str, task: int, since: float) -> Reason:
    """Return the reason for a partition that another member of the flow's group may write.

    Args:
        run: which start of `replicate` that member belongs to.
        task: number of its task.
        since: when its process became a member, seconds since 1970.
    """
    began = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(since))
    text = f"run {run} (task {task}, since {began}) copies this partition; this one goes on when that one ends"
    return Reason("AB223", text)


HANDED_OVER = Reason("AB223", "another run of this flow has fewer partitions, and gets this one")
