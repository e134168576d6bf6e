"""What of a source log a reader of committed records sees: batches that pass, and gaps that hold no records.

`channel` sifts each fetch answer. The rules are the consumer's (Kafka's `CompletedFetch`, KIP-98): transaction markers
are never records, and data of a transaction in the answer's list of aborted ones is not seen from its first offset up
to its marker. Pure: no I/O.
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
    """Source offsets that hold no record a reader can see: from `first` up to, not including, `next`."""

    first: int
    next: int

    @property
    def size(self) -> int:
        """How many offsets are missing."""
        return self.next - self.first


def sift(batches: Iterable[Batch], expected: int, aborted: Iterable[tuple[int, int]]) -> Iterator[Batch | Gap]:
    """Yield what stands from offset `expected` on, without holes: each item begins where the one before ended.

    A batch that begins before `expected`, or is corrupt, is yielded as it is: its reader has to decide.

    Args:
        batches: of one fetch answer, in the order of the log.
        expected: the offset that was asked for.
        aborted: producer id and first offset of each aborted transaction that the answer names.
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
            # A damaged header must not make records vanish.
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
    """Tell whether a control batch is the marker of an aborted transaction.

    Its only record's key is version and type, each an i16 (`ControlRecordType`); control batches are never compressed.
    """
    if len(control.body) < _KEY_AT + _CONTROL_KEY.size:
        return False
    _version, kind = _CONTROL_KEY.unpack_from(control.body, _KEY_AT)
    return bool(kind == _ABORT)
