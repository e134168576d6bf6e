"""Small pieces of a request share a TLS record; what a socket did not take is handed to it again as it was."""

from __future__ import annotations

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from reconciler.wire.net.connection import whole_record

RECORD = 16 * 1024
sizes = st.sampled_from([1, 3, 100, RECORD - 1, RECORD, RECORD + 1, 5 * RECORD])


def pieces_of(lengths: list[int]) -> deque[bytes | memoryview]:
    return deque(bytes([number % 251]) * length for number, length in enumerate(lengths))


@given(st.lists(sizes, min_size=1, max_size=12), st.data())
def test_all_bytes_leave_in_their_order_in_full_records(lengths: list[int], data: st.DataObject) -> None:
    pieces = pieces_of(lengths)
    expected = b"".join(pieces)
    sent = b""
    while pieces:
        first = whole_record(pieces)
        assert pieces[0] is first
        assert len(first) >= min(RECORD, len(expected) - len(sent))
        taken = data.draw(st.integers(0, len(first)))
        sent += bytes(first[:taken])
        pieces.popleft()
        if taken < len(first):
            pieces.appendleft(memoryview(first)[taken:])
        if not taken:
            assert bytes(whole_record(pieces)[: len(first)]) == bytes(first)
            sent += bytes(pieces.popleft())
    assert sent == expected


def test_a_large_piece_is_not_copied() -> None:
    pieces = pieces_of([5 * RECORD, 10])
    first = pieces[0]
    assert whole_record(pieces) is first
    assert len(pieces) == 2
