"""What becomes of what offset syncs have told when a topic is made anew, and when a transaction tells it in parts."""

from __future__ import annotations

from reconciler.checkpoints.translation.history import _CopySyncs
from reconciler.checkpoints.translation.runs import Behind, Between, Point, RunPoint
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from reconciler.replicator.partition.offset_syncs import OffsetSync, Span
from reconciler.wire.requests.commits import CommittedPosition

OLD = OffsetMetadata("source-1", "target-1")


def told(source: int, target: int, count: int, begin: int, note: OffsetMetadata | None = OLD) -> OffsetSync:
    position = None if note is None else CommittedPosition(source + count, str(note))
    return OffsetSync("orders", 0, source, target, position, Span(begin, (count, 0)))


def test_what_was_told_of_a_topic_that_is_gone_counts_no_more() -> None:
    copy = _CopySyncs()
    copy.add(told(0, 0, 10, 0))
    assert copy.runs.downstream(4) == RunPoint(4)
    # The source's was made anew, and goes on in the same copy; its first transaction tells of two runs.
    new = OLD._replace(source_id="source-2")
    copy.add(told(50, 20, 5, 0, None))
    copy.add(told(60, 25, 5, 55, new))
    assert copy.note == new
    assert copy.runs.downstream(4) == Between(None, Point(50, 20))
    assert [copy.runs.downstream(offset) for offset in (50, 57, 60)] == [RunPoint(20), RunPoint(25), RunPoint(25)]
    # The copy's was made anew, too.
    copy.add(told(0, 0, 3, 0, new._replace(target_id="target-2")))
    assert copy.runs.downstream(2) == RunPoint(2)
    assert copy.runs.downstream(3) == Behind(3, 3)


def test_brokers_without_ids_tell_of_no_other_topic() -> None:
    copy = _CopySyncs()
    copy.add(told(0, 0, 10, 0, OffsetMetadata()))
    copy.add(told(10, 11, 10, 10))
    copy.add(told(20, 22, 10, 20, OffsetMetadata()))
    assert copy.runs.downstream(4) == RunPoint(4)


def test_what_no_position_follows_is_told_all_the_same_in_the_end() -> None:
    copy = _CopySyncs()
    copy.add(told(0, 0, 10, 0, None))
    assert copy.runs.downstream(4) == Between(None, None)
    copy.settle()
    assert copy.runs.downstream(4) == RunPoint(4)
    copy.settle()
    assert len(copy.runs) == 1


def test_what_is_told_from_the_beginning_on_is_of_topics_that_no_position_names() -> None:
    copy = _CopySyncs()
    copy.add(told(0, 0, 10, 0))
    copy.add(OffsetSync("orders", 0, 4, 10, None, Span(4, (10, 0), True, True)))
    assert copy.note == OLD
    copy.add(OffsetSync("orders", 0, 0, 20, None, Span(0, (3, 0), True, True)))
    assert copy.note == OffsetMetadata()
    # Nor does what is told in transactions then make it forget.
    copy.add(told(3, 23, 5, 3, OLD._replace(source_id="source-2")))
    assert [copy.runs.downstream(offset) for offset in (0, 7)] == [RunPoint(20), RunPoint(27)]


def test_what_says_nothing_of_others_counts_at_once() -> None:
    copy = _CopySyncs()
    copy.add(OffsetSync("orders", 0, 5, 7))
    assert copy.runs.downstream(5) == RunPoint(7)
    copy.add(OffsetSync("orders", 0, 6, 8, None, Span(6, (4, 0), repeats=True)))
    assert copy.runs.downstream(9) == RunPoint(11)
