"""A checksum after a change at the beginning is the one that the whole bytes would have."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconciler.records.checksum import crc32c, replaced_prefix

fronts = st.integers(0, 60).flatmap(lambda size: st.tuples(*[st.binary(min_size=size, max_size=size)] * 2))


def test_it_is_the_one_of_the_standard() -> None:
    # RFC 3720, B.4.
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43


@given(fronts, st.binary(max_size=300))
def test_a_new_beginning_changes_it_as_if_all_were_read(front: tuple[bytes, bytes], rest: bytes) -> None:
    before, after = front
    assert replaced_prefix(crc32c(before + rest), before, after, len(rest)) == crc32c(after + rest)


@given(fronts, st.integers(0, 24), st.integers(-1, 1))
def test_however_much_stands_behind_it(front: tuple[bytes, bytes], power: int, more: int) -> None:
    before, after = front
    rest = bytes(max(0, 2**power + more))
    assert replaced_prefix(crc32c(before + rest), before, after, len(rest)) == crc32c(after + rest)


@given(fronts, st.binary(min_size=1, max_size=300), st.data())
def test_what_does_not_fit_before_does_not_fit_then(
    front: tuple[bytes, bytes], rest: bytes, data: st.DataObject
) -> None:
    before, after = front
    turned = bytearray(rest)
    turned[data.draw(st.integers(0, len(rest) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert replaced_prefix(crc32c(before + rest), before, after, len(rest)) != crc32c(after + bytes(turned))
