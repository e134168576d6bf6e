"""Cuts of the copies of a failed-over flow: records after a cut were written by other clients. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from reconciler.model.base.errors import Problem
from reconciler.model.recorded.failed_flows import since
from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from reconciler.replicator.partition.place import differ
from reconciler.replicator.partition.shares import Place
from reconciler.state.failovers import failed_over
from reconciler.verify.slices import SliceBounds


class CutPoint(NamedTuple):
    """Where one partition of a copy was cut.

    Attributes:
        copied: the source offset that would have been copied next; None if nothing was copied.
        end: the end of the copy's log.
    """

    copied: int | None
    end: int


class Cuts:
    """The cuts of a flow's copies; empty before a failover has made them.

    Args:
        spec: the flow.
        values: of the journal of ownership at its target, without those of topics and ACLs.
    """

    def __init__(self, spec: FlowSpec, values: Iterable[Mapping[str, Any]]) -> None:
        self._flow = spec.flow
        self._state = failed_over(spec.topology, values).get(spec.flow.name)
        self._cuts = {} if self._state is None else dict(self._state.cuts)

    @property
    def notices(self) -> tuple[Problem, ...]:
        """The notice that a comparison ends at cuts."""
        if self._state is None or not self._cuts:
            return ()
        what = f"failed over {since(self._state)}: compared up to where its copies were cut"
        remedy = f"what came to them since, `anabranch failback --flow {self._flow.name}` copies back"
        return (Problem("AB613", f"flow {self._flow.name}", what, remedy),)

    def made_anew(self, place: Place) -> Problem | None:
        """Return a problem if a failback is rebuilding the original of a partition; it cannot be compared then."""
        cut = self._cuts.get(place.topic)
        if cut is None or not cut.anew:
            return None
        where = f"{self._flow.source} {place.topic}"
        remedy = f"run it again when `anabranch failback --flow {self._flow.name}` is done"
        return Problem("AB609", where, "is not compared: a failback is making it anew", remedy)

    def at(self, place: Place, target_id: str | None) -> CutPoint | None:
        """Return the cut of a partition; None if its flow is not failed over, or the remote topic is another one.

        Args:
            place: the partition.
            target_id: id of the remote topic as it is now; None where the brokers have none.
        """
        cut = self._cuts.get(place.topic)
        if cut is None or cut.remote != place.remote:
            return None
        if differ(OffsetMetadata.parse(cut.note(place.partition)).target_id, target_id):
            return None
        return CutPoint(*cut.at(place.partition))


def up_to(one: SliceBounds, at: CutPoint | None) -> SliceBounds:
    """Return bounds that end where the copy was cut, if it was."""
    if at is None:
        return one
    end = min(one.target_end, at.end)
    # With identical offsets the first one at the target is where the source begins: its retention may be further.
    first = min(one.target_first, end) if one.is_identical else one.target_first
    return replace(one, target_first=first, target_end=end, copied_to=None if one.is_identical else at.copied)
