"""Counts the records of originals that are not copied yet."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from reconciler.checkpoints.groups.groups import Groups
from reconciler.failover.logs.cuts import TRANSLATED
from reconciler.failover.topics.diverged import Part, about, uncommitted
from reconciler.model.base.errors import EnvironmentFault
from reconciler.model.declared.flow import Flow
from reconciler.model.offsets.committed import Log
from reconciler.model.recorded.failover import Crossing
from reconciler.replicator.copy.transaction_holders import TransactionHolder, holders
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from reconciler.replicator.partition.place import differ

_MOST_NAMED = 5


@dataclass(frozen=True)
class Originals:
    """Originals that were deleted since their copies were made.

    Attributes:
        gone: those that do not exist now.
        anew: those that were made again: their copies hold records of the former topics.
    """

    gone: frozenset[str] = frozenset()
    anew: frozenset[str] = frozenset()

    @classmethod
    def of(cls, source: Groups, found: Iterable[Crossing]) -> Originals:
        """Compare topic ids; a topic that is not visible counts as existing.

        Raises:
            Unreachable: AB310, the source does not answer.
        """
        known: dict[str, str | None] = {}
        for one in found:
            known[one.topic] = known.get(one.topic) or OffsetMetadata.parse(one.note).source_id
        try:
            ids = source.ids(known)
        except EnvironmentFault:
            # One of them is not visible; metadata alone does not show which of the others are gone.
            ids = source.ids(topic for topic in known if topic in source.partitions)
            return cls(anew=frozenset(topic for topic in ids if differ(known[topic], ids[topic])))
        gone = frozenset(known.keys() - ids.keys())
        return cls(gone, frozenset(topic for topic in ids if differ(known[topic], ids[topic])))

    def notices(self, flow: Flow) -> Iterator[str]:
        """Yield notices for the plan."""
        for topic in sorted(self.gone):
            yield f"topic {topic} does not exist at {flow.source} any more: its copy has the records that were copied"
        for topic in sorted(self.anew):
            yield f"topic {topic} was deleted at {flow.source} and made again: nothing of it is in its copy"


@dataclass(frozen=True)
class SourceView:
    """How the flow reads its source.

    Attributes:
        originals: which originals were deleted.
        flow: the flow; with translated offsets it may copy records of open transactions as well.
    """

    originals: Originals
    flow: Flow

    def waits(self, one: Crossing) -> bool:
        """Return whether records of a partition are copied only after their transactions have ended."""
        mode = one.mode if one.mode != "auto" else "identical" if self.flow.may_begin_identical else TRANSLATED
        return mode != TRANSLATED or self.flow.isolation_level == "read_committed"


def counted(source: Groups, found: Iterable[Crossing], sight: SourceView) -> list[Crossing]:
    """Return how far partitions were copied, with the ends of their originals and the numbers of records not copied.

    Records behind an open transaction are counted separately, as read_committed consumers stop before it. A backlog of
    more than a million offsets is not read; its offsets are counted, which may be more than its records. A deleted
    original has nothing left to copy; of one that was made again all is left.

    Args:
        source: the source.
        found: how far they were copied.
        sight: how the flow reads them.

    Raises:
        AnabranchError: the source does not answer, or something there is refused.
    """
    some = list(found)
    bounds = source.bounds({(one.topic, one.partition) for one in some})
    anew, gone = sight.originals.anew, sight.originals.gone
    seen, parts, open_parts = list[Crossing](), dict[Crossing, Part](), dict[Crossing, Part]()
    for crossing in some:
        log = crossing.topic, crossing.partition
        if log not in bounds:
            seen.append(replace(crossing, waiting=0 if crossing.topic in gone else None))
            continue
        ends = bounds[log].read(committed=sight.waits(crossing))
        one = replace(crossing, source_end=ends.end)
        seen.append(one)
        first = max(0 if one.topic in anew else one.copied, ends.start, 0)
        if first < ends.stable:
            parts[one] = Part(*log, first, ends.stable)
        if ends.stable < ends.end:
            open_parts[one] = Part(*log, max(first, ends.stable), ends.end)
    counts = _numbers(source, parts, sight)
    held = uncommitted(source.cluster, open_parts.values()) if open_parts else {}
    stables = {(part.topic, part.partition): part.first for one, part in open_parts.items() if held[part]}
    whose = holders(source.cluster, stables)
    return [
        one
        if one.source_end is None
        else replace(
            one,
            waiting=counts[parts[one]] if one in parts else 0,
            held=held[open_parts[one]] if one in open_parts else 0,
            held_by=_whose(whose, one) if one in open_parts and held[open_parts[one]] else "",
        )
        for one in seen
    ]


def _numbers(source: Groups, parts: Mapping[Crossing, Part], sight: SourceView) -> dict[Part, int]:
    """Return the number of records in some parts, as the flow reads them."""
    waits = [part for one, part in parts.items() if sight.waits(one)]
    others = [part for one, part in parts.items() if not sight.waits(one)]
    return {**about(source.cluster, waits), **(uncommitted(source.cluster, others) if others else {})}


def _whose(whose: Mapping[Log, TransactionHolder], one: Crossing) -> str:
    # It may have ended since the end was read: its records are counted at the next call.
    return str(whose.get((one.topic, one.partition), "a transaction that has just ended"))


def named(left: Collection[Crossing]) -> str:
    """Return in words how many records were not copied, by topic, most first."""
    counts: dict[str, int] = {}
    for one in left:
        counts[one.topic] = counts.get(one.topic, 0) + (one.left or 0)
    most = [item for item in sorted(counts.items(), key=lambda item: (-item[1], item[0])) if item[1]]
    total = sum(counts.values())
    parts = []
    if total:
        more = f", and {len(most) - _MOST_NAMED:,} topics more" if len(most) > _MOST_NAMED else ""
        where = ", ".join(f"{count:,} of {topic}" for topic, count in most[:_MOST_NAMED])
        parts.append(f"{records(total)} not copied ({where}{more})")
    parts += [f"{one.held:,} of {one.topic}/{one.partition} wait for {one.held_by}" for one in _most_held(left)]
    unknown = [f"{one.topic}/{one.partition}" for one in left if one.waiting is None]
    if unknown:
        more = f" and {len(unknown) - _MOST_NAMED:,} more" if len(unknown) > _MOST_NAMED else ""
        many = ", ".join(unknown[:_MOST_NAMED]) + more
        parts.append(f"unknown for {many}: no leader, or not visible")
    return "; ".join(parts)


def _most_held(left: Iterable[Crossing]) -> list[Crossing]:
    """Return the partitions with most records behind open transactions."""
    return sorted((one for one in left if one.held), key=lambda one: (-one.held, one.topic, one.partition))[
        :_MOST_NAMED
    ]


def records(count: int) -> str:
    """Return a number of records in words, with the verb."""
    return f"{count:,} record is" if count == 1 else f"{count:,} records are"


def left(found: Iterable[Crossing]) -> list[Crossing]:
    """Return the partitions with records left, or with an unknown number of them."""
    return [one for one in found if one.left != 0]
