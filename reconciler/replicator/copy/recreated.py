"""Which topic an original is, judged for the topic: a new partition of one that was made anew is no new partition.

`identical` asks before it opens anything. What is remembered of any partition of the copy tells of which topic it holds
records: partitions that nothing is remembered of, as the topic made anew has more than the former one, and those whose
copies are empty, go by that. A position that `offsets write` has put into the new topic's log counts for its partition.
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
    """Yield the partitions of the copy of which is remembered that they are of another original than today's.

    Where the partition itself is remembered as of today's, there are none: it was decided to go on with that.

    Args:
        memory: as it was read last.
        place: one partition of the copy.
        source: the original as it is today.
        target: the remote topic as it is today; what was remembered of a former one of its name does not count.
    """
    source_id, target_id = topic_id(source), topic_id(target)
    found: list[int] = []
    # Another thread may note more meanwhile.
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
    """Refuse to open a partition of a topic made anew while any partition of its copy holds records of the former one.

    Nothing is asked but where something is remembered of another topic. A partition whose position is one of the new
    topic is opened: that was written, as nothing copies there by itself.

    Args:
        flow: what is declared of topics made anew.
        memory: of the flow's copies, as it was read last.
        wire: to the target.
        place: the partition.
        topics: the original and the remote topic as they are today.
        is_decided: tells whether the partition's position is one of the new topic; None where copies have none.

    Raises:
        Disagreement: AB218, or AB213 where we may not look.
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
        # A copy that never held anything cannot hold two topics at once.
        if end > 0:
            if is_decided is not None and await is_decided():
                return
            raise Disagreement.of(reasons.made_anew(place))
