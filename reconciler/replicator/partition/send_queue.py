"""What was read of a partition and waits to be sent: batches and gaps, each beginning where the one before ended.

`channel` owns one. Pure.
"""

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
        items: what is in it, in order; only its own methods change them.
        bytes: of all its batches.
    """

    def __init__(self) -> None:
        self.items: deque[Item] = deque()
        self.bytes = 0

    @property
    def first(self) -> Item | None:
        """What is to be sent or filled next."""
        return self.items[0] if self.items else None

    def push(self, item: Item) -> int:
        """Put an item behind the others, a gap together with one before it; return the offset behind it."""
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
        """Take the batch that is first, merged as `merge.take` does; return also how many bytes left the queue."""
        batch, size = take(self.items, limit, small)
        self.bytes -= size
        return batch, size

    def pass_gap(self, upto: int) -> None:
        """Let the gap that is first begin at `upto`, or be gone when that is its end."""
        gap = self.items.popleft()
        assert isinstance(gap, Gap), "only gaps are passed"
        if upto < gap.next:
            self.items.appendleft(Gap(upto, gap.next))

    def shorten(self, limit: int) -> int | None:
        """Forget what is last until no more than `limit` bytes are left, but keep a gap and what stands behind it.

        Returns:
            The offset behind what is left when something was forgotten, else None.
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
        """Forget everything."""
        self.items.clear()
        self.bytes = 0
