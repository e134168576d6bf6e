"""Detects recreated source topics for the topic as a whole: partitions of a recreated topic are not new partitions.

The takeovers call it before they open a channel. The record of any partition of the copy holds the id of the source
topic; it counts also for partitions without a record (the recreated topic may have more) and for those whose copies are
empty. A position that `offsets write` has set for the new topic counts for its partition.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

from reconciler.model.declared.flow import Flow
from reconciler.model.tasks.status import PartitionState
from reconciler.replicator.copy.agreement import Disagreement
from reconciler.replicator.copy.copy_records import CopyRecords
from reconciler.replicator.partition import reasons
from reconciler.replicator.partition.place import differ, topic_id
from reconciler.replicator.partition.shares import Place
from reconciler.wire import LATEST, BrokerError, TopicInfo, Wire


def other_partitions(memory: CopyRecords, place: Place, source: TopicInfo, target: TopicInfo) -> Iterator[int]:
    """Yield the partitions of the copy whose records name another source topic than the present one.

    Yields none where the record of `place` itself names the present topic: the flow already continues with that.

    Args:
        memory: the copy records, as read last.
        place: one partition of the copy.
        source: the present source topic.
        target: the present remote topic; records of a former one of its name do not count.
    """
    source_id, target_id = topic_id(source), topic_id(target)
    found: list[int] = []
    # Another thread may add records meanwhile.
    for (original, remote), partitions in list(memory.ids(place).items()):
        if differ(remote, target_id):
            continue
        if original == source_id and place.partition in partitions:
            return
        if differ(original, source_id):
            found += partitions
    yield from sorted(found)


async def refuse_made_anew(
    flow: Flow,
    memory: CopyRecords,
    wire: Wire,
    place: Place,
    topics: tuple[TopicInfo, TopicInfo],
    is_decided: Callable[[], Awaitable[bool]] | None = None,
) -> None:
    """Refuse to open a partition of a recreated topic while any partition of its copy holds records of the former one.

    Sends requests only where a record names another topic. A partition with a committed position of the new topic is
    opened: an operator wrote that position, because nothing copies there by itself.

    Args:
        flow: its `on-recreate` decides.
        memory: the flow's copy records, as read last.
        wire: to the target.
        place: the partition.
        topics: the present source and remote topics.
        is_decided: returns whether the partition's position is of the new topic; None where copies have none.

    Raises:
        Disagreement: AB218, or AB213 without the permission to read the copy's log end.
        ConnectionLost: no answer.
    """
    if flow.on_recreate != "park":
        return
    target = topics[1]
    for number in other_partitions(memory, place, *topics):
        leader = target.partitions.get(number)
        if leader is None:
            continue
        if leader.error or leader.node < 0:
            text = f"partition {number} of topic {place.remote} has no leader at the target"
            raise Disagreement(PartitionState.OPENING, "AB220", text)
        try:
            end = await wire.offset(leader.node, place.remote, number, LATEST)
        except BrokerError as error:
            raise Disagreement.refused(error, "DESCRIBE", f"topic {place.remote}") from None
        # A copy that never held a record cannot mix two topics.
        if end > 0:
            if is_decided is not None and await is_decided():
                return
            raise Disagreement.of(reasons.made_anew(place))
