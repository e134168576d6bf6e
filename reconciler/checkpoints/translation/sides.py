"""Reads where the logs of originals and copies begin and end, and their topic ids, as of one look at both.

Topics that are missing on one of the sides, or that our user may not read, have no answers; the reason is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from reconciler.checkpoints.groups.bounds import ClusterLookup, Refusals, Topic
from reconciler.model.base.errors import Problem, together
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.offsets.committed import Log, LogBounds

# The bounds for a source that is not available.
_ANY = LogBounds(0, 2**63 - 1, 2**63 - 1)


class LogSides:
    """The log bounds on both sides of one flow.

    Args:
        source: the flow's source cluster; None where it is not available.
        target: its target cluster.
        flow: which one.
        seconds: how long a cluster may take to answer.
        one_by_one: whether a topic that is refused to our user has no answers, instead of ending the look with an
            error.

    Attributes:
        at_source: by original, as the flow reads it: `stable` is where what is copied ends.
        at_target: likewise of the copy, as a `read_committed` consumer has it.
        ids: of both topics, by the original's name; None where brokers have none.
        why_not: why topics have no answers, by the original's name.
        closed: topics that are refused to our user, by the original's name.
    """

    def __init__(
        self, source: Cluster | None, target: Cluster, flow: Flow, seconds: float, *, one_by_one: bool = False
    ) -> None:
        self.at_source: dict[Log, LogBounds] = {}
        self.at_target: dict[Log, LogBounds] = {}
        self.ids: dict[str, tuple[str | None, str | None]] = {}
        self.why_not: dict[str, str] = {}
        self.closed: dict[str, Problem] = {}
        self._flow = flow
        self._reads_committed = flow.isolation_level == "read_committed"
        self._source = None if source is None else ClusterLookup(source, seconds)
        self._target = ClusterLookup(target, seconds)
        self._one_by_one = one_by_one

    def close(self) -> None:
        """Close the connections."""
        self._target.close()
        if self._source is not None:
            self._source.close()

    def look(self, logs: Collection[Log]) -> set[Log]:
        """Read the bounds of partitions, by their originals' names; return those whose topics exist on both sides.

        Raises:
            Unreachable: AB310, a cluster does not answer.
            EnvironmentFault: AB313, with the topics that are refused, unless those are left out one by one; or what
                `clients.make` raises.
        """
        here: Refusals = {}
        there: Refusals = {}
        counts = self._look_for({topic for topic, _ in logs}, here, there)
        wanted = {log for log in logs if log[0] in counts and log[1] < counts[log[0]]}
        for log in logs:
            self.at_source.pop(log, None)
            self.at_target.pop(log, None)
        remotes = {self._remote(log): log for log in wanted}
        # The syncs that are read later cover all that is at the target before this.
        self.at_target |= {remotes[one]: bounds for one, bounds in self._target.bounds(remotes, there).items()}
        originals = dict.fromkeys(wanted, _ANY) if self._source is None else self._source.bounds(wanted, here)
        self.at_source |= {log: one.read(committed=self._reads_committed) for log, one in originals.items()}
        self._leave_out({topic for topic, _ in logs}, here, there)
        return {log for log in wanted if log[0] not in self.closed}

    def _leave_out(self, topics: Collection[str], here: Refusals, there: Refusals) -> None:
        refusals = [*here.values(), *there.values()]
        if refusals and not self._one_by_one:
            raise together(refusals)
        for topic in topics:
            refusal = here.get(topic) or there.get(self._flow.remote_topic(topic))
            if refusal is None:
                self.closed.pop(topic, None)
                continue
            (self.closed[topic],) = refusal.problems
            self.why_not[topic] = self.closed[topic].message

    def _look_for(self, topics: Collection[str], here: Refusals, there: Refusals) -> dict[str, int]:
        """Return the partition counts of topics that exist on both sides; note why others have no answers."""
        remotes = {topic: self._flow.remote_topic(topic) for topic in topics}
        copies = self._target.topics(set(remotes.values()), there)
        originals = (
            {topic: Topic(None, copies[remote].partitions) for topic, remote in remotes.items() if remote in copies}
            if self._source is None
            else self._source.topics(topics, here)
        )
        found: dict[str, int] = {}
        for topic, remote in remotes.items():
            self.why_not.pop(topic, None)
            if remote not in copies:
                self.why_not[topic] = f"there is no topic {remote} at {self._flow.target}"
            elif topic not in originals:
                self.why_not[topic] = f"there is no topic {topic} at {self._flow.source}"
            else:
                self.ids[topic] = originals[topic].topic_id, copies[remote].topic_id
                found[topic] = min(originals[topic].partitions, copies[remote].partitions)
        return found

    def lost(self, known: Mapping[Log, int]) -> dict[Log, int]:
        """Return where copies end that hold less than their offset syncs cover, by original.

        Args:
            known: the least end of each copy by its syncs, by original, as read before this look.

        Raises:
            AnabranchError: as `look`.
        """
        more = {log: end for log, end in known.items() if log in self.at_target and end > self.at_target[log].end}
        # Usually the records came since the look; a second look finds them.
        remotes = {self._remote(log): log for log in more}
        ends = {remotes[one]: bounds.end for one, bounds in self._target.bounds(remotes).items()}
        return {log: end for log, end in ends.items() if end < more[log]}

    def _remote(self, log: Log) -> Log:
        return self._flow.remote_topic(log[0]), log[1]
