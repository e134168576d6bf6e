"""Counts the records of a batch anew, in place: what is cheap when some were taken out and the others stay as they are.

`rewrite` asks here first where a copy has offsets of its own. Only the offset deltas change, and they can only become
smaller; nearly all keep their number of bytes. Pure.
"""

from __future__ import annotations

from reconciler.records.varint import SIGNED, read, signed

_MORE = 0x80
# The second shortest varint has two bytes, and zigzag numbers below this.
_WIDE, _WIDER = 2, 0x4000
_TABLE = len(SIGNED)
# How much larger a delta is than the one before, zigzag, where nothing is missing between them.
_NEXT = 2


def renumbered(body: bytes | memoryview, count: int, span: int) -> tuple[bytes, tuple[int, ...]]:  # noqa: PLR0912 - without calls
    """Return decompressed records with offset deltas 0, 1, 2 and so on, and `Batch.parts` from the first of them on.

    This runs once for each record, so nothing is called that can be avoided.

    Args:
        body: the records of a batch.
        count: how many there must be.
        span: no offset delta may be as large as that; they must rise.

    Raises:
        ValueError: they are not laid out so.
        IndexError: likewise, or there is none.
    """
    out = bytearray(body)
    view = memoryview(out)
    pieces: list[bytes | memoryview] = []
    # Numbers of the records in front of which offsets are missing, each with its old delta behind it.
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
        # A negative length or delta would be odd; whether all is as it must be is looked at once, at last.
        odd |= size | old | (old <= before) | (behind > end)
        if old - before != _NEXT:
            jumps += (number, old >> 1)
        width, new = behind - place, number << 1
        if width == 1:
            # As deltas rise, this one is as large as its number at least.
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
    """Give a record a delta that takes another number of bytes; return the place up to which `pieces` has everything.

    Args:
        view: all records; where their bytes may be changed in place, they are.
        pieces: what comes of them.
        done: up to which place that has them.
        number: the new delta.
        places: of the record's length, its attributes, its delta, what is behind that, and its end.
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
    """Return twice a length, and the place behind it; a negative one would lead back to where it stands."""
    size, start = read(body, at)
    if size < 0:
        raise ValueError(_NOT_SO)
    return size << 1, start


def _varint(value: int) -> bytes:
    return SIGNED[value] if value < _TABLE else signed(value)


def _parts(jumps: list[int], count: int, span: int) -> tuple[int, ...]:
    """Return how many records and how many missing offsets follow each other in turns; the first jump is record 0."""
    found: list[int] = []
    for at in range(0, len(jumps), 2):
        number, delta = jumps[at : at + 2]
        upto, begin = (jumps[at + 2], jumps[at + 3]) if at + 2 < len(jumps) else (count, span)
        found += (upto - number, begin - delta - (upto - number))
    return tuple(found)


_NOT_SO = "records are not laid out as their batch says"
