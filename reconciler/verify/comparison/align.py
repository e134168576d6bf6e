"""Finds where two sequences of records agree again after a difference. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

# For a record that occurs more than once, this many in a row must be equal, unless a sequence ends.
_CONFIRMED = 3
# This many places of a record that occurs more than once are tried.
_MOST_PLACES = 4


def align(source: Sequence[T], target: Sequence[T]) -> tuple[int, int] | None:
    """Return how many to skip at the source and at the target until both are equal again; None if they never are.

    As few as possible are skipped on either side; among equal choices, the one that skips as many on both is taken.

    Args:
        source: the next records there, in order.
        target: the next records there, in order.
    """
    places: dict[T, list[int]] = defaultdict(list)
    for at, one in enumerate(source):
        places[one].append(at)
    times = Counter(target)
    best: tuple[int, int] | None = None
    for after, one in enumerate(target):
        if best is not None and after > max(best):
            break
        found = places.get(one, ())
        is_unique = len(found) == 1 and times[one] == 1
        for before in found[:_MOST_PLACES]:
            is_better = best is None or _cost(before, after) < _cost(*best)
            if is_better and (is_unique or _go_on(source, before, target, after)):
                best = before, after
    return best


def _cost(before: int, after: int) -> tuple[int, bool, int]:
    """Return the cost of a skip: a changed record is as likely as a lost one, and shifts no others."""
    return max(before, after), before != after, before + after


def _go_on(source: Sequence[T], before: int, target: Sequence[T], after: int) -> bool:
    count = min(_CONFIRMED, len(source) - before, len(target) - after)
    return all(source[before + n] == target[after + n] for n in range(1, count))


def are_swapped(source: Sequence[T], target: Sequence[T]) -> bool:
    """Return whether the first two have changed places, and the third is equal."""
    if len(source) < 2 or len(target) < 2 or source[0] == source[1]:  # noqa: PLR2004
        return False
    if source[0] != target[1] or source[1] != target[0]:
        return False
    return all(ours == theirs for ours, theirs in zip(source[2:3], target[2:3], strict=False))
