"""Counts the records of a batch anew, in place: what is cheap when some were taken out and the others stay as they are.

`rewrite` asks here first where a copy has offsets of its own. Only the offset deltas change, and they can only become
smaller; nearly all keep their number of bytes. Pure.
"""

from __future__ import annotations

from reconciler.replicator.varint import SIGNED, read, signed

_MORE = 0x80
_TABLE = len(SIGNED)


def renumbered(body: bytes, count: int, span: int) -> tuple[bytes, int]:
    """Return decompressed records with offset deltas 0, 1, 2 and so on, and the first one's old delta.

    This runs once for each record, so nothing is called that can be avoided.

    Args:
        body: the records of a batch.
        count: how many there must be.
        span: no offset delta may be as large as that; they must rise.

    Raises:
        ValueError: they are not laid out so.
        IndexError: likewise, or there is none.
    """
    out, table, total = bytearray(body), SIGNED, len(body)
    pieces: list[bytes | memoryview] = []
    at = done = number = 0
    before = -1
    while at < total:
        size = body[at]
        if size < _MORE:
            start = at + 1
        elif (high := body[at + 1]) < _MORE:
            size, start = size & 0x7F | high << 7, at + 2
        else:
            size, start = read(body, at)
            size <<= 1
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
            old, behind = old & 0x7F | high << 7, place + 2
        else:
            old, behind = read(body, place)
            old <<= 1
        if size & 1 or old & 1 or not before < old or end > total or behind > end:
            raise ValueError(_NOT_SO)
        new = table[number] if number < _TABLE else signed(number)
        if len(new) == behind - place:
            out[place:behind] = new
        else:
            pieces += (memoryview(out)[done:at], signed(end - start + len(new) - (behind - place)))
            pieces += (body[start:place], new, body[behind:end])
            done = end
        before, at = old, end
        number += 1
    if number != count or before >> 1 >= span:
        raise ValueError(_NOT_SO)
    return (b"".join((*pieces, memoryview(out)[done:])) if pieces else bytes(out)), _first(body)


def _first(body: bytes) -> int:
    """Return the first record's offset delta."""
    _, start = read(body, 0)
    _, place = read(body, start + 1)
    return read(body, place)[0]


_NOT_SO = "records are not laid out as their batch says"
