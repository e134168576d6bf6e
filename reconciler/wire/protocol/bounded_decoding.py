"""Bounds what the library's decoders do with a frame that lies: each reads what is there, once.

The library makes decoders of source text, for each message when it first comes. Two pieces of that text cost more than
a frame can be worth: a varint that never ends is read as one number of megabytes, with a new one for each byte, and all
behind a structure's tagged fields is copied to read these. `frames` has both replaced before anything is decoded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafka.protocol.schemas.fields.codecs.types import UnsignedVarInt32
from kafka.protocol.schemas.fields.struct import StructField

_TOO_LONG = "a varint of more than five bytes"
# The shift of the fifth byte, the last that a 32-bit number needs.
_LAST_SHIFT = 28


class RemainingBytes:
    """What follows a place of a frame, read without a copy of it; it has the methods that the library's tags ask for.

    Args:
        data: the frame.
        at: the place.
    """

    def __init__(self, data: memoryview, at: int) -> None:
        self._data = data
        self._begin = self._at = at

    def read(self, size: int | None = None) -> bytes:
        """Return the next bytes, fewer where the frame ends before."""
        end = len(self._data) if size is None or size < 0 else self._at + size
        found = bytes(self._data[self._at : end])
        self._at += len(found)
        return found

    def tell(self) -> int:
        """Return how many bytes were read."""
        return self._at - self._begin


def _varint(_kind: type, ctx: Any, name: str, indent: str) -> None:
    """Write what reads an unsigned varint of at most five bytes, as 32-bit numbers have."""
    byte, shift = ctx.next_var("b"), ctx.next_var("sh")
    for line in (
        f"{name} = {shift} = 0",
        "while True:",
        f"    {byte} = data[pos]",
        "    pos += 1",
        f"    {name} |= ({byte} & 0x7f) << {shift}",
        f"    if not ({byte} & 0x80): break",
        f"    {shift} += 7",
        f"    if {shift} > {_LAST_SHIFT}: raise ValueError({_TOO_LONG!r})",
    ):
        ctx.emit(indent, line)


def _tags(struct: Any, ctx: Any, name: str, indent: str, version: int) -> None:
    """Write what reads the tagged fields of a structure."""
    fields, rest, take = ctx.next_var("tf"), ctx.next_var("rest"), ctx.next_var("take")
    ctx.globs |= {fields: struct.tagged_fields(version), "_Rest": RemainingBytes, take: _take}
    for line in (
        f"{rest} = _Rest(data, pos)",
        f"{take}({name}, {fields}.decode({rest}, version={version}))",
        f"pos += {rest}.tell()",
    ):
        ctx.emit(indent, line)


def _take(found: Any, tags: Mapping[str, Any]) -> None:
    """Give tagged fields to what was decoded, as the library keeps them."""
    for name, value in tags.items():
        if name.startswith("_"):
            if found.unknown_tags is None:
                found.unknown_tags = {}
            found.unknown_tags[name] = value
        else:
            if found.tags is None:
                found.tags = set()
            found.tags.add(name)
            setattr(found, name, value)


def bound() -> None:
    """Replace both pieces."""
    UnsignedVarInt32.emit_decode_from = classmethod(_varint)
    StructField._emit_tagged_decode = _tags
