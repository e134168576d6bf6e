"""How many partitions are opened at once: fewer while heartbeats are slow, and more again."""

from __future__ import annotations

from reconciler.replicator.task.openings import Openings

QUICK, NEITHER, SLOW = 0.1, 0.6, 1.5


def test_a_task_begins_with_some_and_doubles_that_with_each_quick_heartbeat() -> None:
    openings = Openings()
    assert [openings.room(0, beats, QUICK) for beats in range(5)] == [64, 128, 256, 256, 256]
    assert openings.room(250, 5, QUICK) == 6
    assert openings.room(256, 6, QUICK) == 0


def test_one_heartbeat_counts_once() -> None:
    openings = Openings()
    assert [openings.room(0, 1, SLOW) for _ in range(3)] == [32, 32, 32]
    assert openings.room(0, 2, NEITHER) == 32


def test_slow_heartbeats_halve_it_down_to_a_few_and_what_is_too_much_already_leaves_no_room() -> None:
    openings = Openings()
    assert [openings.room(64, beats, SLOW) for beats in range(1, 7)] == [-32, -48, -56, -56, -56, -56]
    assert [openings.room(0, beats, QUICK) for beats in range(7, 10)] == [16, 32, 64]
