"""Originals that were deleted and made again since the last apply, and what becomes of their copies.

Pure. An original is identified by its topic id: the one on record is that of which the copy holds records. Under
`on-recreate: park` such a copy stays as it is, and on record as what it is a copy of, until it is decided otherwise.
"""

from __future__ import annotations

from reconciler.model.declared.flow import Flow
from reconciler.model.planning.desired import DesiredTopic
from reconciler.model.planning.observed import ObservedCluster, ObservedTopic
from reconciler.model.recorded.ownership import OwnedTopic
from reconciler.plan.copies.identity import has_id, is_same


def made_anew_since(flow: Flow, original: ObservedTopic, target: ObservedCluster) -> OwnedTopic | None:
    """Return what is on record of a copy whose original is another topic today; None where it is the same.

    Args:
        flow: which takes the original.
        original: as it is today.
        target: where the copy is.
    """
    remote = flow.remote_topic(original.name)
    record, found = target.owned.get(remote), target.topics.get(remote)
    if record is None or found is None or record.topic_id != found.topic_id:
        return None
    if (record.source, record.source_topic) != (flow.source, original.name):
        return None
    ids = record.source_topic_id, original.topic_id
    # Of an original that the same apply has made, nothing is on record yet.
    return record if all(map(has_id, ids)) and not is_same(*ids) else None


def kept_as_it_is(flow: Flow, original: ObservedTopic, target: ObservedCluster) -> OwnedTopic | None:
    """Return what is on record of a copy that nothing is done with, as its original was made anew; None elsewhere.

    A copy that never held anything cannot hold two topics at once: it goes on with the new one.
    """
    if flow.on_recreate != "park" or (record := made_anew_since(flow, original, target)) is None:
        return None
    copy = target.topics[record.name]
    ends = [copy.bounds(number) for number in range(copy.partitions)]
    return None if all(one is not None and one[1] == 0 for one in ends) else record


def is_to_be_recorded(topic: DesiredTopic, record: OwnedTopic) -> bool:
    """Return whether a copy goes on with an original that was made anew, and the former one is on record.

    Of a copy that is kept as it is, the former one stays on record.
    """
    ids = record.source_topic_id, topic.source_topic_id
    same = (record.source, record.source_topic) == (topic.source, topic.source_topic)
    return same and all(map(has_id, ids)) and not is_same(*ids)


def why_kept(flow: Flow, original: ObservedTopic) -> str:
    """Return the notice of an original whose copy is kept as it is."""
    return (
        f"{flow.source}'s {original.name} was made anew since the last apply: its copy stays as it is, with the old "
        "records, and nothing of the new topic is copied (on-recreate: park); `anabranch recreate --target "
        f"{flow.remote_topic(original.name)}` begins the copy anew, and `on-recreate: restart` has the new records "
        "behind the old ones"
    )


def why_gone_on_with(flow: Flow, original: ObservedTopic) -> str:
    """Return the notice of an original whose copy goes on with the new one."""
    return f"{flow.source}'s {original.name} was made anew since the last apply: its copy goes on with the new records"
