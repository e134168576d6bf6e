"""Where copies of a flow that is failed over were cut: what stands behind these places others wrote there. Pure."""

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
        copied: the source offset that would have been copied next; None where nothing was copied.
        end: the end of the copy's log.
    """

    copied: int | None
    end: int


class Cuts:
    """The cuts of a flow's copies; there are none while nobody has been moved.

    Args:
        spec: the flow.
        values: of the journal of its target, as far as they speak of no topic and no ACL.
    """

    def __init__(self, spec: FlowSpec, values: Iterable[Mapping[str, Any]]) -> None:
        self._flow = spec.flow
        self._state = failed_over(spec.topology, values).get(spec.flow.name)
        self._cuts = {} if self._state is None else dict(self._state.cuts)

    @property
    def notices(self) -> tuple[Problem, ...]:
        """What is to be known of a comparison that ends at cuts."""
        if self._state is None or not self._cuts:
            return ()
        said = f"failed over {since(self._state)}: compared up to where its copies were cut"
        remedy = f"what came to them since, `anabranch failback --flow {self._flow.name}` copies back"
        return (Problem("AB613", f"flow {self._flow.name}", said, remedy),)

    def made_anew(self, place: Place) -> Problem | None:
        """Return why a partition cannot be compared, as a failback is making its original anew; None where none is."""
        cut = self._cuts.get(place.topic)
        if cut is None or not cut.anew:
            return None
        where = f"{self._flow.source} {place.topic}"
        remedy = f"run it again when `anabranch failback --flow {self._flow.name}` is done"
        return Problem("AB609", where, "is not compared: a failback is making it anew", remedy)

    def at(self, place: Place, target_id: str | None) -> CutPoint | None:
        """Return where a partition was cut; None where its flow is not failed over, or this is another topic.

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
    # Of identical offsets the first one at the target tells where to begin at the source: retention may be further.
    first = min(one.target_first, end) if one.is_identical else one.target_first
    return replace(one, target_first=first, target_end=end, copied_to=None if one.is_identical else at.copied)
