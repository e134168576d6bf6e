"""Copies that several flows fill: each flow's records are some of the target's, in order, others count apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.offsets.runs import CopyRecord
from reconciler.model.offsets.verification import Findings
from reconciler.verify.comparison.pairing import is_of_another
from tests.support.commands.verifying import TRANSLATED, compare, log
from tests.support.records.batches import Content, some

pytestmark = pytest.mark.slow

OURS = some(60)
THEIRS = tuple(replace(one, value=b"of another") for one in some(60, timestamp=5_000))


def shared(target: Sequence[Sequence[Content]], ours: Sequence[Content] = OURS) -> Findings:
    known = replace(TRANSLATED, is_shared=True, copied_to=len(ours))
    return compare(log(*[ours[at : at + 7] for at in range(0, len(ours), 7)]), log(*target), known, at_once=3)


@given(st.lists(st.integers(1, 20), min_size=1, max_size=12), st.booleans())
def test_records_of_two_flows_in_any_mixture_are_both_whole(sizes: list[int], begins: bool) -> None:
    left, pieces = {True: list(OURS), False: list(THEIRS)}, []
    for number, size in enumerate([*sizes, 60, 60]):
        mine = left[begins is bool(number % 2)]
        pieces.append(mine[:size])
        del mine[:size]
    found = shared([piece for piece in pieces if piece])
    assert (found.told, found.counts.records, found.counts.others) == ([], 60, 60)


def test_what_is_lost_changed_or_doubled_among_them_is_told() -> None:
    changed = replace(OURS[20], value=b"changed")
    target = [OURS[:5], THEIRS[:30], OURS[6:20], [changed], OURS[21:40], THEIRS[30:], OURS[39:]]
    found = shared(target)
    assert [(one.kind, one.source) for one in found.told] == [("missing", 5), ("changed", 20), ("duplicate", 39)]
    assert (found.counts.records, found.counts.others) == (58, 60)
    # Nothing of it is not copied yet.
    found = shared([THEIRS, OURS[:50]])
    assert (found.by_kind, found.counts.others) == ({"missing": 10}, 60)


def test_a_long_row_of_others_is_read_past() -> None:
    others = [replace(one, value=b"of another") for one in some(10_000, timestamp=5_000)]
    target = [OURS[:30], *[others[at : at + 500] for at in range(0, 10_000, 500)], OURS[30:]]
    found = shared(target)
    assert (found.told, found.counts.records, found.counts.others) == ([], 60, 10_000)
    found = shared([*target[:-1], OURS[31:]])
    assert ([(one.kind, one.source) for one in found.told], found.counts.others) == ([("missing", 30)], 10_000)


@pytest.mark.parametrize(
    ("record", "is_another"),
    [
        (CopyRecord("other", "copy"), True),
        (CopyRecord(None, None), True),
        # This original, copied when the flow had another name.
        (CopyRecord("original", "copy"), False),
        (CopyRecord("other", "deleted since"), False),
        (CopyRecord("other", "copy", is_begun=False), False),
    ],
)
def test_who_fills_a_copy_is_on_record(record: CopyRecord, is_another: bool) -> None:
    assert is_of_another(record, "original", "copy") is is_another
