"""Positions of a complete transaction that stay unstable, because its marker is missing in `__consumer_offsets`.

Kafka 4.3.0 and 4.3.1 leave a marker out while its partition has no leader (KAFKA-20734). In `__consumer_offsets` this
means that OffsetFetch answers UNSTABLE_OFFSET_COMMIT for ever, and that the marker of the producer's next transaction
would apply to both. So the missing marker is written before the next transaction begins.

The offset syncs show whether that transaction was committed: they are in the same transaction, in another topic, and
the last one of each partition holds the position that was committed with it (`position_recovery`).
"""

from __future__ import annotations

from collections.abc import Callable

from reconciler.model.tasks.status import PartitionState
from reconciler.replicator.commit.hanging_transactions import write_missing
from reconciler.replicator.commit.position_recovery import PositionRecovery, PositionUnknown
from reconciler.replicator.copy.agreement import Disagreement
from reconciler.replicator.copy.producer_names import ProducerNames
from reconciler.replicator.partition import reasons
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from reconciler.wire import BrokerError, ErrorCode, Membership, ProducerState, Wire
from reconciler.wire.requests import commits
from reconciler.wire.requests.transactions import Markers, ended_of

_POSITIONS = "__consumer_offsets"
_OPENING, _PARKED = PartitionState.OPENING, PartitionState.PARKED
_TO_ALLOW = f"allow READ on topic {_POSITIONS} and ALTER on the target cluster, and it is written"


async def end_positions(
    wire: Wire, recovery: PositionRecovery, who: Membership, mine: str, remote_topic: Callable[[str], str]
) -> bool:
    """Write missing markers of positions.

    Args:
        wire: to the target.
        recovery: positions that offset syncs hold.
        who: a member of the group whose positions they are.
        mine: a transactional id of the flow.
        remote_topic: returns the name of an original's copy by the flow.

    Returns:
        Whether any was written.

    Raises:
        Disagreement: it cannot be decided whether one is missing or of which type, or writing it is not allowed.
        ConnectionLost: no answer.
        BrokerError: refused.
    """
    number = await _partition(wire, who.group)
    missing = await _missing(wire, who, mine, number)
    for one, name in missing:
        committed = await _was_committed(wire, recovery, who, name, remote_topic)
        verb = "committed" if committed else "aborted"
        text = (
            f"the transaction of {name} was {verb}, and its marker is missing in {_POSITIONS}/{number} (KAFKA-20734), "
            f"so that positions of group {who.group} are held back: {_TO_ALLOW}"
        )
        await write_missing(wire, who.node, _marker(number, one, committed), text)
    return bool(missing)


def partition_of(group: str, partitions: int) -> int:
    """Return the partition of `__consumer_offsets` that holds a group's positions.

    As `GroupCoordinatorService.partitionFor`: Java's hash of the name, its absolute value, modulo.
    """
    value = 0
    # Java's strings are UTF-16.
    encoded = group.encode("utf-16-be", "surrogatepass")
    for high, low in zip(encoded[::2], encoded[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    signed = value - 2**32 if value >= 2**31 else value
    return (0 if signed == -(2**31) else abs(signed)) % partitions


async def _partition(wire: Wire, group: str) -> int:
    info = (await wire.topics([_POSITIONS]))[_POSITIONS]
    if info.error or not info.partitions:
        raise _cannot_tell(group)
    return partition_of(group, len(info.partitions))


async def _missing(wire: Wire, who: Membership, mine: str, number: int) -> list[tuple[ProducerState, str]]:
    """Return the flow's producers, with ids, whose transaction is complete and open in the positions' log.

    A coordinator reports a transaction as complete when its markers are written. One that is open before and after that
    report is the same transaction, and its marker is missing.
    """
    before = await _open(wire, who, number)
    names = await ended_of(wire, before)
    after = await _open(wire, who, number) if names else {}
    return [
        (one, name)
        for producer_id, name in names.items()
        if ProducerNames.is_one_flow(name, mine) and (one := after.get(producer_id)) == before[producer_id]
    ]


async def _open(wire: Wire, who: Membership, number: int) -> dict[int, ProducerState]:
    try:
        # The group's coordinator is the leader of that partition.
        found = await wire.producers(who.node, _POSITIONS, number)
    except BrokerError as error:
        if error.code == ErrorCode.UNSUPPORTED_VERSION:
            # Brokers before 2.8 lack DescribeProducers; they leave no marker out.
            return {}
        if reasons.why_refused(error, "READ", f"topic {_POSITIONS}")[0] is _PARKED:
            raise _cannot_tell(who.group) from None
        raise
    return {one.producer_id: one for one in found if one.open_transaction}


async def _was_committed(
    wire: Wire, recovery: PositionRecovery, who: Membership, name: str, remote_topic: Callable[[str], str]
) -> bool:
    """Return whether the transaction was committed: then syncs are ahead of the stable positions.

    Positions that moved over offsets without records have no sync, and losing them loses nothing. The syncs are read
    first, so that the positions are the newer of the two.
    """
    try:
        told = await recovery.committed_by(name)
    except PositionUnknown as error:
        text = f"positions of group {who.group} are held back by a transaction whose end is not known: {error}"
        raise Disagreement(_OPENING, "AB220", text) from None
    last = {
        (remote_topic(topic), partition): OffsetMetadata.parse(one.note) for (topic, partition), one in told.items()
    }
    stable = await commits.positions(wire, who, last, stable=False)
    return any(
        log not in stable or _is_newer(note, OffsetMetadata.parse(stable[log].note)) for log, note in last.items()
    )


def _is_newer(told: OffsetMetadata, at: OffsetMetadata) -> bool:
    """Return whether a sync's position was committed after another one, in the same remote topic."""
    return told.target_id == at.target_id and told.began > at.began


def _marker(number: int, found: ProducerState, committed: bool) -> Markers:
    epoch = max(0, found.coordinator_epoch)
    return Markers(_POSITIONS, number, found.producer_id, found.epoch, epoch, count=1, committed=committed)


def _cannot_tell(group: str) -> Disagreement:
    text = (
        f"a transaction that holds positions of group {group} is not ended yet; where that lasts, its marker is "
        f"missing (KAFKA-20734): {_TO_ALLOW}"
    )
    return Disagreement(_OPENING, "AB220", text)
