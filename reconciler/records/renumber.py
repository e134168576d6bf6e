"""Renumbers the offset deltas of a batch's records in place, without holes.

`rewrite` uses it for copies with translated offsets. Only the offset deltas change, and they only become smaller;
nearly all keep their number of bytes, which makes this cheap. Pure.
"""

from __future__ import annotations

from reconciler.records.varint import SIGNED, read, signed

_MORE = 0x80
# The second shortest varint has two bytes, and zigzag numbers below this.
_WIDE, _WIDER = 2, 0x4000
_TABLE = len(SIGNED)
# Difference of two consecutive deltas, zigzag, where no offset is missing between them.
_NEXT = 2


def renumbered(body: bytes | memoryview, count: int, span: int) -> tuple[bytes, tuple[int, ...]]:  # noqa: PLR0912 - without calls
    """Return decompressed records with offset deltas 0, 1, 2 and so on, and `Batch.parts` from the first of them on.

    The loop runs once a record, so it avoids calls.

    Args:
        body: the records of a batch.
        count: number of records in it.
        span: offset deltas must rise and stay below this.

    Raises:
        ValueError: the records do not match these.
        IndexError: likewise, or there is none.
    """
    out = bytearray(body)
    view = memoryview(out)
    pieces: list[bytes | memoryview] = []
    # Pairs: number of a record in front of which offsets are missing, and its old delta.
    jumps: list[int] = []
    at = done = odd = 0
    before = -1
    for number in range(count):
        size = body[at]
        if size < _MORE:
            start = at + 1
        elif (high := body[at + 1]) < _MORE:
            size, start = size & 0x7F | high << 7, at + 2
        else:
            size, start = _length(body, at)
        end = start + (size >> 1)
        # Behind the attributes: the timestamp's delta, which stays.
        place = start + 1
        while body[place] >= _MORE:
            place += 1
        place += 1
        old = body[place]
        if old < _MORE:
            behind = place + 1
        elif (high := body[place + 1]) < _MORE:
            old, behind = old & 0x7F | high << 7, place + _WIDE
        else:
            old, behind = read(body, place)
            old <<= 1
        # A negative length or delta is odd in zigzag; all errors are collected here and checked once, at the end.
        odd |= size | old | (old <= before) | (behind > end)
        if old - before != _NEXT:
            jumps += (number, old >> 1)
        width, new = behind - place, number << 1
        if width == 1:
            # Deltas rise, so the old one is at least the new one, which fits into one byte as well.
            out[place] = new
        elif width == _WIDE and _MORE <= new < _WIDER:
            out[place] = new & 0x7F | _MORE
            out[place + 1] = new >> 7
        else:
            done = _change_length(view, pieces, done, number, (at, start, place, behind, end))
        before, at = old, end
    if odd & 1 or at != len(body) or before >> 1 >= span or before < 0:
        raise ValueError(_NOT_SO)
    return (b"".join((*pieces, view[done:])) if pieces else bytes(out)), _parts(jumps, count, span)


def _change_length(
    view: memoryview, pieces: list[bytes | memoryview], done: int, number: int, places: tuple[int, int, int, int, int]
) -> int:
    """Give a record a delta that takes another number of bytes; return the place up to which `pieces` is complete.

    Args:
        view: all records; changed in place where possible.
        pieces: the output.
        done: place up to which the output is complete.
        number: the new delta.
        places: of the record's length, its attributes, its delta, the byte behind that, and its end.
    """
    at, start, place, behind, end = places
    delta = _varint(number)
    size = _varint(end - start + len(delta) - (behind - place))
    if len(size) == start - at:
        view[at:start] = size
        view[place : place + len(delta)] = delta
        pieces.append(view[done : place + len(delta)])
        return behind
    pieces += (view[done:at], size, view[start:place], delta)
    return behind


def _length(body: bytes | memoryview, at: int) -> tuple[int, int]:
    """Return twice a length, and the place behind it; a negative length is refused, as the loop would not advance."""
    size, start = read(body, at)
    if size < 0:
        raise ValueError(_NOT_SO)
    return size << 1, start


def _varint(value: int) -> bytes:
    return SIGNED[value] if value < _TABLE else signed(value)


def _parts(jumps: list[int], count: int, span: int) -> tuple[int, ...]:
    """Return numbers of records and of missing offsets alternately (`Batch.parts`); the first jump is record 0."""
    found: list[int] = []
    for at in range(0, len(jumps), 2):
        number, delta = jumps[at : at + 2]
        upto, begin = (jumps[at + 2], jumps[at + 3]) if at + 2 < len(jumps) else (count, span)
        found += (upto - number, begin - delta - (upto - number))
    return tuple(found)


_NOT_SO = "the records do not match the header of their batch"
