"""A slow line is asked for less and less, and for more again when it answers."""

from __future__ import annotations

from reconciler.replicator.pace import RequestSize


def test_it_halves_after_each_silence_but_never_to_nothing() -> None:
    size = RequestSize(1_000_000)
    size.shrink()
    assert size.bytes == 500_000
    for _ in range(50):
        size.shrink()
    assert size.bytes == 64 * 1024


def test_it_grows_back_and_never_beyond_its_limit() -> None:
    size = RequestSize(1_000_000)
    for _ in range(10):
        size.shrink()
    before = size.bytes
    size.grow()
    assert before < size.bytes < 2 * before
    for _ in range(100):
        size.grow()
    assert size.bytes == 1_000_000
