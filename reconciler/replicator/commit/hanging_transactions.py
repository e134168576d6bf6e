"""Hanging transactions: transactions that are complete, but open in a partition because their marker is missing there.

Kafka 4.3.0 and 4.3.1 leave a marker out while its partition has no leader (KAFKA-20734). Consumers with read_committed
then wait for ever, and the marker of the producer's next transaction would apply to both: records that were aborted,
and are written again, would count as well. So `translated` writes the marker before a channel continues.

Other transactions are really open, left by owners that died. `translated` aborts them first.
"""

from __future__ import annotations

from reconciler.model.tasks.status import PartitionState
from reconciler.replicator.copy.agreement import Disagreement
from reconciler.replicator.copy.producer_names import ProducerNames
from reconciler.replicator.partition import reasons
from reconciler.replicator.partition.shares import Place
from reconciler.wire import BrokerError, ErrorCode, ProducerState, TopicInfo, Wire
from reconciler.wire.requests.transactions import Markers, names_of, settle, write_markers


async def unended(wire: Wire, place: Place, target: TopicInfo, producer_ids: frozenset[int]) -> list[ProducerState]:
    """Return the producers of ours that seem to have a transaction open in a remote partition.

    Raises:
        Disagreement: the principal may not read the partition's producers.
        ConnectionLost: no answer.
    """
    return [one for one in await _open(wire, place, target) if one.producer_id in producer_ids]


async def fence_the_dead(
    wire: Wire, place: Place, target: TopicInfo, mine: str, producer_id: int
) -> list[tuple[int, int]]:
    """Abort transactions that former owners left open in a remote partition, also where no position names them.

    An owner that dies before it commits a position of the partition is named only in the log. Until its transaction
    times out, consumers with read_committed would wait, and the next owner, too, if the transaction holds a position.

    Args:
        wire: to the target.
        place: the partition, which this task owns now.
        target: its topic.
        mine: our own transactional id.
        producer_id: of our own producer.

    Returns:
        The fenced producers, with their current epochs.

    Raises:
        Disagreement: the principal may not read the partition's producers.
        ConnectionLost: no answer.
        BrokerError: refused, or the markers are not written yet.
    """
    others = {one.producer_id for one in await _open(wire, place, target)} - {producer_id}
    if not others:
        return []
    names = await names_of(wire, others)
    # Transactions of other flows and of other programs are left alone.
    fenced = [
        await settle(wire, name) for name in names.values() if name != mine and ProducerNames.is_one_flow(name, mine)
    ]
    return [(one.producer_id, one.epoch) for one in fenced]


async def _open(wire: Wire, place: Place, target: TopicInfo) -> list[ProducerState]:
    leader = target.partitions[place.partition]
    try:
        producers = await wire.producers(leader.node, place.remote, place.partition)
    except BrokerError as error:
        if error.code == ErrorCode.UNSUPPORTED_VERSION:
            # Brokers before 2.8 lack DescribeProducers; they leave no marker out.
            return []
        # DescribeProducers needs READ (KIP-664).
        raise Disagreement.refused(error, "READ", f"topic {place.remote}") from None
    return [one for one in producers if one.open_transaction]


async def end(wire: Wire, place: Place, target: TopicInfo, found: ProducerState, committed: bool) -> None:
    """Write the missing marker of a hanging transaction.

    Args:
        wire: to the target.
        place: the partition.
        target: its topic.
        found: the producer; its coordinator has ended the transaction, and has no more markers to write.
        committed: whether the transaction was committed.

    Raises:
        Disagreement: the principal may not write it.
        ConnectionLost: no answer.
    """
    markers = Markers(
        place.remote,
        place.partition,
        found.producer_id,
        found.epoch,
        max(0, found.coordinator_epoch),
        count=1,
        committed=committed,
    )
    verb = "committed" if committed else "aborted"
    text = (
        f"the transaction at offset {found.opened_at:,} of {place.remote}/{place.partition} was {verb}, and its marker "
        "is missing (KAFKA-20734): consumers with read_committed cannot read beyond it; allow ALTER on the target "
        "cluster, and it is written"
    )
    await write_missing(wire, target.partitions[place.partition].node, markers, text)


async def write_missing(wire: Wire, node: int, markers: Markers, text: str) -> None:
    """Write a missing marker at the leader of its partition.

    Args:
        wire: to the target.
        node: the leader.
        markers: what to write.
        text: the reason to raise where it is not allowed.

    Raises:
        Disagreement: AB228, the principal may not write it.
        ConnectionLost: no answer.
        BrokerError: refused for another reason.
    """
    try:
        await write_markers(wire, node, markers)
    except BrokerError as error:
        if reasons.why_refused(error, "ALTER", "the cluster")[0] is not PartitionState.PARKED:
            raise
        raise Disagreement(PartitionState.PARKED, "AB228", text) from None
