"""Why a partition does not run: error codes, texts, and the choice between retrying and parking.

`channel`, the takeovers and the committers use it. Each text names the offset or the error, and a remedy;
docs/reference/errors.md explains every code.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from reconciler.model.base.errors import AnabranchError, Unreachable
from reconciler.model.base.text import utc
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
# Connections that fail for credentials, certificates or missing libraries.
NOT_LET_IN = {"AB304", "AB306", "AB307", "AB312", "AB318", "AB319"}
# A broker closes connections on large requests.
LARGE_REQUESTS = "AB239"
_LEAST_DECLARED = 64 * 1024
TOO_LARGE = {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}
REFUSED_FOR_GOOD = {ErrorCode.INVALID_TIMESTAMP, ErrorCode.POLICY_VIOLATION, ErrorCode.INVALID_RECORD}

Verdict = tuple[PartitionState, Reason]
Side = Literal["source", "target"]
# Placeholder in a reason; `with_user` replaces it, as the task has both clusters' users and names.
_USERS = {side: f"the replicator's user at the {side}" for side in ("source", "target")}


def damaged(batch: Batch) -> Reason:
    """Return the reason for a batch whose checksum does not fit."""
    text = "is corrupt: its checksum does not fit; check the source broker's disk and network"
    return Reason("AB216", f"batch at source offset {batch.base_offset} {text}")


def damaged_in_flight(remote: str, offset: int) -> Verdict:
    """Return why a partition is read again, with every checksum verified."""
    text = f"what was read for offset {offset} of {remote} is corrupt, and the target did not take it; reading it again"
    return PartitionState.OPENING, Reason("AB220", text)


def oversized(offset: int, error: DecompressedTooLarge) -> Reason:
    """Return the reason for a batch that must be decompressed and is too large then."""
    text = (
        f"the batch at source offset {offset} has {error.size:,} bytes, and more than {error.most:,} decompressed, "
        "and must be decompressed to be rewritten or compared: raise the flow's largest-batch, or copy batches "
        "unchanged (compression: source)"
    )
    return Reason("AB235", text)


def unreadable(error: UnreadableBatch) -> Reason:
    """Return the reason for a batch that cannot be read."""
    if isinstance(error.__cause__, DecompressedTooLarge):
        return oversized(error.offset, error.__cause__)
    return Reason("AB201", f"{error}; check the source broker's disk, or copy from behind it")


def unforeseen(what: str, error: Exception) -> Reason:
    """Return the reason for an unexpected error."""
    text = f"{what} failed unexpectedly: {type(error).__name__}: {error}; please report it"
    return Reason("AB200", text)


def undecodable(offset: int, error: ValueError) -> Reason:
    """Return the reason for a batch that must be rewritten and cannot be decoded."""
    if isinstance(error, DecompressedTooLarge):
        return oversized(offset, error)
    text = f"the batch that holds source offset {offset} must be rewritten and cannot be: {error}"
    return Reason("AB207", text)


def why_failed(remote: str, expected: int, size: int, answer: ProduceAnswer, anywhere: bool = False) -> Verdict | None:
    """Return the verdict for a produce response, or None when the batch landed where it must.

    Args:
        remote: name of the remote topic.
        expected: the offset at which the batch must land.
        size: its bytes.
        answer: the target's response.
        anywhere: whether it may land at any offset.
    """
    code = answer.error
    if code == ErrorCode.NONE:
        if answer.base_offset == expected or anywhere:
            return None
        # The takeover finds out which records are there; sending more would only add to the damage.
        text = f"the batch of offset {expected} landed at {answer.base_offset}: another producer writes to {remote}"
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
        text = f"another owner wrote offset {expected} of {remote} first ({error_name(code)})"
        return PartitionState.OPENING, Reason("AB221", text)
    return PartitionState.OPENING, Reason("AB220", f"target answered {error_name(code)} at offset {expected}{detail}")


def refused(what: str, answer: ProduceAnswer) -> Verdict:
    """Return why a partition parks when the target never accepts some of its records, and the remedy.

    Args:
        what: names the refused records.
        answer: the target's response.
    """
    detail = detail_of(answer)
    remedy = "or change the setting of the copy that refuses them"
    if answer.error == ErrorCode.INVALID_TIMESTAMP:
        remedy = "or check with `anabranch plan` which timestamp limit is set on the copy"
    elif "without key" in detail:
        # The message of Kafka's brokers for a compacted topic.
        remedy = "or let the copy keep records without a key (`configs.set: {cleanup.policy: delete}`)"
    text = f"the target refuses {what} ({detail}): have such records put aside (declare `dlq`), {remedy}"
    return PartitionState.PARKED, Reason("AB217", text)


def detail_of(answer: ProduceAnswer, message: str | None = None) -> str:
    """Return the target's error name and message for a refused batch.

    Args:
        answer: the target's response.
        message: of one record; by default that of the first record in the response, because the batch's own message
            lists records.
    """
    name = error_name(answer.error)
    message = message or next((one.message for one in answer.records if one.message), answer.message)
    return f"{name}: {message.rstrip('. ')}" if message else name


def is_for_good(error: int) -> bool:
    """Return whether the target never accepts a record that it refuses with this error."""
    return error in TOO_LARGE or error in REFUSED_FOR_GOOD


def why_no_letter(topic: str, reason: Reason, size: int, answer: ProduceAnswer) -> Verdict | None:
    """Return why a record could not be written to the dead letter topic, None when it was.

    Args:
        topic: the dead letter topic.
        reason: why the record is put aside.
        size: bytes of its batch there.
        answer: the target's response.
    """
    if not answer.error:
        return None
    if answer.error in AUTHORIZATION:
        return PartitionState.PARKED, not_allowed("WRITE", f"topic {topic}", error_name(answer.error))
    name = error_name(answer.error)
    if is_for_good(answer.error):
        text = f"{reason}; and the dead-letter topic {topic} refuses it, too ({name}, {size:,} bytes)"
        return PartitionState.PARKED, Reason("AB229", text)
    return PartitionState.OPENING, Reason("AB220", f"the dead-letter topic {topic} answered {name}")


def too_large_together(remote: str, size: int) -> Verdict:
    """Return why a partition continues with smaller batches."""
    text = f"{remote} refuses a batch of {size:,} bytes; continuing with smaller ones"
    return PartitionState.OPENING, Reason("AB220", text)


def not_allowed(operation: str, resource: str, name: str, side: Side = "target") -> Reason:
    """Return the reason for an operation that a cluster's ACLs refuse; `with_user` adds the principal."""
    return Reason("AB213", f"{operation} on {resource} is refused ({name}): grant it to {_USERS[side]}")


