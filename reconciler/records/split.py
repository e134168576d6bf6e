"""Splits the records of a fetch response into batches; messages of older formats become batches, too.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.records.batch import HEADER, HEADER_SIZE, LARGE, LOG_OVERHEAD, MAGIC, Batch, Body, UnreadableBatch
from reconciler.records.legacy import read_legacy

# In every format.
_MAGIC_AT = 16


def split(records: memoryview | bytes, *, in_place: bool = False) -> Iterator[Batch]:
    """Yield the whole batches of a fetch response's `records`; brokers may cut off the last one, which is left out.

    Args:
        records: a writable view belongs to a buffer that is reused as soon as this is done.
        in_place: whether large bodies may be views of `records`, where that is read-only.

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
    """Return the batches that begin at a place of a fetch response's records, and the place behind; None if incomplete.

    This is one batch; a message of an older format becomes none or several where compaction removed records from it.

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
        return read_legacy(view, at)
    if at + HEADER_SIZE > total:
        return None
    (base, length, epoch, magic, crc, attributes, delta, base_time, max_time, pid, pid_epoch, sequence, count) = (
        HEADER.unpack_from(view, at)
    )
    if magic != MAGIC:
        raise UnreadableBatch(base, magic, "this format is not known")
    # A length below a header's is damage, which the checksum detects; the place must advance nevertheless.
    end = at + max(LOG_OVERHEAD + length, HEADER_SIZE)
    if end > total:
        return None
    body: Body = view[at + HEADER_SIZE : end]
    if not in_place or len(body) < LARGE:
        body = bytes(body)
    one = Batch(base, delta, count, attributes, base_time, max_time, pid, pid_epoch, sequence, crc, body, epoch)
    return (one,), end
