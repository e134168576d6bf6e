"""Which column of an SVG picture a data centre stands in, so that most flows go from left to right.

Called by `svg_layout`. Pure: numbers in, numbers out; the same numbers give the same columns.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from statistics import fmean

Links = Collection[tuple[int, int]]
"""Pairs of units, source and target; a unit is what stands in one place, given by its index."""


def columns(count: int, links: Links) -> list[list[int]]:
    """Return the units by column, and from top to bottom in each.

    A target stands to the right of its sources. Units with links both ways stand in two columns: around their hub where
    they have one, else in a circle.

    Args:
        count: how many units there are.
        links: between them.
    """
    others = {(one, two) for one, two in links if one != two}
    parts = _parts(count, others)
    starts = _starts(parts, others)
    placed: list[list[int]] = [
        [] for _ in range(max((starts[i] + _width(part) for i, part in enumerate(parts)), default=0))
    ]
    for index, part in enumerate(parts):
        left, right = _two_columns(part, others) if len(part) > 1 else (part, [])
        placed[starts[index]] += left
        if right:
            placed[starts[index] + 1] += right
    return _untangled(placed, others)


def _parts(count: int, links: Links) -> list[list[int]]:
    """Return the units in parts: in one part are those that feed each other, over whatever stops."""
    reached = [_reached(unit, links) for unit in range(count)]
    parts: list[list[int]] = []
    for unit in range(count):
        mutual = next((part for part in parts if unit in reached[part[0]] and part[0] in reached[unit]), None)
        if mutual is None:
            parts.append([unit])
        else:
            mutual.append(unit)
    return parts


def _reached(unit: int, links: Links) -> set[int]:
    found, waiting = {unit}, [unit]
    while waiting:
        here = waiting.pop()
        fresh = {two for one, two in links if one == here} - found
        found |= fresh
        waiting += sorted(fresh)
    return found


def _width(part: Sequence[int]) -> int:
    return min(2, len(part))


def _starts(parts: Sequence[Sequence[int]], links: Links) -> list[int]:
    """Return the first column of each part: as far left as its feeders allow, and no farther than what it feeds."""
    home = {unit: index for index, part in enumerate(parts) for unit in part}
    across = {(home[one], home[two]) for one, two in links if home[one] != home[two]}
    starts = [0] * len(parts)
    for _ in parts:  # a path is as long as there are parts, at most
        for one, two in across:
            starts[two] = max(starts[two], starts[one] + _width(parts[one]))
    for index, part in enumerate(parts):
        fed = [starts[two] for one, two in across if one == index]
        if fed and not any(two == index for _, two in across):
            starts[index] = min(fed) - _width(part)
    return starts


def _two_columns(part: Sequence[int], links: Links) -> tuple[list[int], list[int]]:
    inside = [(one, two) for one, two in links if one in part and two in part]
    hubs = [unit for unit in part if all(unit in link for link in inside)]
    if hubs:
        return [hubs[0]], [unit for unit in part if unit != hubs[0]]
    ring = _walk(part, inside)
    half = len(ring) // 2
    return [ring[0], *reversed(ring[half + 1 :])], ring[1 : half + 1]


def _walk(part: Sequence[int], links: Links) -> list[int]:
    """Return the part in the order of a walk along its links, which for a ring is the ring."""
    walk = [part[0]]
    while len(walk) < len(part):
        left = [unit for unit in part if unit not in walk]
        fed = [unit for unit in left if (walk[-1], unit) in links]
        walk.append((fed or left)[0])
    return walk


def _untangled(placed: list[list[int]], links: Links) -> list[list[int]]:
    """Return the columns with each sorted by where its neighbours to the left stand."""
    rows: dict[int, float] = {}
    for column in placed:
        wanted = {}
        for row, unit in enumerate(column):
            near = [rows[one] for one, two in links if two == unit and one in rows]
            near += [rows[two] for one, two in links if one == unit and two in rows]
            wanted[unit] = fmean(near) if near else float(row)
        column.sort(key=lambda unit: wanted[unit])
        rows |= {unit: float(row) for row, unit in enumerate(column)}
    return placed
