"""The positions of one flow: where each of its copies goes on, read from the target, and moved while nothing runs.

With identical offsets a position is the remote log's end and nothing else, so there is none to be written. With
translated offsets it is committed in the flow's group at the target, for the remote partition, with metadata (`Note`)
that the replicator reads when it continues: a position that is moved keeps the note's producers and topics. While a
flow is failed over, other producers write to its copies: with identical offsets the cuts alone hold its position then,
and with translated ones where the group's offset has expired.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.checkpoints.groups.groups import Groups
from reconciler.model.base.errors import Problem
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.own_names import lease_group
from reconciler.model.offsets.committed import Committed, Log, LogBounds, Move, Position
from reconciler.model.offsets.runs import CopyRecord
from reconciler.model.recorded.failover import Cut
from reconciler.model.recorded.ownership import copies_of, kafka_id
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from reconciler.replicator.partition.place import differ
from reconciler.state.copies import Copies
from reconciler.state.failovers import failed_over
from reconciler.state.ownership import Ownership
from reconciler.state.running import copying

TRANSLATED = "translated"


@dataclass(frozen=True)
class _Seen:
    """The state of a flow's copies, by remote partition or original one."""

    committed: Mapping[Log, Committed]
    ends: Mapping[Log, LogBounds]
    bounds: Mapping[Log, LogBounds]
    shifts: Mapping[Log, int]
    cuts: Mapping[Log, Cut]


