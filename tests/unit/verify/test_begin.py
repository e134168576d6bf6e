"""Where a copy with translated offsets begins, and what is said where nothing of it is left on one side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from reconciler.model.offsets.runs import CopyRecord
from reconciler.records.rewrite import RawRecord, raw_records
from reconciler.verify.begin import NoBeginning, find_pair
from reconciler.verify.slices import SliceBounds, SliceProgress
from reconciler.wire import EARLIEST
from tests.support.records.batches import Content, batch, some

RECORDS = some(30)


class FakeLog:
    """Some records from an offset on; `first` is where the log begins."""

    def __init__(self, contents: Sequence[Content], first: int = 0) -> None:
        self._records = raw_records(batch(*contents, base_offset=first)) if contents else []
        self._first = first

    async def records(self, offset: int) -> list[RawRecord]:
        return [one for one in self._records if one.offset >= offset]

    async def at_time(self, timestamp: int) -> int:
        if timestamp == EARLIEST:
            return self._first
        return next((one.offset for one in self._records if one.timestamp >= timestamp), -1)


def begun(source: FakeLog, target: FakeLog, **changes: Any) -> SliceProgress:
    """Find where both begin; nothing of it waits."""
    values = {"source_first": 0, "source_end": 0, "target_first": 0, "target_end": 0, "has_first": True} | changes
    bounds = SliceBounds("orders", 0, "east.orders", "translated", None, None, record=CopyRecord(None, None), **values)
    progress = SliceProgress.begin(bounds)
    with pytest.raises(StopIteration):
        find_pair(cast("Any", source), cast("Any", target), bounds, progress).send(None)
    return progress


@pytest.mark.parametrize("copied_to", [None, 0])
@pytest.mark.parametrize("source_end", [0, 3], ids=["never written", "markers alone"])
def test_a_copy_of_an_original_that_never_held_records_is_compared(copied_to: int | None, source_end: int) -> None:
    ends = {"source_end": source_end, "target_end": 5, "copied_to": copied_to}
    found = begun(FakeLog(()), FakeLog(RECORDS[:5]), **ends)
    assert (found.is_paired, found.is_done, found.source, found.target) == (True, False, 0, 0)


@pytest.mark.parametrize("source_first", [0, 20], ids=["meanwhile", "before"])
def test_a_copy_of_which_the_original_has_nothing_left_is_counted(source_first: int) -> None:
    found = begun(FakeLog((), 20), FakeLog(RECORDS[:5]), source_first=source_first, source_end=20, target_end=5)
    assert (found.is_done, found.findings.by_kind, found.findings.counts.expired) == (True, {}, 5)


def test_what_is_older_than_the_time_to_begin_at_does_not_count() -> None:
    ends = {"source_first": 20, "source_end": 20, "target_end": 5, "has_first": False}
    found = begun(FakeLog(()), FakeLog(RECORDS[:5]), **ends)
    assert (found.is_done, found.findings.by_kind, found.findings.counts.expired) == (True, {}, 0)


def test_a_copy_of_which_all_is_deleted_at_the_source_is_no_stranger() -> None:
    source, target = FakeLog(RECORDS[20:], 20), FakeLog(RECORDS[:10])
    ends = {"source_first": 20, "source_end": 30, "target_end": 10}
    found = begun(source, target, copied_to=12, **ends)
    assert (found.is_done, found.findings.by_kind) == (True, {})
    assert (found.findings.counts.expired, found.findings.counts.behind) == (10, 10)
    # What should be there of what the source still has.
    for copied_to in (21, None):
        assert begun(source, target, copied_to=copied_to, **ends).findings.by_kind == {"unrelated": 1}


def test_a_copy_that_other_flows_fill_is_no_stranger_where_nothing_tells() -> None:
    source, target = FakeLog(RECORDS[20:], 20), FakeLog(RECORDS[:10])
    ends = {"source_first": 20, "source_end": 30, "target_end": 10}
    with pytest.raises(NoBeginning):
        begun(source, target, is_shared=True, **ends)
