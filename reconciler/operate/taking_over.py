"""Takes over from another replicator: where its copies go on, from what it noted and from what stands in them."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from reconciler.model.base.errors import Problem, Refused
from reconciler.model.declared.topology import Topology
from reconciler.model.names.own_names import connect_offsets_topic
from reconciler.model.offsets.committed import Asked, Log, LogBounds
from reconciler.model.planning.steps import Plan, RecordOwnership

if TYPE_CHECKING:
    from reconciler.checkpoints.groups.positions import Positions
    from reconciler.checkpoints.translation.ended import Noted
    from reconciler.checkpoints.translation.walk import RecordReader

Replicator = Literal["mm2", "mm1", "mirus"]
"""Whose positions are read: those of MirrorMaker 2 and Mirus in a topic of Kafka Connect, MirrorMaker 1's of a group at
the source."""

_TRANSLATED = "translated"
_SECONDS = 60.0
_STILL_SECONDS = 3.0
_STOP = "stop the other replicator, and run this again"
_SAY = "name the next offsets with `start.offsets` of the flow, or delete the copy and have it copied anew"


@dataclass(frozen=True)
class FormerReplicator:
    """Where another replicator noted its positions.

    Attributes:
        kind: which one.
        topic: of Kafka Connect, at the target; by default that of a dedicated MirrorMaker 2. That of Mirus has no
            default, and may be at the source as well: where its workers' own `bootstrap.servers` lead.
        connector: of several that have positions of one source.
        group: of MirrorMaker 1, at the source.
    """

    kind: Replicator
    topic: str | None = None
    connector: str | None = None
    group: str | None = None


@dataclass(frozen=True)
class TakenPosition:
    """Where one partition goes on.

    Attributes:
        flow: its flow.
        log: the original.
        noted: the position that the other replicator noted.
        offset: where copying goes on.
    """

    flow: str
    log: Log
    noted: int
    offset: int

    def asked(self) -> Asked:
        """Return it as an offset that is to be written."""
        return Asked(self.flow, *self.log, self.offset, "", f"flow {self.flow}, topic {self.log[0]}/{self.log[1]}")


def taken_positions(
    topology: Topology, targets: Collection[str], plan: Plan, former: FormerReplicator
) -> list[TakenPosition]:
    """Return where the copies go on that a plan adopts, and those that are ours and were never copied to.

    Args:
        topology: what is declared.
        targets: aliases of the targets.
        plan: of `adopt`.
        former: what has filled the copies until now.

    Raises:
        Refused: AB413, a copy is still written to; AB414, no position is noted of one that holds records; AB415,
            several connectors have noted some.
        AnabranchError: a cluster cannot be read.
    """
    from reconciler.checkpoints.groups.positions import Positions

    positions: list[TakenPosition] = []
    problems: list[Problem] = []
    for flow in topology.flows_into(tuple(targets)):
        known = Positions(topology, flow)
        if copies := dict(_copies(known, plan)):
            found, wrong = _FlowTakeover(known, former, copies).run()
            positions += found
            problems += wrong
    if problems:
        raise Refused(problems)
    return positions


def _copies(known: Positions, plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield originals and copies of a flow: those that are adopted, and those of ours without a position."""
    for step in plan.steps:
        if (
            isinstance(step, RecordOwnership)
            and step.topic.flow == known.flow.name
            and step.topic.offsets == _TRANSLATED
        ):
            yield step.topic.source_topic, step.topic.name
    for position in known.read():
        if position.mode == _TRANSLATED and position.offset is None:
            yield position.topic, position.remote


