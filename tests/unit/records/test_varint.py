"""Varints against kafka-python's own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.util import decode_varint, encode_varint

from reconciler.records.varint import read, signed


@given(st.integers(-(2**63), 2**63 - 1), st.binary(max_size=3), st.binary(max_size=3))
def test_they_are_written_and_read_as_the_library_does(value: int, before: bytes, behind: bytes) -> None:
    theirs = bytearray()
    encode_varint(value, theirs.append)
    assert signed(value) == bytes(theirs)
    data = before + bytes(theirs) + behind
    assert read(data, len(before)) == decode_varint(bytearray(data), len(before)) == (value, len(before) + len(theirs))


def test_a_sum_beyond_64_bits_wraps_as_javas_does() -> None:
    assert signed(2**63) == signed(-(2**63))
    assert signed(-(2**63) - 1) == signed(2**63 - 1)


def test_what_is_no_varint_is_refused() -> None:
    with pytest.raises(IndexError):
        read(b"\x80\x80", 0)
    with pytest.raises(ValueError, match="more than ten bytes"):
        read(b"\xff" * 11 + b"\x00", 0)
