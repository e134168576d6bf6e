"""Finds the batches in what a fetch response says of a partition; older messages come out as batches, too.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.records.batch import HEADER, HEADER_SIZE, LARGE, LOG_OVERHEAD, MAGIC, Batch, Body, UnreadableBatch
from reconciler.records.legacy import read_old

# In every format.
_MAGIC_AT = 16


def split(records: memoryview | bytes, *, in_place: bool = False) -> Iterator[Batch]:
    """Yield the whole batches of a fetch response's `records`; an incomplete last one is left out, as brokers send it.

    Args:
        records: a view that can be written to is of a buffer that is used again as soon as this is done.
        in_place: whether large bodies may be views of `records`, which are there as long as these.

    Raises:
        UnreadableBatch: a batch is of an unknown format, or an older one that cannot be decoded.
    """
    view = memoryview(records)
    at = 0
    in_place = in_place and view.readonly
    while (found := read_at(view, at, in_place=in_place)) is not None:
        batches, at = found
        yield from batches


def read_at(view: memoryview, at: int, *, in_place: bool = False) -> tuple[Sequence[Batch], int] | None:
    """Return what begins at a place of a fetch response's records, and the place behind; None if it is incomplete.

    It is one batch; an older message becomes none or several where compaction took records out of it.

    Args:
        view: of the records.
        at: the place.
        in_place: whether a large body may be a view of that view.

    Raises:
        UnreadableBatch: it is of an unknown format, or an older one that cannot be decoded.
    """
    total = len(view)
    if at + _MAGIC_AT >= total:
        return None
    if view[at + _MAGIC_AT] < MAGIC:
        return read_old(view, at)
    if at + HEADER_SIZE > total:
        return None
    (base, length, epoch, magic, crc, attributes, delta, base_time, max_time, pid, pid_epoch, sequence, count) = (
        HEADER.unpack_from(view, at)
    )
    if magic != MAGIC:
        raise UnreadableBatch(base, magic, "this format is not known")
    # A length below a header's can only be damage: the checksum will tell, and the walk still moves on.
    end = at + max(LOG_OVERHEAD + length, HEADER_SIZE)
    if end > total:
        return None
    body: Body = view[at + HEADER_SIZE : end]
    if not in_place or len(body) < LARGE:
        body = bytes(body)
    one = Batch(base, delta, count, attributes, base_time, max_time, pid, pid_epoch, sequence, crc, body, epoch)
    return (one,), end
