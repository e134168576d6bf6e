"""Compare hand-made logs as `verify` does, without a broker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from reconciler.model.offsets.runs import CopyRecord, Runs
from reconciler.model.offsets.verification import Findings
from reconciler.records.batch import Batch
from reconciler.records.read_committed import Gap
from reconciler.records.rewrite import RawRecord
from reconciler.records.split import split
from reconciler.verify.comparison.compaction import Compaction
from reconciler.verify.comparison.comparer import Comparer
from reconciler.verify.comparison.doubts import Doubts, KeyLookup
from reconciler.verify.comparison.looking import Meeting, Repeat, Scan
from reconciler.verify.comparison.pairing import PairingTerms
from reconciler.verify.comparison.side import Side
from tests.support.records.batches import NONE, Content, build

IDENTICAL = PairingTerms(identical=True, record=CopyRecord(None, None), copied_to=None, source_end=2**40)
TRANSLATED = replace(IDENTICAL, identical=False)


Log = list[Batch | Gap]


def log(*pieces: Sequence[Content], start: int = 0, codec: int = NONE) -> Log:
    """Return a log with one batch for each piece, without holes."""
    found: Log = []
    for piece in pieces:
        found += split(build(piece, start, codec))
        start += len(piece)
    return found


def shifted(runs: Runs) -> CopyRecord:
    return replace(IDENTICAL.record, runs=runs)


def compare(
    source: Sequence[Batch | Gap],
    target: Sequence[Batch | Gap],
    terms: PairingTerms = IDENTICAL,
    *,
    ends: tuple[int, int] | None = None,
    at_once: int = 1,
    now: tuple[Sequence[Batch | Gap], Sequence[Batch | Gap]] | None = None,
) -> Findings:
    """Compare two logs from their first offsets to their ends, a few batches at once handed in when they are wanted.

    Args:
        source: the original's log.
        target: the copy's.
        terms: how they belong together.
        ends: up to where they are compared; by default to their ends.
        at_once: how many batches are read at once.
        now: the logs as they stand when they are looked at once more; by default the same.
    """
    found = Findings()
    source_end, target_end = ends or (_end(source), _end(target))
    terms = replace(terms, source_end=min(terms.source_end, source_end))
    logs, later = (
        {"source": source, "target": target},
        dict(zip(("source", "target"), now or (source, target), strict=True)),
    )
    sides = Side("source", _start(source), source_end), Side("target", _start(target), target_end)
    one, first = Comparer(*sides, terms, found), _start(target)
    while True:
        _feed(one, sides, logs, at_once)
        if one.wanted == "meeting":
            further = Side("source", sides[0].next, sides[0].end), Side("target", sides[1].next, sides[1].end)
            far = Meeting(*further)
            _feed(far, further, logs, at_once)
            one.met(far.found)
        elif one.wanted == "repeat":
            back = Side("source", _start(source), sides[0].next), Side("target", sides[1].next, sides[1].end)
            again = Repeat(*back)
            _feed(again, back, logs, at_once)
            one.strays.looked_back(again)
        elif one.wanted == "keys":
            _look_at_keys(Doubts(one.compaction, first, sides[1].next, one.judged), later, found, at_once)
            one.compaction = Compaction()
        else:
            return found


def _look_at_keys(doubts: Doubts, logs: Mapping[str, Sequence[Batch | Gap]], found: Findings, at_once: int) -> None:
    def scan(look: KeyLookup, see: Callable[[RawRecord], None]) -> None:
        side = Side(look.name, look.first, _end(logs[look.name]) if look.end is None else look.end)
        _feed(Scan(side, see), (side,), logs, at_once)

    if (before := doubts.before()) is not None:
        scan(before, doubts.stood_before)
    scan(doubts.behind(), doubts.came_later)
    if doubts:
        scan(doubts.at_source(), doubts.is_at_source)
    doubts.report(found)


def _feed(
    taker: Comparer | Meeting | Repeat | Scan,
    sides: Sequence[Side],
    logs: Mapping[str, Sequence[Batch | Gap]],
    at_once: int,
) -> None:
    """Hand in what is wanted, of what stands from where the sides were read."""
    left = {side.name: [one for one in logs[side.name] if _behind(one) > side.read_to] for side in sides}
    while (side := taker.advance()) is not None:
        items = left[side.name]
        side.add(items[:at_once])
        if not items:
            side.nothing_more()
        del items[:at_once]


def _behind(item: Batch | Gap) -> int:
    return item.next_offset if isinstance(item, Batch) else item.next


def _start(items: Sequence[Batch | Gap]) -> int:
    if not items:
        return 0
    first = items[0]
    return first.base_offset if isinstance(first, Batch) else first.first


def _end(items: Sequence[Batch | Gap]) -> int:
    if not items:
        return 0
    return _behind(items[-1])
