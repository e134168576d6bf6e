"""What a fetch answer holds for a channel: batches that can be written as they are, and gaps, without a hole between.

`channel` takes items from here. Nearly every batch comes out as it was read; what the target would refuse, or what
would not mean the same there, is rewritten. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from reconciler.model.tasks.status import Reason
from reconciler.records.batch import CODEC_BITS, LARGE, Batch, UnreadableBatch
from reconciler.records.decompression import DecompressedTooLarge
from reconciler.records.one_record_batches import batches
from reconciler.records.read_committed import Gap, sift
from reconciler.records.rewrite import UNLIMITED, dense, recoded, rewritten
from reconciler.records.split import split
from reconciler.replicator.partition import reasons
from reconciler.wire import FetchAnswer


class BatchForm(NamedTuple):
    """How the target gets its batches.

    Attributes:
        merge: up to how many bytes small batches become one; 0 merges none.
        largest: a batch with more bytes is divided, where it holds more than one record.
        codec: what they are compressed with; None leaves that as it is.
        dense: whether batches may span offsets without records, as the copy has offsets of its own.
        without: offsets of records that were put aside.
        cut: where a batch is divided that some of these are left out of: what stands before that was found to pass.
        checked: whether the checksum of each batch is looked at here; else, of large ones that pass as they are, the
            target looks at it, as it goes with them.
    """

    merge: int = 0
    largest: int = UNLIMITED
    codec: int | None = None
    dense: bool = False
    without: frozenset[int] = frozenset()
    cut: int = 0
    checked: bool = False

    def smaller(self, refused: int) -> BatchForm:
        """Return the form after the target refused a batch of several records that had so many bytes."""
        if refused <= self.merge:
            # It may have been merged: the source's own batches may still fit.
            return self._replace(merge=refused // 2)
        return self._replace(largest=min(self.largest, refused // 2))

    def coded(self, batch: Batch) -> Batch:
        """Return a batch in the codec that the target gets.

        Raises:
            CannotPass: it has more bytes decompressed than it may have.
        """
        if self.codec in (None, batch.attributes & CODEC_BITS):
            return batch
        try:
            return recoded(batch, self.codec)
        except DecompressedTooLarge as error:
            raise CannotPass(reasons.oversized(batch.base_offset, error)) from error
        except ValueError:
            # Let the target say what it thinks of such a body.
            return batch


# All of a form but `merge`, where batches pass as they are.
AS_THEY_ARE = BatchForm()[1:]


class CannotPass(Exception):
    """A batch cannot be written to the target.

    Attributes:
        reason: why.
    """

    def __init__(self, reason: Reason) -> None:
        super().__init__(str(reason))
        self.reason = reason


def items(answer: FetchAnswer, expected: int, form: BatchForm) -> Iterator[Batch | Gap]:
    """Yield what an answer holds from offset `expected` on; each item begins where the one before ended.

    Args:
        answer: of the source.
        expected: the offset that was asked for.
        form: how the target gets its batches.

    Raises:
        CannotPass: a batch is damaged, or cannot be read; all before it was yielded.
    """
    found = batches(answer.records, form.merge) if form.merge else split(answer.records, in_place=True)
    try:
        for item in sift(found, expected, answer.aborted):
            if isinstance(item, Batch):
                yield from _passing(item, max(expected, item.base_offset), form)
                expected = item.next_offset
            else:
                yield item
                expected = item.next
    except CannotPass:
        raise
    except UnreadableBatch as error:
        raise CannotPass(reasons.unreadable(error)) from error
    except ValueError as error:
        raise CannotPass(reasons.undecodable(expected, error)) from error
    except Exception as error:
        # One partition's trouble must not become the others'.
        raise CannotPass(reasons.unforeseen(f"reading the batch at source offset {expected}", error)) from error


def _passing(batch: Batch, first: int, form: BatchForm) -> Iterator[Batch | Gap]:
    """Yield what stands for a batch from offset `first` on: nearly always itself.

    Another codec waits until the batch is sent, as it may be merged before; unless its size then matters.

    Raises:
        CannotPass: it is damaged. Of a large one that is sent as it is, the target tells.
    """
    without = form.without
    if without:
        without = frozenset(offset for offset in without if first <= offset < batch.next_offset)
    is_whole = not without and _is_whole(batch, first, form.largest)
    own = batch.attributes & CODEC_BITS
    codec = own if form.codec is None else form.codec
    is_checked_later = is_whole and codec == own and len(batch.body) >= LARGE and not (form.checked or form.without)
    if not is_checked_later and not batch.is_intact:
        raise CannotPass(reasons.damaged(batch))
    if is_whole:
        if form.largest == UNLIMITED or codec == own:
            yield batch
            return
        one = recoded(batch, codec)
        if one.size <= form.largest or one.record_count == 1:
            yield one
            return
    if not form.dense:
        yield from rewritten(batch, first, form.largest, form.codec, without, form.cut)
        return
    end = first
    for one in dense(batch, first, form.largest, form.codec, without, form.cut):
        yield one
        end = one.next_offset
    if end < batch.next_offset:
        yield Gap(end, batch.next_offset)


def _is_whole(batch: Batch, first: int, largest: int) -> bool:
    """Tell whether the records of a batch can stay as they stand in it."""
    return (
        batch.base_offset == first
        and batch.record_count == batch.last_offset_delta + 1
        and not batch.is_log_append_time
        and (batch.size <= largest or batch.record_count == 1)
    )
