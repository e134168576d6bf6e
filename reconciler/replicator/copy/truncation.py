"""Detects truncation of the source: records that were read are no longer in its log, or are other records now.

The rule is the consumer's (KIP-320): a position is kept with the leader epoch of the records before it, and before
reading continues under another leader, OffsetForLeaderEpoch returns where that epoch ends in the new leader's log. An
end below the position shows that an unclean election, or a replica that lost its unflushed pages, removed records that
were read. A leader without that epoch proves nothing. `channel` stores offset and epoch; the takeovers call this.
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
    """Return the offset from which on the source lacks records copied before `position`; None where it has all.

    Args:
        wire: to the source.
        topic: of the source.
        partition: its number.
        position: where the copy would continue.
        read: how far the source was read, if known; the copy may be ahead of or behind that.

    Raises:
        Disagreement: the leader cannot answer that now, or refuses.
        ConnectionLost: no answer.
    """
    leader = topic.partitions[partition]
    # A log loses nothing within one leader epoch: each restart and each election begins another.
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
    """Return the reason for a truncated source.

    Args:
        place: the partition.
        end: offset up to which its log is what was copied.
        position: how far it was copied.
        remedy: what to do, or what was done.
    """
    name = f"{place.topic}/{place.partition}"
    text = (
        f"{position - end:,} offsets of {name} that were copied, {end} to {position - 1}, are no longer in the "
        "source's log, or hold other records: its leader changed uncleanly, or lost records not yet flushed to disk; "
        f"{remedy}"
    )
    return Reason("AB219", text)


async def refuse_truncated(wire: Wire, logs: Logs, read: ReadPosition | None) -> None:
    """Refuse a copy with identical offsets whose source was truncated.

    Records that the source has appended since are at offsets that the copy already uses.

    Args:
        wire: to the source.
        logs: both sides.
        read: how far the source was read, if that is known.

    Raises:
        Disagreement: it was, or that cannot be decided now.
        ConnectionLost: no answer.
    """
    if read is None or differ(read.target_id, logs.target.topic_id):
        # This was read for a copy that was deleted since: another owner may have made the new one from later records.
        return
    place, position = logs.place, logs.end - logs.record.runs.at_target(logs.end).shift
    end = await truncated_at(wire, logs.source, place.partition, position, read)
    if end is not None:
        remedy = (
            f"the copy {place.remote} keeps them and cannot go on with the same offsets: `anabranch recreate --target "
            f"{place.remote}` copies what the source has now"
        )
        reason = truncated(place, end, position, remedy)
        raise Disagreement(PartitionState.PARKED, reason.code, reason.text)