class _FlowTakeover:
    """Finds where the copies of one flow go on.

    Args:
        known: the positions of the flow.
        former: what has filled them.
        copies: by original.
    """

    def __init__(self, known: Positions, former: FormerReplicator, copies: Mapping[str, str]) -> None:
        self._flow = known.flow
        self._former = former
        self._copies = copies
        self._source = known.source
        self._target = known.target

    def run(self) -> tuple[list[TakenPosition], list[Problem]]:
        """Return the positions, and what stands against taking some of them over."""
        from reconciler.checkpoints.translation.ended import ended
        from reconciler.checkpoints.translation.walk import RecordReader

        is_committed = self._flow.isolation_level == "read_committed"
        originals = RecordReader(self._source.cluster, committed=is_committed, seconds=_SECONDS)
        copies = RecordReader(self._target.cluster, committed=True, seconds=_SECONDS)
        logs = {
            (original, number): (copy, number)
            for original, copy in self._copies.items()
            for number in range(self._target.partitions.get(copy, 0))
            if number < self._source.partitions.get(original, 0)
        }
        bounds = self._target.bounds(list(logs.values()))
        if still := self._still_written(bounds):
            return [], still
        noted = self._noted(copies)
        found: list[TakenPosition] = []
        problems: list[Problem] = []
        for original, copy in logs.items():
            there = bounds.get(copy)
            if there is None:
                problems.append(self._target.without_leader(copy))
            elif original in noted:
                end = ended(originals, copies, original, noted[original], copy, there)
                # Mirus gives records to any partition unless `enable.partition.matching` is on: a record that is found
                # among those of other partitions proves nothing of those before it.
                is_proven = self._former.kind != "mirus" or end.is_whole
                offset = end.offset if is_proven else noted[original]
                found.append(TakenPosition(self._flow.name, original, noted[original], offset))
            elif there.end > there.start:
                message = f"holds records, and no position of {original[0]}/{original[1]} is noted"
                problems.append(Problem("AB414", self._where(copy), message, _SAY))
        return found, problems

    def _still_written(self, bounds: Mapping[Log, LogBounds]) -> list[Problem]:
        """Return which copies grow."""
        time.sleep(_STILL_SECONDS)
        later = self._target.bounds(list(bounds))
        message = f"is written to: records came within {_STILL_SECONDS:g} s"
        return [
            Problem("AB413", self._where(log), message, _STOP)
            for log, one in bounds.items()
            if log in later and later[log].end != one.end
        ]

    def _noted(self, reader: RecordReader) -> dict[Log, int]:
        """Return the next offset of each original by what the other replicator noted."""
        if self._former.kind == "mm1":
            assert self._former.group is not None
            committed = self._source.committed([self._former.group])
            return {(one.topic, one.partition): one.offset for one in committed}
        topic = self._former.topic or connect_offsets_topic(self._flow.source)
        found = self._of_connectors(reader, topic)
        names = sorted({one.connector for one in found if one.log[0] in self._copies})
        wanted = self._former.connector or (names[0] if len(names) == 1 else None)
        if wanted is None and names:
            message = f"has positions of several connectors: {', '.join(names)}"
            raise Refused(Problem("AB415", self._where((topic, 0)), message, "name the one that ran with --connector"))
        return {one.log: one.offset for one in found if one.connector == wanted}

    def _of_connectors(self, reader: RecordReader, topic: str) -> list[Noted]:
        """Return what connectors of the other replicator noted."""
        from reconciler.checkpoints.translation.ended import noted_by_mirror_maker, noted_by_mirus
        from reconciler.checkpoints.translation.walk import RecordReader

        partitions = self._target.partitions.get(topic, 0)
        if self._former.kind == "mm2":
            return noted_by_mirror_maker(reader, topic, partitions, self._flow.source)
        if not partitions:
            partitions = self._source.partitions.get(topic, 0)
            reader = RecordReader(self._source.cluster, committed=True, seconds=_SECONDS)
        return noted_by_mirus(reader, topic, partitions)

    def _where(self, log: Log) -> str:
        return f"{self._target.cluster.where}, {log[0]}/{log[1]}"


def write_positions(topology: Topology, positions: Sequence[TakenPosition]) -> list[Problem]:
    """Commit positions for flows that do not run; return what was not committed.

    Raises:
        AnabranchError: a cluster does not answer, or refuses.
    """
    from reconciler.checkpoints.groups.moves import MoveTerms, plan_for_flow, write_for_flow
    from reconciler.checkpoints.groups.positions import Positions

    problems: list[Problem] = []
    for flow in topology.flows:
        asked = [one.asked() for one in positions if one.flow == flow.name]
        if asked:
            known = Positions(topology, flow)
            planned = plan_for_flow(known, asked, MoveTerms())
            problems += planned.problems or write_for_flow(known, planned.moves).problems
    return problems
