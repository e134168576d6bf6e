"""Translated offsets of a flow that is failed over: what stands behind a cut is nobody's at the source."""

from __future__ import annotations

import pytest

from reconciler.checkpoints.translation.answers import _Bounded
from reconciler.model.offsets.committed import LogBounds
from reconciler.model.offsets.translation import How, Question, Translated, Way
from reconciler.model.recorded.failover import Cut

CUT = Cut("orders", "east.orders", "translated", ((90, 100), (-1, 7)))


def told(offset: int, found: Translated, way: Way = "downstream", partition: int = 0, start: int = 0) -> Translated:
    """Return what is told of an offset; the logs of the other side begin at `start`."""
    logs = {("orders", number): LogBounds(start, 500, 500) for number in range(3)}
    bounded = _Bounded(dict.fromkeys(logs, CUT), logs, logs)
    return bounded(Question("orders", partition, offset, way), found)


@pytest.mark.parametrize(
    ("way", "offset", "found", "expected"),
    [
        ("downstream", 40, Translated(44, "record"), (44, "record")),
        ("downstream", 40, Translated(None, "unknown", "why"), (None, "unknown")),
        # No record is left before the cut; what follows others wrote.
        ("downstream", 89, Translated(300, "end"), (100, "end")),
        ("downstream", 90, Translated(105, "record"), (100, "end")),
        ("downstream", 91, Translated(105, "record"), (100, "ahead")),
        ("downstream", 91, Translated(None, "unknown", "why"), (100, "ahead")),
        # What it held besides was written outside of transactions, and told of by nobody.
        ("downstream", 90, Translated(96, "end"), (96, "end")),
        ("downstream", 93, Translated(96, "ahead", "why"), (96, "ahead")),
        ("upstream", 44, Translated(40, "record"), (40, "record")),
        ("upstream", 100, Translated(None, "unknown", "why"), (90, "end")),
        ("upstream", 105, Translated(95, "record"), (90, "ahead")),
    ],
)
def test_no_answer_is_behind_a_cut(way: Way, offset: int, found: Translated, expected: tuple[int | None, How]) -> None:
    answer = told(offset, found, way)
    assert (answer.offset, answer.how) == expected
    assert bool(answer.why) is (answer.how in ("ahead", "unknown"))


def test_of_what_was_never_copied_all_is_behind_the_cut() -> None:
    assert told(5, Translated(5, "record"), partition=1).offset == 7
    assert told(0, Translated(0, "record"), partition=2) == Translated(0, "end"), "a partition that was added since"
    assert told(3, Translated(3, "record"), "upstream", partition=1).how == "unknown"


@pytest.mark.parametrize(("way", "offset"), [("downstream", 95), ("upstream", 120)])
def test_a_cut_that_is_deleted_is_no_answer(way: Way, offset: int) -> None:
    answer = told(offset, Translated(110, "record"), way, start=101)
    assert (answer.offset, answer.how) == (None, "expired")
    assert "its log begins at 101" in answer.why


def test_what_has_no_cut_is_told_as_it_is() -> None:
    found = Translated(300, "record")
    assert _Bounded({}, {}, {})(Question("orders", 0, 290), found) == found
