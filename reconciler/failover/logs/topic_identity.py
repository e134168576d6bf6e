"""Checks by topic id that the topics of a flow are still those that were copied, and finds topics named like copies."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from reconciler.checkpoints.groups.groups import Groups
from reconciler.model.declared.flow import Flow
from reconciler.model.names.selection import is_reserved
from reconciler.model.names.topic_names import is_heartbeats
from reconciler.model.recorded.failover import Cut
from reconciler.replicator.partition.place import differ
from reconciler.state.copies import Copies

_MOST_NAMED = 5


class TopicIdentity:
    """Compares the ids of the topics of one flow with recorded ones.

    Args:
        topology: name of the topology.
        flow: the flow that is failed over.
        source: the source.
        target: the target.
    """

    def __init__(self, topology: str, flow: Flow, source: Groups, target: Groups) -> None:
        self._topology = topology
        self._flow = flow
        self._source = source
        self._target = target

    def checked(self, cuts: Mapping[str, Cut]) -> tuple[dict[str, Cut], set[str], list[str]]:
        """Return the cuts of copies that are still the same topics, the originals that are not, and notices.

        An original that was made again and is empty gets its whole copy back. One that holds records has nothing in
        common with its copy: its cut is at offset 0.

        Raises:
            AnabranchError: a cluster does not answer, or something there is refused.
        """
        # The others are being copied back into, or being rebuilt.
        asked = {topic: cut for topic, cut in cuts.items() if not (cut.is_handed or cut.anew)}
        here, there = self._source.ids(asked), self._target.ids(cut.remote for cut in asked.values())
        found, others, notes = dict(cuts), set[str](), list[str]()
        for topic, (source_id, target_id) in sorted(self._copied(asked).items()):
            cut = asked[topic]
            if differ(target_id, there.get(cut.remote)):
                del found[topic]
                what = f"topic {cut.remote} was deleted at {self._flow.target} and made again by another client"
                notes.append(f"{what}: it is not copied back")
            elif differ(source_id, here.get(topic)):
                what = f"topic {topic} was deleted at {self._flow.source} and made again"
                if self._is_empty(topic):
                    found[topic] = replace(cut, anew="made")
                    notes.append(f"{what}, and is empty: {cut.remote} is copied back as a whole")
                else:
                    others.add(topic)
                    found[topic] = replace(cut, ends=tuple((0, end) for _, end in cut.ends))
                    notes.append(f"{what}: its records were never copied")
        return found, others, notes

    def _copied(self, cuts: Mapping[str, Cut]) -> dict[str, tuple[str | None, str | None]]:
        """Return the recorded ids of originals and of copies, by original; None if unknown."""
        if not cuts:
            return {}
        copies = Copies(self._target.cluster, self._topology)
        try:
            copies.refresh()
            records = {
                topic: [copies.get(self._flow.name, cut.remote, number) for number in range(len(cut.ends))]
                for topic, cut in cuts.items()
            }
        finally:
            copies.close()
        return {
            topic: (
                next((one.source_id for one in some if one is not None and one.source_id), None),
                next((one.target_id for one in some if one is not None and one.target_id), None),
            )
            for topic, some in records.items()
        }

    def _is_empty(self, topic: str) -> bool:
        logs = {(topic, number) for number in range(self._source.partitions.get(topic, 0))}
        bounds = self._source.bounds(logs)
        # A partition without a leader may hold records.
        return bounds.keys() == logs and all(one.end == 0 for one in bounds.values())


def lookalikes(flow: Flow, aliases: Collection[str], names: Iterable[str], ours: Collection[str]) -> list[str]:
    """Return a notice about topics at a target that are named like copies of a flow, but are not copies; empty if none.

    Args:
        flow: the flow.
        aliases: the clusters of the topology.
        names: of all topics at the target.
        ours: names of the copies of any flow.
    """
    found = sorted(name for name in names if name not in ours and _would_be_copy(flow, aliases, name))
    if not found:
        return []
    more = f" and {len(found) - _MOST_NAMED:,} more" if len(found) > _MOST_NAMED else ""
    listed = ", ".join(found[:_MOST_NAMED]) + more
    return [f"named like copies of this flow, but not copies of any: they stay at {flow.target} unchanged: {listed}"]


def _would_be_copy(flow: Flow, aliases: Collection[str], name: str) -> bool:
    if is_reserved(name) or is_heartbeats(name, flow.policy.separator) or name == flow.dlq:
        return False
    original = flow.policy.original(flow.source, name)
    return original is not None and flow.takes(original, aliases)
