"""Compare hand-made logs as `verify` does, without a broker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reconciler.model.runs import CopyRecord, Runs
from reconciler.model.verification import Findings
from reconciler.replicator.batch import Batch
from reconciler.replicator.split import split
from reconciler.replicator.visible import Gap
from reconciler.verify.comparer import Comparer, Terms
from reconciler.verify.side import Side
from tests.support.batches import NONE, Content, build

IDENTICAL = Terms(identical=True, record=CopyRecord(None, None), copied_to=None, source_end=2**40)
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
    terms: Terms = IDENTICAL,
    *,
    ends: tuple[int, int] | None = None,
    at_once: int = 1,
) -> Findings:
    """Compare two logs from their first offsets to their ends, a few batches at once handed in when they are wanted."""
    found = Findings()
    comparer(source, target, terms, found, ends=ends, at_once=at_once)
    return found


def comparer(
    source: Sequence[Batch | Gap],
    target: Sequence[Batch | Gap],
    terms: Terms,
    found: Findings,
    *,
    ends: tuple[int, int] | None = None,
    at_once: int = 1,
) -> Comparer:
    """Compare as `compare` does; return what did it."""
    source_end, target_end = ends or (_end(source), _end(target))
    left = {"source": list(source), "target": list(target)}
    one = Comparer(
        Side("source", _start(source), source_end),
        Side("target", _start(target), target_end),
        replace(terms, source_end=min(terms.source_end, source_end)),
        found,
    )
    while (side := one.advance()) is not None:
        items = left[side.name]
        side.add(items[:at_once])
        if not items:
            side.nothing_more()
        del items[:at_once]
    return one


def _start(items: Sequence[Batch | Gap]) -> int:
    if not items:
        return 0
    first = items[0]
    return first.base_offset if isinstance(first, Batch) else first.first


def _end(items: Sequence[Batch | Gap]) -> int:
    if not items:
        return 0
    last = items[-1]
    return last.next_offset if isinstance(last, Batch) else last.next
