"""Decides whether a compacted target may lack records for which no later record of the key was compared. Pure.

Compaction deletes a record only if a later one of its key follows, and a tombstone only after the records that it
deletes. The later record may be beyond the end of the comparison, as the logs grow. So both logs are scanned as they
are now: the target first, as it never holds records that the source has not had.
"""

from __future__ import annotations

from typing import NamedTuple

from reconciler.model.offsets.verification import Difference, Findings
from reconciler.records.rewrite import RawRecord
from reconciler.verify.comparison.compaction import Compaction, Lacking, digest
from reconciler.verify.comparison.describe import is_tombstone


class KeyLookup(NamedTuple):
    """One scan of one side.

    Attributes:
        name: `source` or `target`.
        first: first offset.
        end: end offset; None for the current log end.
    """

    name: str
    first: int
    end: int | None = None


class Doubts:
    """Divides missing records into lost ones and those that compaction has taken.

    Args:
        compaction: records that the target lacks.
        target_first: first compared offset of the target.
        behind: target offset up to which it was compared; later records of keys are searched from there on.
        follows: source offset below which the comparison goes on, and handles later records itself.
    """

    def __init__(self, compaction: Compaction, target_first: int, behind: int, follows: int) -> None:
        self._open = compaction.open()
        self._replaced = 0
        self._first = target_first
        self._behind = behind
        self._follows = follows
        # By key of a missing tombstone, the offset of a record at the target that it deletes.
        self._deleted: dict[bytes, int] = {}
        # Keys of missing records that the source still has.
        self._there: set[bytes] = set()

    def __bool__(self) -> bool:
        return bool(self._open)

    def before(self) -> KeyLookup | None:
        """Return the scan for records that missing tombstones delete; None if there are no such tombstones."""
        # With translated offsets, the tombstone's place is known to be no earlier than this. The source has no later
        # record of the key so far, so the records found are older.
        has_tombstones = any(one.is_tombstone for one in self._open.values())
        return KeyLookup("target", self._first, self._behind) if has_tombstones else None

    def stood_before(self, record: RawRecord) -> None:
        """Handle a record of the compared part of the target."""
        key = digest(record)
        found = self._open.get(key) if key is not None else None
        if key is None or found is None or not found.is_tombstone:
            return
        if is_tombstone(record):
            # An older tombstone has deleted the records before it.
            self._deleted.pop(key, None)
        else:
            self._deleted[key] = record.offset

    def behind(self) -> KeyLookup:
        """Return the scan for later records of the keys at the target."""
        return KeyLookup("target", self._behind)

    def came_later(self, record: RawRecord) -> None:
        """Handle a record of the target after the compared part."""
        self._close(digest(record))

    def at_source(self) -> KeyLookup:
        """Return the scan for the undecided records at the source, and for later records of their keys."""
        return KeyLookup("source", min(one.last for one in self._open.values()))

    def is_at_source(self, record: RawRecord) -> None:
        """Handle a record of the source at or after a missing one."""
        key = digest(record)
        found = self._open.get(key) if key is not None else None
        if key is None or found is None or record.offset < found.last:
            return
        if record.offset == found.last:
            self._there.add(key)
        elif record.offset < self._follows or is_tombstone(record):
            self._close(key)

    def report(self, findings: Findings) -> None:
        """Count records that compaction has taken, and add lost ones to the findings in the order of the log."""
        for key, one in sorted(self._open.items(), key=lambda item: item[1].last):
            what = self._lost(key, one)
            self._replaced += one.records - bool(what)
            if what:
                findings.add(Difference("missing", one.last, one.target, what))
        findings.counts.compacted_target += self._replaced
        self._open.clear()

    def _lost(self, key: bytes, one: Lacking) -> str:
        """Return what is wrong if the target lacks this; empty if it may."""
        if one.is_tombstone:
            at = self._deleted.get(key)
            what = f"the target does not have it, and still has what this tombstone deletes, at offset {at}"
            return "" if at is None else what
        # If the source no longer has it either, compaction has taken it there.
        what = "the target does not have it, and no later record of its key replaces it"
        return what if key in self._there else ""

    def _close(self, key: bytes | None) -> None:
        found = self._open.pop(key, None) if key is not None else None
        self._replaced += found.records if found else 0