def with_user(status: PartitionStatus, source: Cluster, target: Cluster) -> PartitionStatus:
    """Return a partition's status with the users and clusters of both sides named in its reason."""
    reason = status.reason
    if reason is None:
        return status
    text = reason.text
    for side, cluster in (("source", source), ("target", target)):
        # Of thousands of partitions most have another reason, or none.
        if _USERS[side] in text:
            text = text.replace(_USERS[side], f"{cluster.user} on {cluster.where}")
    return status if text == reason.text else replace(status, reason=Reason(reason.code, text))


def why_refused(error: BrokerError, operation: str, resource: str, side: Side = "target") -> Verdict:
    """Return the verdict for an error response to any other request.

    Args:
        error: the broker's error.
        operation: the ACL operation that the request needs.
        resource: its resource, such as `topic us-east.orders`.
        side: which cluster responded.
    """
    if error.code in AUTHORIZATION:
        return PartitionState.PARKED, not_allowed(operation, resource, error.name, side)
    # A WRITE request that the broker cannot read was damaged on the network, and is sent again.
    if error.code == ErrorCode.CORRUPT_MESSAGE and operation != "WRITE":
        return _damaged(f"the {side} cannot read {resource} ({error.name})")
    return PartitionState.OPENING, Reason("AB220", f"{resource}: {error}")


def why_no_data(code: int, topic: str, offset: int) -> Verdict:
    """Return the verdict for an error in a fetch response for an offset of the partition."""
    if code in AUTHORIZATION:
        return PartitionState.PARKED, not_allowed("READ", f"topic {topic}", error_name(code), "source")
    if code == ErrorCode.OFFSET_OUT_OF_RANGE:
        return PartitionState.OPENING, Reason("AB220", f"source answered {error_name(code)}: its log bounds moved")
    if code == ErrorCode.CORRUPT_MESSAGE:
        return _damaged(f"the source cannot read topic {topic} from offset {offset} on ({error_name(code)})")
    return PartitionState.OPENING, Reason("AB220", f"source answered {error_name(code)} for topic {topic}")


def _damaged(found: str) -> Verdict:
    remedy = "its log is damaged on the leader's disk; let another replica lead, or check the broker's log"
    return PartitionState.PARKED, Reason("AB216", f"{found}: {remedy}")


def no_answer(error: ConnectionLost, what: str = "") -> Reason:
    """Return the reason for a request that got no response.

    Args:
        error: why.
        what: the request, where the error does not name it.
    """
    return Reason(error.code, str(error) if isinstance(error, NotLetIn) or not what else f"{what}: {error}")


