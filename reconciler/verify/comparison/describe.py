"""Describes the differences of two records; of their content, only names of headers are shown. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from reconciler.model.base.text import shown
from reconciler.records.record import part, parts
from reconciler.records.rewrite import RawRecord
from reconciler.records.varint import read

_SHOWN_HEADERS = 5
# Characters of a header's name that are shown: producers choose names.
_SHOWN_NAME = 100

Header = tuple[str, bytes | None]
Identity = tuple[int, bytes | None]


@dataclass(frozen=True)
class Record:
    """One record, taken apart.

    Attributes:
        key: bytes or None.
        value: bytes or None.
        headers: in order; names may repeat.
    """

    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


def parsed(record: RawRecord) -> Record:
    """Return key, value and headers of a record.

    Raises:
        ValueError: it is not laid out as records are.
    """
    key, value, headers = parts(record.rest)
    return Record(key, value, tuple(((name or b"").decode(errors="replace"), data) for name, data in headers))


def key_of(record: RawRecord) -> bytes | None:
    """Return the key of a record; None if it has none, or cannot be read."""
    try:
        return part(record.rest, 0)[0]
    except (IndexError, ValueError):
        return None


def identity(record: RawRecord) -> Identity:
    """Return timestamp and key, which identify a record even if its value was changed."""
    return record.timestamp, key_of(record)


def may_be_one(source: RawRecord, target: RawRecord) -> bool:
    """Return whether two records at the same place are one record of which one part was changed."""
    if source.timestamp != target.timestamp:
        return source.rest == target.rest
    ours, theirs = _key_and_rest(source), _key_and_rest(target)
    return ours[0] == theirs[0] or (ours[1] == theirs[1] and not is_tombstone(source))


def _key_and_rest(record: RawRecord) -> tuple[bytes | None, bytes]:
    try:
        key, at = part(record.rest, 0)
    except (IndexError, ValueError):
        return None, record.rest
    return key, record.rest[at:]


def is_tombstone(record: RawRecord) -> bool:
    """Return whether a record has no value, which deletes its key in a compacted topic."""
    try:
        _, at = part(record.rest, 0)
        return read(record.rest, at)[0] < 0
    except (IndexError, ValueError):
        return False


def what_differs(source: RawRecord, target: RawRecord) -> str:
    """Return how the target's record differs from the source's; empty if it does not."""
    said: list[str] = []
    if source.timestamp != target.timestamp:
        said.append(f"timestamp {source.timestamp} became {target.timestamp}")
    if source.rest != target.rest:
        try:
            ours, theirs = parsed(source), parsed(target)
        except ValueError:
            said.append(_bytes_differ("bytes", source.rest, target.rest))
        else:
            said += _fields(ours, theirs)
    return "; ".join(said)


def _fields(source: Record, target: Record) -> list[str]:
    said = [
        _bytes_differ(name, ours, theirs)
        for name, ours, theirs in (("key", source.key, target.key), ("value", source.value, target.value))
        if ours != theirs
    ]
    if source.headers != target.headers:
        said.append(_headers_differ(source.headers, target.headers))
    return said


def _bytes_differ(name: str, source: bytes | None, target: bytes | None) -> str:
    if source is None or target is None:
        return f"{name} is {_length(target)}, and was {_length(source)}"
    at = next((n for n, (ours, theirs) in enumerate(zip(source, target, strict=False)) if ours != theirs), None)
    if len(source) != len(target):
        where = "" if at is None else f", other from byte {at} on"
        return f"{name} has {_length(target)}, and had {len(source)}{where}"
    count = sum(ours != theirs for ours, theirs in zip(source, target, strict=True))
    others = "" if count == 1 else f", and {count - 1} more"
    return f"{name} differs at byte {at} of {len(source)}{others}"


def _length(data: bytes | None) -> str:
    return "null" if data is None else f"{len(data)} bytes"


def _headers_differ(source: tuple[Header, ...], target: tuple[Header, ...]) -> str:
    ours, theirs = Counter(source), Counter(target)
    lost = Counter(name for name, _ in (ours - theirs).elements())
    added = Counter(name for name, _ in (theirs - ours).elements())
    changed = lost & added
    said = [
        f"header {shown(name, _SHOWN_NAME)} {verb}"
        for names, verb in ((changed, "changed"), (lost - changed, "is lost"), (added - changed, "was added"))
        for name in sorted(names)
    ]
    if not said:
        return "headers stand in another order"
    more = f", and {len(said) - _SHOWN_HEADERS} more" if len(said) > _SHOWN_HEADERS else ""
    return ", ".join(said[:_SHOWN_HEADERS]) + more
