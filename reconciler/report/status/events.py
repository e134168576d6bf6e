"""What is on record of a topology: the table of `events`, and its JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from reconciler.model.base.errors import Problem
from reconciler.model.base.text import utc
from reconciler.model.recorded.event import RecordedEvent
from reconciler.report.text.columns import aligned
from reconciler.report.text.line import Line

FORMAT = 1
_TITLES = ("time", "cluster", "what", "about", "by")


def event_lines(events: Sequence[RecordedEvent]) -> list[Line]:
    """Return the table, the newest last."""
    rows = [[utc(one.time), one.cluster, one.kind, one.about, one.by] for one in events]
    return aligned(_TITLES, rows) or [Line("nothing is on record")]


def events_json(events: Iterable[RecordedEvent], unreachable: Iterable[Problem]) -> dict[str, Any]:
    """Return `format`, `events` (each with `time`, `cluster`, `kind`, `about`, `by`) and `unreachable`."""
    return {
        "format": FORMAT,
        "events": [asdict(one) for one in events],
        "unreachable": [asdict(problem) for problem in unreachable],
    }
