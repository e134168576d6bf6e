"""Writes checkpoints and heartbeats into a target cluster, as MirrorMaker 2 does, so that its clients read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from reconciler.checkpoints.groups.bounds import ClusterLookup
from reconciler.checkpoints.mirrormaker import reading
from reconciler.checkpoints.mirrormaker.formats import (
    BLANK,
    FLOW_HEADER,
    GROUPS_HEADER,
    TOPOLOGY_HEADER,
    Checkpoint,
    CheckpointKey,
    checkpoint_key,
    checkpoint_value,
    heartbeat_key,
    heartbeat_value,
    newest,
)
from reconciler.checkpoints.mirrormaker.topics import DEFAULT_SEPARATOR, checkpoints_topic
from reconciler.model.declared.cluster import Cluster
from reconciler.model.names.topic_names import HEARTBEATS
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import JournalTopic

# Clients read the whole topic each time: what is superseded must be old enough for compaction soon.
_CHECKPOINTS = {"segment.bytes": str(16 << 20), "segment.ms": "3600000"}
# Flows between the same clusters have the same key: each one's newest must stay until it has written the next.
_HEARTBEATS = {"segment.bytes": str(4 << 20), "segment.ms": "600000", "min.compaction.lag.ms": "3600000"}
_AT_ONCE = 10_000
_TIMEOUT = 10.0

Item = TypeVar("Item")


class CheckpointWriter:
    """Writes the checkpoints of one source cluster's groups; what is there already is not written again.

    Several may write into one topic: `refresh` reads what another process wrote, or a recreated topic.

    Args:
        cluster: the target.
        source: alias of the source.
        separator: of the replication policy, for the topic's name.
        timeout: seconds to wait for the cluster in each call.

    Attributes:
        topic: its name.
    """

    def __init__(
        self, cluster: Cluster, source: str, separator: str = DEFAULT_SEPARATOR, timeout: float = _TIMEOUT
    ) -> None:
        self._cluster = cluster
        self._timeout = timeout
        self.topic = checkpoints_topic(source, separator)
        self._journal = Journal(cluster, JournalTopic(self.topic, _CHECKPOINTS), timeout)
        self._lookup = ClusterLookup(cluster, timeout)
        self._known: dict[CheckpointKey, Checkpoint] | None = None
        # The topic's id, and its end behind what we know.
        self._seen: tuple[str | None, int] | None = None

    def close(self) -> None:
        """Close the connection."""
        self._lookup.close()

    @property
    def known(self) -> Mapping[CheckpointKey, Checkpoint]:
        """What was last read or written; no request is sent."""
        return self._known or {}

    def refresh(self) -> dict[CheckpointKey, Checkpoint]:
        """Make the topic if it is missing, and return its checkpoints; it is read where others have written there.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB311, it cannot be made; AB313, it may not be read.
        """
        made = self._journal.ensure()
        topic = self._lookup.topics([self.topic]).get(self.topic)
        bounds = self._lookup.bounds([(self.topic, 0)]).get((self.topic, 0))
        seen = None if topic is None or bounds is None else (topic.topic_id, bounds.end)
        if self._known is None or seen is None or seen != self._seen:
            # What comes while it is read is read once more.
            self._known = {} if made else newest(reading.records(self._cluster, self.topic, self._timeout))
            self._seen = seen
        return self._known

    def emit(self, checkpoints: Iterable[Checkpoint]) -> int:
        """Write those of some checkpoints that are not in the topic as they are, and wait until they are stored.

        Others in the topic stay.

        Returns:
            How many were written.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB311, the topic cannot be made or written; AB313, it may not be read.
            ValueError: the name of a group is too long for the format.
        """
        known = self.standing()
        changed = [one for key, one in {one.key: one for one in checkpoints}.items() if known.get(key) != one]
        for part in _parts(changed):
            self._store([(checkpoint_key(one.key), checkpoint_value(one)) for one in part])
            known.update((one.key, one) for one in part)
        return len(changed)

    def take_back(self, is_gone: Callable[[CheckpointKey], bool]) -> int:
        """Withdraw the checkpoints of groups or topics that are gone, and wait until that is stored.

        Args:
            is_gone: called for each in the topic.

        Returns:
            How many were withdrawn.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB311, the topic cannot be made or written; AB313, it may not be read.
        """
        known = self.standing()
        gone = [key for key in known if is_gone(key)]
        for part in _parts(gone):
            self._store([(checkpoint_key(key), BLANK) for key in part])
            for key in part:
                del known[key]
        return len(gone)

    def standing(self) -> dict[CheckpointKey, Checkpoint]:
        """Return the topic's checkpoints as far as known; the topic is read where it was not yet.

        Raises:
            AnabranchError: as `refresh`.
        """
        return self.refresh() if self._known is None else self._known

    def _store(self, records: Sequence[tuple[bytes, bytes]]) -> None:
        # After a partial write the topic is read again.
        before, self._seen = self._seen, None
        self._journal.store(records)
        if before is not None:
            topic_id, end = before
            self._seen = topic_id, end + len(records)


class HeartbeatWriter:
    """Writes the heartbeats of one flow.

    Args:
        cluster: whose topic `heartbeats` they are written to, for flows to carry on.
        source: alias of the flow's source.
        target: alias of its target.
        timeout: seconds to wait for the cluster in each call.
        whose: names of its topology and of the flow, to distinguish it from others between the same clusters; several
            topologies may have a flow of this name, as it is made of the aliases by default.
    """

    def __init__(
        self,
        cluster: Cluster,
        source: str,
        target: str,
        timeout: float = _TIMEOUT,
        whose: tuple[str, str] | None = None,
    ) -> None:
        said = () if whose is None else zip((TOPOLOGY_HEADER, FLOW_HEADER), whose, strict=True)
        self._whose = [(name, value.encode()) for name, value in said]
        self._journal = Journal(cluster, JournalTopic(HEARTBEATS, _HEARTBEATS), timeout)
        self._key = heartbeat_key(source, target)
        self._is_there = False

    def beat(self, now: int, groups: int | None = None) -> None:
        """Write one, and wait until it is stored; the topic is made before the first one if it is missing.

        Args:
            now: milliseconds since 1970.
            groups: the number of groups synced.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB311, the topic cannot be made or written.
        """
        if not self._is_there:
            self._journal.ensure()
            self._is_there = True
        count = [] if groups is None else [(GROUPS_HEADER, str(groups).encode())]
        self._journal.store([(self._key, heartbeat_value(now))], [*self._whose, *count])


def _parts(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Yield what is written at once: librdkafka's queue has its limit."""
    for start in range(0, len(items), _AT_ONCE):
        yield items[start : start + _AT_ONCE]
