"""Where two rows of records agree again behind a difference. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

# So many in a row must be the same where one is there more than once, unless a row ends.
_CONFIRMED = 3
# Of those that are there more than once, so many places are tried.
_MOST_PLACES = 4


def align(source: Sequence[T], target: Sequence[T]) -> tuple[int, int] | None:
    """Return how many to leave out at the source and at the target until both go on alike; None if they never do.

    As few as possible are left out on either side; of equal choices the one is taken that leaves out as many on both.

    Args:
        source: what follows there, in order.
        target: likewise.
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
    """Return what leaving some out costs: a changed record is as likely as a lost one, and moves nothing."""
    return max(before, after), before != after, before + after


def _go_on(source: Sequence[T], before: int, target: Sequence[T], after: int) -> bool:
    count = min(_CONFIRMED, len(source) - before, len(target) - after)
    return all(source[before + n] == target[after + n] for n in range(1, count))


def are_swapped(source: Sequence[T], target: Sequence[T]) -> bool:
    """Tell whether the first two have changed places, and both go on alike behind them."""
    if len(source) < 2 or len(target) < 2 or source[0] == source[1]:  # noqa: PLR2004
        return False
    if source[0] != target[1] or source[1] != target[0]:
        return False
    return all(ours == theirs for ours, theirs in zip(source[2:3], target[2:3], strict=False))
