"""The send queue of a channel: batches and gaps that are read and not sent, without holes. Pure."""

from __future__ import annotations

from collections import deque

from reconciler.records.batch import Batch
from reconciler.records.merge import take
from reconciler.records.read_committed import Gap

Item = Batch | Gap

# A gap and what stands behind it.
_KEPT = 2


class Queue:
    """A queue of batches and gaps.

    Attributes:
        items: its content, in order; only its own methods change it.
        bytes: size of all its batches.
    """

    def __init__(self) -> None:
        self.items: deque[Item] = deque()
        self.bytes = 0

    @property
    def first(self) -> Item | None:
        """The next item to be sent or filled."""
        return self.items[0] if self.items else None

    def push(self, item: Item) -> int:
        """Append an item, joining a gap with one before it; return the offset behind it."""
        if isinstance(item, Batch):
            self.items.append(item)
            self.bytes += item.size
            return item.next_offset
        before = self.items[-1] if self.items else None
        if isinstance(before, Gap):
            self.items[-1] = Gap(before.first, item.next)
        else:
            self.items.append(item)
        return item.next

    def take(self, limit: int, small: int) -> tuple[Batch, int]:
        """Take the first batch, merged as `merge.take` does; return it and the bytes that left the queue."""
        batch, size = take(self.items, limit, small)
        self.bytes -= size
        return batch, size

    def pass_gap(self, upto: int) -> None:
        """Let the first item, a gap, begin at `upto`; remove it when that is its end."""
        gap = self.items.popleft()
        assert isinstance(gap, Gap), "only gaps are passed"
        if upto < gap.next:
            self.items.appendleft(Gap(upto, gap.next))

    def shorten(self, limit: int) -> int | None:
        """Drop the last items until at most `limit` bytes are left, but keep a gap and the item behind it.

        Returns:
            The offset behind the last remaining item when any was dropped, else None.
        """
        kept = len(self.items)
        while self.bytes > limit and len(self.items) > _KEPT:
            item = self.items.pop()
            self.bytes -= item.size if isinstance(item, Batch) else 0
        if len(self.items) == kept:
            return None
        last = self.items[-1]
        return last.next_offset if isinstance(last, Batch) else last.next

    def clear(self) -> None:
        """Drop everything."""
        self.items.clear()
        self.bytes = 0
