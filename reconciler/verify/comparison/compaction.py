"""Records that a compacted target may lack: those with a later record of their key, and tombstones. Pure."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

from reconciler.records.rewrite import RawRecord
from reconciler.verify.comparison.describe import is_tombstone, key_of

# This many keys are remembered, some 300 bytes each; then their later records are searched for.
MOST_KEYS = 200_000


class Lacking(NamedTuple):
    """Records of one key that the target lacks, until the key comes again.

    Attributes:
        records: their number; all but the last were replaced by a later one.
        last: source offset of the last.
        target: target offset at which it should be.
        is_tombstone: whether the last one has no value.
    """

    records: int
    last: int
    target: int
    is_tombstone: bool


class Compaction:
    """Records that a compacted target lacks and may lack, until that is decided.

    Args:
        lacking: undecided records by a digest of the key: they are saved in a file, which must not reveal keys.
    """

    def __init__(self, lacking: Mapping[bytes, Lacking] | None = None) -> None:
        self._lacking = dict(lacking or {})

    def __bool__(self) -> bool:
        return bool(self._lacking)

    @property
    def is_full(self) -> bool:
        """Whether some must be decided before more are remembered."""
        return len(self._lacking) >= MOST_KEYS

    def lacks(self, record: RawRecord, target: int) -> int | None:
        """Add a record that the target lacks; return how many earlier ones it replaces.

        None means that compaction cannot have taken the record, as it has no key.

        Args:
            record: of the source.
            target: the offset at which it should be.
        """
        key = digest(record)
        if key is None:
            return None
        replaced = self.came_again(record)
        self._lacking[key] = Lacking(1, record.offset, target, is_tombstone(record))
        return replaced

    def came_again(self, record: RawRecord) -> int:
        """Handle the next record of the source; return how many records that the target lacks it replaces."""
        key = digest(record)
        found = None if key is None else self._lacking.pop(key, None)
        return found.records if found else 0

    def open(self) -> dict[bytes, Lacking]:
        """Return undecided records by a digest of the key."""
        return dict(self._lacking)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON types; `from_json` is its inverse."""
        return {b64encode(key).decode(): list(one) for key, one in self._lacking.items()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Compaction:
        """Read what `to_json` returned.

        Raises:
            TypeError, ValueError: the value is of another shape.
        """
        return cls({b64decode(key): Lacking(*one) for key, one in value.items()})


def digest(record: RawRecord) -> bytes | None:
    """Return a digest of a record's key; None if it has none."""
    key = key_of(record)
    return None if key is None else blake2b(key, digest_size=16).digest()
