"""Counts what of originals was not copied yet."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from reconciler.checkpoints.groups import Groups
from reconciler.failover.diverged import Part, about
from reconciler.model.errors import EnvironmentFault
from reconciler.model.failover import Crossing
from reconciler.model.flow import Flow
from reconciler.replicator.note import Note
from reconciler.replicator.place import differ

_MOST_NAMED = 5


@dataclass(frozen=True)
class Originals:
    """What became of the originals of copies since these were made.

    Attributes:
        gone: those that were deleted.
        anew: those that were deleted and made again: what their copies hold is of the former ones.
    """

    gone: frozenset[str] = frozenset()
    anew: frozenset[str] = frozenset()

    @classmethod
    def of(cls, source: Groups, found: Iterable[Crossing]) -> Originals:
        """Ask which topics there are; one that is hidden from us counts as being there.

        Raises:
            Unreachable: AB310, the source does not answer.
        """
        known: dict[str, str | None] = {}
        for one in found:
            known[one.topic] = known.get(one.topic) or Note.parse(one.note).source_id
        try:
            ids = source.ids(known)
        except EnvironmentFault:
            # One of them is hidden; of the others metadata alone does not tell which are gone.
            ids = source.ids(topic for topic in known if topic in source.partitions)
            return cls(anew=frozenset(topic for topic in ids if differ(known[topic], ids[topic])))
        gone = frozenset(known.keys() - ids.keys())
        return cls(gone, frozenset(topic for topic in ids if differ(known[topic], ids[topic])))

    def said(self, flow: Flow) -> Iterator[str]:
        """Yield in words what the readers of a plan should know of them."""
        for topic in sorted(self.gone):
            yield f"topic {topic} is not there at {flow.source} any more: its copy has what was copied of it"
        for topic in sorted(self.anew):
            yield f"topic {topic} was deleted at {flow.source} and made again: nothing of it is in its copy"


def counted(source: Groups, found: Iterable[Crossing], originals: Originals) -> list[Crossing]:
    """Return how far partitions were copied with where their originals end, and how many records were not copied.

    Of a backlog of more than a million the offsets are told, which may be more than its records. Of an original that
    was deleted nothing is left to be copied; of one that was made anew nothing was copied yet.

    Args:
        source: the side that is left.
        found: how far they were copied.
        originals: what became of the originals.

    Raises:
        AnabranchError: the source does not answer, or something there is refused.
    """
    some = list(found)
    ends = source.bounds({(one.topic, one.partition) for one in some})
    ended = [
        replace(one, source_end=ends[one.topic, one.partition].stable) if (one.topic, one.partition) in ends else one
        for one in some
    ]
    parts = {one: part for one in ended if (part := _uncopied(one, originals)) is not None}
    counts = about(source.cluster, list(parts.values()))
    return [replace(one, waiting=0 if one.topic in originals.gone else _waiting(one, parts, counts)) for one in ended]


def named(left: Collection[Crossing]) -> str:
    """Say in words how many records were not copied, and where: the topics with most of them first."""
    counts: dict[str, int] = {}
    for one in left:
        counts[one.topic] = counts.get(one.topic, 0) + (one.waiting or 0)
    most = [item for item in sorted(counts.items(), key=lambda item: (-item[1], item[0])) if item[1]]
    total = sum(counts.values())
    said = []
    if total:
        more = f", and {len(most) - _MOST_NAMED:,} topics more" if len(most) > _MOST_NAMED else ""
        where = ", ".join(f"{count:,} of {topic}" for topic, count in most[:_MOST_NAMED])
        said.append(f"{records(total)} not copied ({where}{more})")
    unknown = [f"{one.topic}/{one.partition}" for one in left if one.waiting is None]
    if unknown:
        more = f" and {len(unknown) - _MOST_NAMED:,} more" if len(unknown) > _MOST_NAMED else ""
        many = ", ".join(unknown[:_MOST_NAMED]) + more
        said.append(f"of {many} it is not known: without a leader, or hidden from us")
    return "; ".join(said)


def records(count: int) -> str:
    """Say how many records, with the verb."""
    return f"{count:,} record is" if count == 1 else f"{count:,} records are"


def left(found: Iterable[Crossing]) -> list[Crossing]:
    """Return what is not known to be copied; what nobody could ask may be anything."""
    return [one for one in found if one.waiting != 0]


def _uncopied(one: Crossing, originals: Originals) -> Part | None:
    """Return what of an original was not copied; None where there is nothing."""
    first = 0 if one.topic in originals.anew else max(one.copied, 0)
    if one.source_end is None or one.source_end <= first:
        return None
    return Part(one.topic, one.partition, first, one.source_end)


def _waiting(one: Crossing, parts: Mapping[Crossing, Part], counts: Mapping[Part, int]) -> int | None:
    if one in parts:
        return counts[parts[one]]
    # Of an original that is gone nobody knows.
    return None if one.source_end is None else 0
