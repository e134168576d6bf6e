"""Applies read_committed: yields committed batches and the offset gaps left by control and aborted batches.

`channel` passes each fetch response through `sift`. The rules are the consumer's (Kafka's `CompletedFetch`, KIP-98):
transaction markers are not records, and the batches of an aborted transaction are skipped from the first offset that
the response names up to its marker. Pure: no I/O.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reconciler.records.batch import Batch

_CONTROL_KEY = struct.Struct(">hh")
_ABORT = 0
# Where a control record's key begins when its deltas are as brokers write them, one byte each: length, attributes,
# timestamp delta, offset delta, key length.
_KEY_AT = 5


@dataclass(frozen=True, slots=True)
class Gap:
    """Source offsets without a visible record: from `first` up to, not including, `next`."""

    first: int
    next: int

    @property
    def size(self) -> int:
        """How many offsets are missing."""
        return self.next - self.first


def sift(batches: Iterable[Batch], expected: int, aborted: Iterable[tuple[int, int]]) -> Iterator[Batch | Gap]:
    """Yield batches and gaps from offset `expected` on, without holes: each item begins where the one before ended.

    A batch that begins before `expected`, or is corrupt, is yielded unchanged; the caller has to handle it.

    Args:
        batches: of one fetch response, in the order of the log.
        expected: the offset that was fetched from.
        aborted: producer id and first offset of each aborted transaction in the response.
    """
    to_come = sorted(aborted, key=lambda transaction: transaction[1], reverse=True)
    hidden_producers: set[int] = set()
    for batch in batches:
        if batch.next_offset <= expected:
            continue
        while to_come and to_come[-1][1] < batch.next_offset:
            hidden_producers.add(to_come.pop()[0])
        hidden = _is_hidden(batch, hidden_producers)
        if hidden and not batch.is_intact:
            # A damaged header must not hide records.
            yield batch
            return
        if batch.base_offset > expected:
            yield Gap(expected, batch.base_offset)
            expected = batch.base_offset
        if not hidden:
            yield batch
        else:
            if batch.is_control and is_abort(batch):
                hidden_producers.discard(batch.producer_id)
            yield Gap(expected, batch.next_offset)
        expected = batch.next_offset


def _is_hidden(batch: Batch, hidden_producers: set[int]) -> bool:
    if batch.is_control or batch.record_count == 0:
        return True
    return batch.is_transactional and batch.producer_id in hidden_producers


def is_abort(control: Batch) -> bool:
    """Return whether a control batch is the marker of an aborted transaction.

    Its only record's key is version and type, each an i16 (`ControlRecordType`); control batches are never compressed.
    """
    if len(control.body) < _KEY_AT + _CONTROL_KEY.size:
        return False
    _version, kind = _CONTROL_KEY.unpack_from(control.body, _KEY_AT)
    return bool(kind == _ABORT)
