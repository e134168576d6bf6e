"""Reads all offset syncs of a topic: pairs of offsets of one record on both sides."""

from __future__ import annotations

from collections import defaultdict

from reconciler.records.batch import UnreadableBatch
from reconciler.records.read_committed import Gap, sift
from reconciler.records.split import split
from reconciler.replicator.copy.log_reading import read
from reconciler.replicator.partition import offset_syncs
from reconciler.replicator.transfer.pace import Quota
from reconciler.verify.patience import room
from reconciler.wire import EARLIEST, BrokerError, ErrorCode, Loop, Wire, stable_ends

# This many of a partition are enough to find one near any offset.
_MOST = 1_000


async def known_syncs(
    loop: Loop, wire: Wire, topic: str, quota: Quota
) -> dict[tuple[str, int], tuple[tuple[int, int], ...]]:
    """Return, by original topic and partition, source and target offsets of some records, in the order of the log.

    Empty if the topic does not exist or has no leader, as syncs only help to find a beginning.

    Args:
        loop: to sleep on.
        wire: to the target.
        topic: of the offset syncs.
        quota: bytes per second that may be read.

    Raises:
        ConnectionLost: no answer.
        BrokerError: the broker refuses, such as for a missing READ.
    """
    info = (await wire.topics([topic]))[topic]
    if info.error == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        raise BrokerError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    leader = info.partitions.get(0)
    if info.error or leader is None or leader.error:
        return {}
    end = (await stable_ends(wire, leader.node, [(topic, 0)])).get((topic, 0), 0)
    at = await wire.offset(leader.node, topic, 0, EARLIEST)
    found: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    while at < end:
        await room(loop, quota)
        answer = await read(wire, info, 0, at, committed=True, wait_ms=0)
        quota.spend(len(answer.records))
        before = at
        try:
            for item in sift(split(answer.records), before, answer.aborted):
                at = item.next if isinstance(item, Gap) else item.next_offset
                for sync in () if isinstance(item, Gap) else offset_syncs.read_batch(item):
                    pairs = found[sync.topic, sync.partition]
                    pairs.append((sync.source, sync.target))
                    if len(pairs) > 2 * _MOST:
                        del pairs[1::2]
        except (UnreadableBatch, ValueError):
            break
        if at == before:
            break
    return {place: tuple(pairs) for place, pairs in found.items()}
