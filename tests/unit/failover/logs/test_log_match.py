"""Whether an original and its copy hold the same, told by the newest records: what is compacted, lost, or others'."""

from __future__ import annotations

import pytest

from reconciler.failover.logs.log_match import LogComparison, LogPair, _Mark
from reconciler.model.declared.cluster import Cluster

NOBODY = Cluster("gone", ("127.0.0.1:1",), "dc1")
Log = dict[int, str]


class Held(LogComparison):
    """Two logs that nobody has to read, by the original's offsets."""

    def __init__(self, here: Log, there: Log) -> None:
        super().__init__(NOBODY, NOBODY)
        self._logs = here, there
        self.read: list[tuple[int, int]] = []

    def _both(self, _pair: LogPair, first: int, end: int) -> tuple[dict[int, _Mark], dict[int, _Mark]]:
        self.read.append((first, end))
        here, there = (
            {at: _Mark(text.encode(), 5) for at, text in log.items() if first <= at < end} for log in self._logs
        )
        return here, there


def part(end: int, first: int = 0) -> LogPair:
    return LogPair(("orders", 0), ("east.orders", 0), 0, first, end)


def log(*parts: tuple[str, int, int]) -> Log:
    return {at: f"{name}-{at}" for name, first, end in parts for at in range(first, end)}


def test_the_same_newest_record_is_enough() -> None:
    held = Held(log(("a", 0, 1000)), log(("a", 0, 1000)))
    assert held.agree(part(1000))
    assert held.read == [(936, 1000)]


@pytest.mark.parametrize(
    ("here", "there"),
    [
        (log(("a", 0, 99), ("b", 99, 100)), log(("a", 0, 100))),
        (log(("a", 0, 99)), log(("a", 0, 100))),
        (log(("a", 0, 100)), log(("a", 0, 99))),
        (log(("a", 0, 10)), {}),
        ({}, log(("a", 0, 10))),
    ],
)
def test_another_newest_record_or_none_is_not_the_same(here: Log, there: Log) -> None:
    assert not Held(here, there).agree(part(100))


def test_where_neither_side_has_any_they_agree() -> None:
    held = Held(log(("a", 0, 10)), log(("b", 0, 10)))
    assert held.agree(part(1000, 10))
    assert held.read[-1][0] == 10


def test_times_of_brokers_are_not_compared() -> None:
    assert _Mark(b"x", None).is_same(_Mark(b"x", 7))
    assert not _Mark(b"x", 6).is_same(_Mark(b"x", 7))
    assert not _Mark(b"x", None).is_same(_Mark(b"y", None))


@pytest.mark.parametrize("is_whole", [False, True])
def test_logs_part_behind_the_newest_record_that_both_have(is_whole: bool) -> None:
    whole = log(("a", 0, 1000))
    assert Held(whole, whole).until(part(1000), is_whole=is_whole) == 1000
    # The source lost 400 and has gone on: however far it is back.
    assert Held(log(("a", 0, 600), ("b", 600, 1000)), whole).until(part(1000), is_whole=is_whole) == 600
    assert Held(log(("b", 0, 1000)), whole).until(part(1000), is_whole=is_whole) is None
    # Nothing tells where neither, or only the original, has anything.
    assert Held({}, {}).until(part(1000), is_whole=is_whole) == 1000
    assert Held(whole, {}).until(part(1000), is_whole=is_whole) == 1000


def test_what_the_copy_alone_has_at_the_end_is_lost_unless_something_may_have_replaced_it() -> None:
    here, there = log(("a", 0, 95)), log(("a", 0, 100))
    assert Held(here, there).until(part(100), is_whole=True) == 95
    assert Held(here, there).until(part(100), is_whole=False) == 100
    # Compaction took some that stand between.
    assert Held({0: "a", 99: "b"}, {0: "a", 50: "c", 99: "b"}).until(part(100), is_whole=True) == 100