class Positions:
    """The positions of a flow.

    Args:
        topology: the declaration.
        flow: one of its flows.
        source_lost: whether the source is not read: then the bounds of its logs are unknown.

    Attributes:
        flow: the flow.
        target: groups and logs of its target.
        copies: what is on record of its remote topics, by original.
        cut: the state of the flow, where it is failed over and its copies are cut; else None.

    Raises:
        Unreachable: AB310, a cluster does not answer.
        EnvironmentFault: AB311, reading is refused; or what `clients.ask` raises.
        Refused: AB423, it is another cluster than the declared one.
    """

    def __init__(self, topology: Topology, flow: Flow, *, source_lost: bool = False) -> None:
        self.flow = flow
        self._topology = topology.name
        self._source = None if source_lost else Groups(topology.clusters[flow.source])
        self.target = Groups(topology.clusters[flow.target])
        journal = Ownership(self.target.cluster, topology.name).read_all()
        state = failed_over(topology.name, journal.others).get(flow.name)
        self.cut = state if state is not None and state.cuts else None
        self.copies = copies_of(journal.topics.values(), topology.name, flow, heartbeats=True)

    @property
    def source(self) -> Groups:
        """The groups and logs of the source, which must not be lost."""
        assert self._source is not None, "it is lost"
        return self._source

    @property
    def group(self) -> str:
        """The group in which positions with translated offsets are committed."""
        return lease_group(self._topology, self.flow.name)

    def partitions(self, topic: str) -> int:
        """Return how many partitions the copy of a topic has; 0 where there is none."""
        copy = self.copies.get(topic)
        return self.target.partitions.get(copy.name, 0) if copy else 0

    def read(self) -> list[Position]:
        """Return the positions of all copies that were made, by original topic and partition.

        Raises:
            EnvironmentFault: AB313, DESCRIBE is refused on the group or a topic; AB311, on a journal.
            Unreachable: AB310, no answer.
        """
        logs = {
            (topic, number): (copy.name, number)
            for topic, copy in sorted(self.copies.items())
            for number in range(self.partitions(topic))
        }
        identical = [there for (topic, _), there in logs.items() if self.copies[topic].offsets != TRANSLATED]
        translated = len(identical) < len(logs)
        committed = self.target.committed([self.group]) if translated else ()
        seen = _Seen(
            committed={(one.topic, one.partition): one for one in committed},
            ends=self.target.bounds(identical),
            bounds={} if self._source is None else self._source.bounds(logs),
            shifts=self._shifts(identical),
            cuts=self._cuts(logs),
        )
        return [self._position(here, there, seen) for here, there in logs.items()]

    def _position(self, here: Log, there: Log, seen: _Seen) -> Position:
        mode = self.copies[here[0]].offsets
        offset, note = None, ""
        if mode == TRANSLATED and there in seen.committed:
            offset, note = seen.committed[there].offset, seen.committed[there].metadata
        elif there in seen.cuts:
            offset = seen.cuts[there].at(there[1])[0]
            note = seen.cuts[there].note(there[1]) if mode == TRANSLATED and offset is not None else ""
        elif mode != TRANSLATED and self.cut is None and there in seen.ends:
            offset = seen.ends[there].end - seen.shifts.get(there, 0)
        return Position(self.flow.name, *here, offset, note, there[0], mode, seen.bounds.get(here))

    def _cuts(self, logs: Mapping[Log, Log]) -> dict[Log, Cut]:
        """Return where copies are cut, by remote partition."""
        cuts = {} if self.cut is None else self.cut.cuts
        known = {there: cuts[topic] for (topic, _), there in logs.items() if topic in cuts}
        ids = self.target.ids({name for name, _ in known}) if known else {}
        return {
            there: cut
            for there, cut in known.items()
            # The cut does not apply to another topic of this name.
            if cut.remote == there[0]
            and not differ(OffsetMetadata.parse(cut.note(there[1])).target_id, ids.get(there[0]))
        }

    def _shifts(self, logs: Sequence[Log]) -> dict[Log, int]:
        """Return by how much the ends of remote logs are above their originals' offsets."""
        if not logs:
            return {}
        copies = Copies(self.target.cluster, self._topology)
        try:
            copies.refresh()
            records: dict[Log, CopyRecord | None] = {log: copies.get(self.flow.name, *log) for log in logs}
        finally:
            copies.close()
        return {log: record.runs.shift for log, record in records.items() if record is not None}

    # --- moving them -------------------------------------------------------------------------------------------------

    def running(self) -> Problem | None:
        """Return why no position may be moved now: the flow runs; None where it does not.

        Raises:
            Unreachable: AB310, the target does not answer.
            EnvironmentFault: AB311, reading is refused, so that it is unknown.
        """
        words = copying(self.target.cluster, self._topology, self.flow.name)
        if not words:
            return None
        return self._runs(f"run {words[0].run} copies it (digest {words[0].digest or 'unknown'})")

    def identical(self, topic: str, where: str) -> Problem:
        """Return the problem that a copy's position cannot be written."""
        name = self.copies[topic].name
        message = (
            f"copy {name} has identical offsets: its position is the end of its log at {self.flow.target}, and "
            "nothing but records moves it"
        )
        return Problem("AB627", where, message, f"to have it begin anew: `anabranch recreate --target {name}`")

    def moved(self, before: Position, after: int, source_id: str | None) -> str:
        """Return the note to be committed with a position that is moved.

        Args:
            before: the current position.
            after: the new offset.
            source_id: id of today's original, in whose log the offset is.
        """
        note = OffsetMetadata.parse(before.metadata) if before.metadata else OffsetMetadata()
        if differ(note.source_id, source_id):
            # Nothing of the former topic's note holds any more, except the transaction that is to be ended.
            return str(note._replace(source_id=source_id, epoch=None, anew_from=0))
        # The leader epoch of the record before another offset is not known.
        return str(note if before.offset == after else note._replace(epoch=None))

    def write(self, moves: Sequence[Move]) -> dict[Move, Problem]:
        """Commit positions; return what failed by move. A running flow has members, which alone may commit.

        A copy whose original was recreated is recorded as one of the new topic then: plans continue with it.

        Raises:
            Unreachable: AB310, no answer to what is recorded. What was committed stays; written again, it is recorded.
            EnvironmentFault: AB311, recording is refused.
        """
        problems = self.target.commit({self.group: moves}, lambda move: (self.copies[move.topic].name, move.partition))
        self._record({move.topic for move in moves if move not in problems})
        runs = self._runs(f"group {self.group} has members: a task runs, or did a moment ago")
        return {move: runs if problem.code == "AB626" else problem for move, problem in problems.items()}

    def _record(self, topics: Collection[str]) -> None:
        """Record the ids of the originals in whose logs positions were written."""
        today = self.source.ids(topics) if topics else {}
        decided = []
        for topic in sorted(topics):
            known, found = self.copies[topic], kafka_id(today.get(topic))
            # Brokers without topic ids have zeros on record.
            if found is not None and known.source_topic_id.strip("A") and found != known.source_topic_id:
                decided.append(replace(known, source_topic_id=found))
        if decided:
            Ownership(self.target.cluster, self._topology).write(decided)

    def _runs(self, found: str) -> Problem:
        where = f"{self.target.cluster.where}, flow {self.flow.name}"
        return Problem("AB628", where, found, "end its `replicate`, wait until it has drained, then write again")


def with_notes(positions: Positions, moves: Sequence[Move], found: Mapping[Log, Position]) -> list[Move]:
    """Return moves of positions, each with the note that goes with it."""
    ids = positions.source.ids({move.topic for move in moves}) if moves else {}
    return [replace(move, metadata=positions.moved(found[move.log], move.after, ids.get(move.topic))) for move in moves]
