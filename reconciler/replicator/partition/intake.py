"""Turns a fetch response into items for a channel: batches that can be written as they are, and the gaps between.

`channel` calls it. Nearly every batch stays as it was read; a batch that the target would refuse, or that would have
another meaning there, is rewritten. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from reconciler.model.declared.flow import DEFAULT_BATCH_SIZE
from reconciler.model.tasks.status import Reason
from reconciler.records.batch import CODEC_BITS, LARGE, Batch, UnreadableBatch
from reconciler.records.decompression import DecompressedTooLarge
from reconciler.records.one_record_batches import batches
from reconciler.records.read_committed import Gap, sift
from reconciler.records.rewrite import UNLIMITED, dense, recoded, rewritten
from reconciler.records.split import split
from reconciler.replicator.partition import reasons
from reconciler.wire import FetchAnswer

# Over a long line a window of five batches bounds what a partition gets on with: 13 MB/s where an answer takes 100 ms.
# By default brokers take batches of a megabyte (max.message.bytes).
FAR_BATCH_SIZE = 3 * DEFAULT_BATCH_SIZE


class BatchForm(NamedTuple):
    """The form in which batches are sent to the target.

    Attributes:
        merge: up to how many bytes small batches become one; 0 merges none.
        far: the same over a long line, if that is more.
        largest: a batch with more bytes is divided, if it has more than one record.
        codec: codec to compress with; None keeps the batch's own.
        dense: whether batches may span offsets without records, as copies with translated offsets do.
        without: offsets of records that were put aside.
        cut: offset at which a batch without some of these is divided: the records before it are known to be accepted.
        checked: whether the checksum of every batch is verified here; otherwise the target verifies those of large
            batches that are sent unchanged, because the checksum is sent with them.
    """

    merge: int = 0
    far: int = 0
    largest: int = UNLIMITED
    codec: int | None = None
    dense: bool = False
    without: frozenset[int] = frozenset()
    cut: int = 0
    checked: bool = False

    @classmethod
    def of(cls, batch_size: int, codec: int | None) -> BatchForm:
        """Return the form of a flow's batches.

        Args:
            batch_size: up to how many bytes its small batches become one.
            codec: as above.
        """
        # A declared size holds over any line.
        return cls(batch_size, FAR_BATCH_SIZE if batch_size == DEFAULT_BATCH_SIZE else 0, codec=codec)

    def limit(self, is_far: bool) -> int:
        """Return up to how many bytes batches are merged, over a long line or another."""
        return max(self.merge, self.far) if is_far else self.merge

    def smaller(self, refused: int) -> BatchForm:
        """Return the form to use after the target refused a batch of several records with `refused` bytes."""
        if refused <= max(self.merge, self.far):
            # It may have been merged: the source's own batches may still fit.
            return self._replace(merge=min(self.merge, refused // 2), far=0)
        return self._replace(largest=min(self.largest, refused // 2))

    def coded(self, batch: Batch) -> Batch:
        """Return a batch in the form's codec.

        Raises:
            CannotPass: it exceeds the flow's `largest-batch` decompressed.
        """
        if self.codec in (None, batch.attributes & CODEC_BITS):
            return batch
        try:
            return recoded(batch, self.codec)
        except DecompressedTooLarge as error:
            raise CannotPass(reasons.oversized(batch.base_offset, error)) from error
        except ValueError:
            # The body cannot be decompressed: send it, and the target refuses it with an error.
            return batch


# All fields but `merge` and `far` of a form that changes nothing.
AS_THEY_ARE = BatchForm()[2:]


class CannotPass(Exception):
    """A batch cannot be written to the target.

    Attributes:
        reason: why.
    """

    def __init__(self, reason: Reason) -> None:
        super().__init__(str(reason))
        self.reason = reason


def items(answer: FetchAnswer, expected: int, form: BatchForm) -> Iterator[Batch | Gap]:
    """Yield the items of a fetch response from offset `expected` on; each begins where the one before ended.

    Args:
        answer: the source's response for the partition.
        expected: the offset that was fetched from.
        form: the form in which batches are sent.

    Raises:
        CannotPass: a batch is damaged, or cannot be read; all items before it were yielded.
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
        # An error in one partition must not stop the others.
        raise CannotPass(reasons.unforeseen(f"reading the batch at source offset {expected}", error)) from error


def _passing(batch: Batch, first: int, form: BatchForm) -> Iterator[Batch | Gap]:
    """Yield the items that replace a batch from offset `first` on: nearly always the batch itself.

    Recoding waits until the batch is sent, because it may be merged before, unless there is a limit on its size.

    Raises:
        CannotPass: it is damaged. Large batches that are sent unchanged are verified by the target instead.
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
    """Return whether a batch can be sent without rewriting its records."""
    return (
        batch.base_offset == first
        and batch.record_count == batch.last_offset_delta + 1
        and not batch.is_log_append_time
        and (batch.size <= largest or batch.record_count == 1)
    )