def closes_on_large(where: str, refused: int, passed: int) -> Reason:
    """Return the reason where a broker closes connections on large requests.

    Args:
        where: names the broker.
        refused: bytes of batches in the smallest request on which it closed the connection.
        passed: bytes of batches in the largest request that it accepted; 0 for none.
    """
    takes = f"and accepts {passed:,}; requests are smaller now" if passed else "and has accepted none yet"
    bound = passed or refused // 2
    # A smaller value cannot be declared.
    declare = f"declare `clients: {{producer: {{max.request.size: {bound}}}}}` for the cluster, or "
    remedy = f"{declare if bound >= _LEAST_DECLARED else ''}raise socket.request.max.bytes of its brokers"
    what = f"closes the connection on a request with {refused:,} bytes of batches, {takes}"
    return Reason(LARGE_REQUESTS, f"{where}: {what}: {remedy}")


def no_journal(error: AnabranchError) -> Verdict:
    """Return the verdict for an error with one of our own topics."""
    codes = {problem.code for problem in error.problems}
    if codes & NOT_LET_IN:
        return PartitionState.OPENING, Reason("AB232", str(error))
    if isinstance(error, Unreachable):
        return PartitionState.OPENING, Reason("AB220", str(error))
    return PartitionState.PARKED, Reason("AB213", str(error))


def missing_topic(side: Side, topic: str, code: int) -> Verdict:
    """Return the verdict for a topic's error in a metadata response."""
    if code in AUTHORIZATION:
        return PartitionState.PARKED, not_allowed("DESCRIBE", f"topic {topic}", error_name(code), side)
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        remedy = (
            "run `anabranch apply` to create it"
            if side == "target"
            else "it was deleted, or this user may not DESCRIBE it"
        )
        return PartitionState.PARKED, Reason("AB214", f"topic {topic} does not exist at the {side}: {remedy}")
    return PartitionState.OPENING, Reason("AB220", f"{side} topic {topic}: {error_name(code)}")


def recreating(remote: str) -> str:
    """Return how a copy is had again that is none any more."""
    return f"`anabranch recreate --target {remote} --allow-delete topic=1` copies it again"


def made_anew(place: Place, before: int | None = None) -> Verdict:
    """Return why no partition of a recreated topic is copied (`on-recreate: park`).

    Args:
        place: one of its partitions.
        before: offset up to which the former topic was copied, if known from its position.
    """
    old = "the old records" if before is None else f"the old records before offset {before:,}"
    lost = "" if before is None else "; later ones are lost"
    text = (
        f"topic {place.topic} was deleted at the source and created again; its copy {place.remote} holds {old}{lost}: "
        f"`anabranch recreate --target {place.remote}` begins it anew, and `on-recreate: restart` has the new records "
        "behind the old ones"
    )
    return PartitionState.PARKED, Reason("AB218", text)


def missing_partition(side: Side, topic: str, partition: int, count: int) -> Verdict:
    """Return the verdict for a partition that does not exist: a copy lacks it, or the original was recreated.

    Args:
        side: of the topic.
        topic: its name.
        partition: its number.
        count: how many partitions it has.
    """
    remedy = (
        "run `anabranch apply` to add it"
        if side == "target"
        else f"the topic has {count} since it was created again; the copy of this one stays"
    )
    text = f"partition {partition} of topic {topic} does not exist at the {side}: {remedy}"
    return PartitionState.PARKED, Reason("AB214", text)


def paused(by: str) -> Reason | None:
    """Return the reason of a paused partition, None where the operator is unknown.

    Args:
        by: operator and time, as text.
    """
    return Reason("AB230", f"paused {by}; `anabranch resume` lets it go on") if by else None


def not_of_the_flow(place: Place, why: str) -> Reason:
    """Return the reason for a partition in a task's assignment that its flow does not declare so."""
    text = (
        f"{place.topic}/{place.partition} was to be copied to {place.remote!r} ({place.offsets} offsets), and {why}; "
        "nothing is read or written. Check which principals may WRITE the control topic of the target"
    )
    return Reason("AB238", text)


def held_elsewhere(run: str, task: int, since: float) -> Reason:
    """Return the reason for a partition whose lease another member of the flow's group holds.

    Args:
        run: that member's run (start of `replicate`).
        task: number of its task.
        since: when its process became a member, seconds since 1970.
    """
    began = utc(since)
    text = f"run {run} (task {task}, since {began}) copies this partition; this one goes on when that one ends"
    return Reason("AB223", text)


HANDED_OVER = Reason("AB223", "another run of this flow has fewer partitions, and gets this one")
