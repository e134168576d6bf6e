"""Cuts a batch in two: its records from an offset on, as a batch of their own.

`channel` needs it where a log begins, or a copy ends, in the middle of a batch: rarely, so it may be slow.
"""

from __future__ import annotations

from reconciler.replicator.batch import CODEC_BITS, Batch, split
from reconciler.replicator.wire import decode, encode


def cut(batch: Batch, offset: int) -> Batch:
    """Return the records of `batch` from `offset` on, in the same codec where that still makes them smaller.

    Raises:
        ValueError: the batch cannot be decoded.
    """
    records = [record for record in decode(batch.to_bytes()) if record.offset >= offset]
    (rest,) = split(encode(records, batch.attributes & CODEC_BITS))
    return rest
