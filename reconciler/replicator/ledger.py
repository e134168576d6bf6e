"""The ledger: what was copied, as runs of records. Each round's rows are what the Spark source yields.

`task` notes every parcel that stands at its own offset; parcels that continue each other become one run. A parcel whose
answer was lost is in the log and in no ledger: the ledger is accounting of what was answered, never a position.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from reconciler.replicator.channel import Parcel, Place

# The columns of a row, as Spark's schema text.
SCHEMA = (
    "flow STRING, topic STRING, partition INT, remote STRING, first_offset LONG, last_offset LONG, "
    "target_offset LONG, records LONG, bytes LONG, newest_timestamp LONG"
)


class Row(NamedTuple):
    """One run of records: `SCHEMA`'s columns in its order. Timestamps are milliseconds."""

    flow: str
    topic: str
    partition: int
    remote: str
    first_offset: int
    last_offset: int
    target_offset: int
    records: int
    bytes: int
    newest_timestamp: int


@dataclass(frozen=True, slots=True)
class _Run:
    first: int
    next: int
    landing: int
    records: int
    bytes: int
    newest: int

    @property
    def landing_next(self) -> int:
        return self.landing + self.next - self.first


class Ledger:
    """Collects the runs of one task in one round."""

    def __init__(self, flow: str) -> None:
        self._flow = flow
        self._runs: dict[Place, list[_Run]] = {}

    def note(self, place: Place, parcel: Parcel) -> None:
        """Add a parcel that was written at its own offset."""
        runs = self._runs.setdefault(place, [])
        goes_on = runs and (runs[-1].next, runs[-1].landing_next) == (parcel.base_offset, parcel.landing)
        if goes_on:
            last = runs[-1]
            runs[-1] = replace(
                last,
                next=parcel.next_offset,
                records=last.records + parcel.records,
                bytes=last.bytes + len(parcel.data),
                newest=max(last.newest, parcel.newest),
            )
        else:
            run = _Run(
                parcel.base_offset,
                parcel.next_offset,
                parcel.landing,
                parcel.records,
                len(parcel.data),
                parcel.newest,
            )
            runs.append(run)

    def rows(self) -> list[Row]:
        """Return the runs so far, in the order of topics and offsets."""
        return [
            Row(
                self._flow,
                place.topic,
                place.partition,
                place.remote,
                run.first,
                run.next - 1,
                run.landing,
                run.records,
                run.bytes,
                run.newest,
            )
            for place, runs in sorted(self._runs.items(), key=lambda item: (item[0].topic, item[0].partition))
            for run in runs
        ]
