"""Counts what of originals was not copied yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from reconciler.checkpoints.groups import Groups
from reconciler.failover.diverged import Part, about
from reconciler.model.failover import Crossing


def counted(source: Groups, found: Iterable[Crossing]) -> list[Crossing]:
    """Return how far partitions were copied with where their originals end, and how many records were not copied.

    Of a backlog of more than a million the offsets are told, which may be more than its records.

    Args:
        source: the side that is left.
        found: how far they were copied.

    Raises:
        AnabranchError: the source does not answer, or something there is refused.
    """
    some = list(found)
    ends = source.bounds({(one.topic, one.partition) for one in some})
    ended = [
        replace(one, source_end=ends[one.topic, one.partition].stable) if (one.topic, one.partition) in ends else one
        for one in some
    ]
    parts = {one: part for one in ended if (part := _uncopied(one)) is not None}
    counts = about(source.cluster, list(parts.values()))
    return [replace(one, waiting=_waiting(one, parts, counts)) for one in ended]


def left(found: Iterable[Crossing]) -> list[Crossing]:
    """Return what is not known to be copied; what nobody could ask may be anything."""
    return [one for one in found if one.waiting != 0]


def _uncopied(one: Crossing) -> Part | None:
    """Return what of an original was not copied; None where there is nothing."""
    first = max(one.copied, 0)
    if one.source_end is None or one.source_end <= first:
        return None
    return Part(one.topic, one.partition, first, one.source_end)


def _waiting(one: Crossing, parts: Mapping[Crossing, Part], counts: Mapping[Part, int]) -> int | None:
    if one in parts:
        return counts[parts[one]]
    # Of an original that is gone nobody knows.
    return None if one.source_end is None else 0
