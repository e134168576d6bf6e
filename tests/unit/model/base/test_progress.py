"""Waits that count from the last progress."""

from __future__ import annotations

from reconciler.model.base.progress import Progress


def test_a_wait_goes_on_while_less_and_less_is_left() -> None:
    now = [100.0]
    progress = Progress(30.0, lambda: now[0])
    for left in (5, 4, 3, 2):
        now[0] += 29.0
        assert progress.is_made(left)


def test_a_wait_ends_when_nothing_has_got_better_for_so_long() -> None:
    now = [0.0]
    progress = Progress(30.0, lambda: now[0])
    assert progress.is_made(7)
    now[0] = 30.0
    # What comes and goes is no progress.
    assert progress.is_made(9)
    assert progress.is_made(7)
    now[0] = 30.5
    assert not progress.is_made(7)
    assert progress.is_made(6), "late, and still progress"


def test_nothing_that_was_ever_seen_ends_as_well() -> None:
    now = [0.0]
    progress = Progress(30.0, lambda: now[0])
    now[0] = 31.0
    assert progress.is_made(3), "the first look"
    now[0] = 62.0
    assert not progress.is_made(3)
