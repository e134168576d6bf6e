"""Consumer groups that read the topics of a flow: their positions at the target, and groups without one."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence

from reconciler.checkpoints.groups.groups import Groups
from reconciler.checkpoints.service.last_syncs import LastLooks
from reconciler.failover.groups import group_positions
from reconciler.model.base.errors import EnvironmentFault
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.recorded.failover import EVERY, Carried, Crossing, WithoutPlace


class Readers:
    """The groups of the source of one flow.

    Args:
        topology: the declaration.
        flow: one of its flows.
        source: the source; None if it is treated as lost.
        target: the target.
        chosen: names and regular expressions; None means the groups that the flow declares.
    """

    def __init__(
        self, topology: Topology, flow: Flow, source: Groups | None, target: Groups, chosen: Sequence[str] | None
    ) -> None:
        self._topology = topology
        self._flow = flow
        self._source = source
        self._target = target
        self._chosen = chosen
        self._has_checkpoints = True
        self._not_taken: set[str] = set()

    def carried(self, found: Iterable[Crossing]) -> list[Carried]:
        """Return their positions at the target.

        Args:
            found: how far the flow was copied.

        Raises:
            AnabranchError: a cluster does not answer, or something there is refused.
        """
        if self._source is None:
            try:
                carried = group_positions.by_checkpoints(self._topology, self._flow, self._target, self._chosen)
            except EnvironmentFault as error:
                # A failover may move producers alone.
                self._has_checkpoints = not group_positions.without_checkpoints(error)
                if group_positions.without_checkpoints(error) and not group_positions.demanded(self._chosen):
                    return []
                raise
            # There may be checkpoints of other topics.
            self._has_checkpoints = bool(carried)
            return carried
        ways = self._ways(self._source)
        groups = group_positions.groups_that_read(self._source, self._topics(found, ways), self._chosen, self._flow)
        return group_positions.carried(self._topology, self._source, self._target, self._source.committed(groups), ways)

    def without(self, found: Sequence[Crossing], groups: Iterable[Carried]) -> Iterator[WithoutPlace]:
        """Yield the groups that get no position.

        Args:
            found: how far the flow was copied.
            groups: what `carried` returned.

        Raises:
            AnabranchError: a cluster does not answer, or something there is refused.
        """
        target = self._flow.target
        yield from group_positions.without_place(groups, target)
        if self._source is None:
            if not self._has_checkpoints:
                why = f"there are no checkpoints at {target} of the flow's topics, so no group is moved"
                yield WithoutPlace(EVERY, f"{why}: set positions with `anabranch offsets write`")
            return
        ways = self._ways(self._source)
        yield from group_positions.not_moved(self._source, self._topics(found, ways), self._chosen, self._flow)
        behind = self._behind(found, ways)
        for topic, names in group_positions.readers_of(self._source, behind, self._chosen, self._flow).items():
            yield from (WithoutPlace(name, f"reads {topic}, which has no copy at {target}") for name in names)

    def notices(self, found: Sequence[Crossing]) -> Iterator[str]:
        """Yield notices for the user; errors are those of `without`."""
        source, target = self._flow.source, self._flow.target
        if self._source is not None:
            yield f"stop the consumers at {source} first: what they commit later is not taken along"
            behind = self._behind(found, self._ways(self._source))
            for remote in sorted(self._not_taken):
                yield f"the flow takes the original of {remote} no longer: that copy stays as it is, as do its readers"
            for topic in sorted(behind):
                yield f"topic {topic} has no copy at {target}, and stays behind"
            return
        if not self._has_checkpoints:
            return
        yield f"groups go on at their last checkpoints ({self._age()}): records read since then are read again"
        if any((one.source, one.target) == (target, source) for one in self._topology.flows if one.enabled):
            yield f"their positions at {source} in copies of {target}'s topics are unknown: set these by hand"

    def _ways(self, source: Groups) -> group_positions.Paths:
        """Return the paths from the source, without paths to copies of topics that their flow no longer selects."""
        aliases, found = self._topology.aliases, dict[str, list[group_positions.Path]]()
        for topic, some in group_positions.paths(self._topology, source, self._target).items():
            kept = [one for one in some if one.way == "upstream" or one.flow.takes(one.original, aliases)]
            if kept:
                found[topic] = kept
            self._not_taken.update(one.to_topic for one in some if one not in kept and one.flow == self._flow)
        return found

    def _topics(self, found: Iterable[Crossing], ways: group_positions.Paths) -> set[str]:
        """Return the topics of the source whose consumer groups move."""
        copied = group_positions.copied(self._flow, ways, found, self._target.partitions)
        return group_positions.logical(self._flow, self._topology, ways, copied)

    def _behind(self, found: Iterable[Crossing], ways: group_positions.Paths) -> set[str]:
        """Return the originals without a copy."""
        some = list(found)
        return {one.topic for one in some} - group_positions.copied(self._flow, ways, some, self._target.partitions)

    def _age(self) -> str:
        """Return in words how old the newest checkpoints are."""
        looks = LastLooks(self._target.cluster, self._topology.name)
        try:
            last = looks.current().get(self._flow.name)
        finally:
            looks.close()
        return "checkpoint age unknown" if last is None else f"{max(0, time.time() - last.time):.0f} s old"
