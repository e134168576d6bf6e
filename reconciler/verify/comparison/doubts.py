"""What becomes of keys of which a compacted target lacks a record, and nothing compared so far says that it may. Pure.

Compaction takes a record only when a later one of its key stands there too, and a tombstone only after all that it
deletes. Where the logs go on meanwhile, what allows it may stand behind the end of what is compared. So both logs are
looked at once more, as they are now: the target first, as it never has what the source has not.
"""

from __future__ import annotations

from typing import NamedTuple

from reconciler.model.offsets.verification import Difference, Findings
from reconciler.records.rewrite import RawRecord
from reconciler.verify.comparison.compaction import Compaction, Lacking, digest
from reconciler.verify.comparison.describe import is_tombstone


class KeyLookup(NamedTuple):
    """One look at one side.

    Attributes:
        name: `source` or `target`.
        first: from which offset on.
        end: up to which; None for all that is there now.
    """

    name: str
    first: int
    end: int | None = None


class Doubts:
    """Finds out what is lost, and what compaction has taken.

    Args:
        compaction: what the target lacks.
        target_first: from where the target is compared.
        behind: target offset up to which it was compared; what has replaced them there is looked for from there on.
        follows: source offset below which the comparison goes on, and judges later records by themselves.
    """

    def __init__(self, compaction: Compaction, target_first: int, behind: int, follows: int) -> None:
        self._open = compaction.open()
        self._replaced = 0
        self._first = target_first
        self._behind = behind
        self._follows = follows
        # Of tombstones that are lacking, where the target still has what they delete.
        self._deleted: dict[bytes, int] = {}
        # Those that the source still has.
        self._there: set[bytes] = set()

    def __bool__(self) -> bool:
        return bool(self._open)

    def before(self) -> KeyLookup | None:
        """Return where to look for what tombstones delete; None if there are none."""
        # Where a copy has offsets of its own, where a record should stand is known to be no earlier than that. Of its
        # key none that the source has came behind it so far: what is there is older.
        has_tombstones = any(one.is_tombstone for one in self._open.values())
        return KeyLookup("target", self._first, self._behind) if has_tombstones else None

    def stood_before(self, record: RawRecord) -> None:
        """Take a record of the target that stands in what was compared."""
        key = digest(record)
        found = self._open.get(key) if key is not None else None
        if key is None or found is None or not found.is_tombstone:
            return
        if is_tombstone(record):
            # An older one has deleted what stood before it.
            self._deleted.pop(key, None)
        else:
            self._deleted[key] = record.offset

    def behind(self) -> KeyLookup:
        """Return where to look for what has replaced them at the target."""
        return KeyLookup("target", self._behind)

    def came_later(self, record: RawRecord) -> None:
        """Take a record of the target that stands behind those that it lacks."""
        self._close(digest(record))

    def at_source(self) -> KeyLookup:
        """Return where to look for those that are left, and for what the source has behind them."""
        return KeyLookup("source", min(one.last for one in self._open.values()))

    def is_at_source(self, record: RawRecord) -> None:
        """Take a record of the source that stands where one that is lacking does, or behind."""
        key = digest(record)
        found = self._open.get(key) if key is not None else None
        if key is None or found is None or record.offset < found.last:
            return
        if record.offset == found.last:
            self._there.add(key)
        elif record.offset < self._follows or is_tombstone(record):
            self._close(key)

    def tell(self, findings: Findings) -> None:
        """Count what compaction has taken, and tell what is lost in the order of the log."""
        for key, one in sorted(self._open.items(), key=lambda item: item[1].last):
            what = self._lost(key, one)
            self._replaced += one.records - bool(what)
            if what:
                findings.add(Difference("missing", one.last, one.target, what))
        findings.counts.compacted_target += self._replaced
        self._open.clear()

    def _lost(self, key: bytes, one: Lacking) -> str:
        """Say what is wrong if the target lacks this; empty where it may."""
        if one.is_tombstone:
            at = self._deleted.get(key)
            what = f"the target does not have it, and still has what this tombstone deletes, at offset {at}"
            return "" if at is None else what
        # What the source has not any more either it has compacted meanwhile.
        what = "the target does not have it, and no later record of its key replaces it"
        return what if key in self._there else ""

    def _close(self, key: bytes | None) -> None:
        found = self._open.pop(key, None) if key is not None else None
        self._replaced += found.records if found else 0
