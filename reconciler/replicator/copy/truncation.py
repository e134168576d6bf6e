"""Truncation of the source: its log after some offset is other than what was read, or not there any more.

The rule is the consumer's (KIP-320): with a position goes the leader epoch of what was read before it, and before
reading goes on under another leader, that one is asked where the known epoch ends in its log. An end below the position
says that an unclean election, or a replica that came back without its newest pages, took away what had been read. A
leader that does not know the epoch proves nothing. `channel` notes what it reads; `identical` and `translated` ask.
"""

from __future__ import annotations

from reconciler.model.tasks.status import PartitionState, Reason
from reconciler.replicator.copy.agreement import Disagreement, Logs
from reconciler.replicator.partition.place import ReadPosition, differ
from reconciler.replicator.partition.shares import Place
from reconciler.wire import BrokerError, TopicInfo, Wire


async def truncated_at(
    wire: Wire, topic: TopicInfo, partition: int, position: int, read: ReadPosition | None
) -> int | None:
    """Return the offset from which on a source has not what was copied before `position`; None where it has it all.

    Args:
        wire: to the source.
        topic: of the source.
        partition: its number.
        position: where a copy would go on.
        read: how far it was read, if that is known; the copy may have got further without us, or not as far.

    Raises:
        Disagreement: the leader does not answer that now, or must not.
        ConnectionLost: no answer.
    """
    leader = topic.partitions[partition]
    # A log never loses anything under one leader: each restart and each election begins an epoch.
    if read is None or leader.epoch in (-1, read.epoch):
        return None
    if differ(read.source_id, topic.topic_id):
        return None
    try:
        end = await wire.epoch_end(leader.node, topic.name, partition, leader.epoch, read.epoch)
    except BrokerError as error:
        raise Disagreement.refused(error, "DESCRIBE", f"topic {topic.name}", "source") from None
    return None if end is None or end >= min(position, read.offset) else end


def truncated(place: Place, end: int, position: int, remedy: str) -> Reason:
    """Return what to say of a source that was truncated.

    Args:
        place: the partition.
        end: where its log ceases to be what was copied.
        position: how far it was copied.
        remedy: what to do, or what was done.
    """
    name = f"{place.topic}/{place.partition}"
    text = (
        f"{position - end:,} offsets of {name} that were copied, {end} to {position - 1}, are not in the source's log "
        "any more, or with other records: its leader changed uncleanly, or lost what it had not written to disk; "
        f"{remedy}"
    )
    return Reason("AB219", text)


async def refuse_truncated(wire: Wire, logs: Logs, read: ReadPosition | None) -> None:
    """Stop where a source was truncated whose copy has the same offsets.

    What the source has written since stands at offsets that the copy has used up.

    Args:
        wire: to the source.
        logs: both sides.
        read: how far the source was read, if that is known.

    Raises:
        Disagreement: it was, or that cannot be told now.
        ConnectionLost: no answer.
    """
    if read is None or differ(read.target_id, logs.target.topic_id):
        # Of a copy that was deleted: another owner may have made the new one of what the source had then.
        return
    place, position = logs.place, logs.end - logs.record.runs.at_target(logs.end).shift
    end = await truncated_at(wire, logs.source, place.partition, position, read)
    if end is not None:
        remedy = (
            f"the copy {place.remote} keeps them and cannot go on with the same offsets: delete the copy and run "
            "`anabranch apply` to copy what the source has now"
        )
        reason = truncated(place, end, position, remedy)
        raise Disagreement(PartitionState.PARKED, reason.code, reason.text)
