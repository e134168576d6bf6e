"""The ledger: what was copied, as runs of records. Each round's rows are what a Spark task returns.

`task` notes every batch that was written at its own offset; batches that continue each other become one run. A batch
whose answer was lost is in the log and in no ledger: the ledger counts what was acknowledged, and is never a position.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from reconciler.replicator.partition.in_flight import InFlightBatch
from reconciler.replicator.partition.shares import Place


class LedgerRow(NamedTuple):
    """One run of records: the columns of `ledger_schema` in their order.

    Attributes:
        flow: name of the flow.
        topic: the original topic.
        partition: its number on both sides.
        remote: the remote topic.
        first_offset: of the run, at the source.
        last_offset: likewise.
        first_target_offset: where the run stands at the target.
        last_target_offset: likewise.
        shift: target offset minus source offset, of the first record.
        records: how many; fewer than offsets at the source where a batch of a translated copy has holes, and then is a
            run by itself.
        bytes: as batches in their codec.
        fills: target offsets filled with markers right before the run, in this round.
        newest_timestamp: of its records, in ms.
        latency_avg: ms from a record's timestamp to the target's answer; each batch counts with its newest record.
        latency_max: likewise.
    """

    flow: str
    topic: str
    partition: int
    remote: str
    first_offset: int
    last_offset: int
    first_target_offset: int
    last_target_offset: int
    shift: int
    records: int
    bytes: int
    fills: int
    newest_timestamp: int
    latency_avg: int | None
    latency_max: int | None


@dataclass(slots=True)
class _Run:
    """A run as far as it goes; `timed` counts the records with a timestamp, `latency` sums theirs."""

    first: int
    next: int
    landing: int
    fills: int
    records: int = 0
    bytes: int = 0
    newest: int = -1
    timed: int = 0
    latency: int = 0
    longest: int = 0

    def goes_on_with(self, sent_batch: InFlightBatch) -> bool:
        # Behind source offsets without a record the target's offsets are less far ahead: each row has one shift.
        is_whole = self.records + sent_batch.records == sent_batch.next_offset - self.first
        return is_whole and (self.next, self.landing + self.records) == (sent_batch.base_offset, sent_batch.landing)

    def add(self, sent_batch: InFlightBatch, latency: int | None) -> None:
        self.next = sent_batch.next_offset
        self.records += sent_batch.records
        self.bytes += sent_batch.size
        self.newest = max(self.newest, sent_batch.newest)
        if latency is not None:
            self.timed += sent_batch.records
            self.latency += latency * sent_batch.records
            self.longest = max(self.longest, latency)


class Ledger:
    """Collects the runs of one task, round by round."""

    def __init__(self, flow: str) -> None:
        self._flow = flow
        self._runs: dict[Place, list[_Run]] = {}
        self._filled: dict[Place, int] = {}

    def note(self, place: Place, sent_batch: InFlightBatch, latency: int | None = None, filled: int = 0) -> None:
        """Add a batch that was written at its own offset.

        Args:
            place: its partition.
            sent_batch: what was written.
            latency: of its newest record, in ms; None when it has no timestamp.
            filled: how many offsets were filled in this partition since the task began.
        """
        runs = self._runs.setdefault(place, [])
        if not runs or not runs[-1].goes_on_with(sent_batch):
            fills = filled - self._filled.get(place, 0)
            self._filled[place] = filled
            runs.append(_Run(sent_batch.base_offset, sent_batch.base_offset, sent_batch.landing, fills))
        runs[-1].add(sent_batch, latency)

    def take(self) -> list[LedgerRow]:
        """Return the runs since the last time, in the order of topics and offsets: a round is over."""
        in_order = sorted(self._runs.items(), key=lambda item: (item[0].topic, item[0].partition))
        self._runs = {}
        return [self._row(place, run) for place, runs in in_order for run in runs]

    def _row(self, place: Place, run: _Run) -> LedgerRow:
        shift = run.landing - run.first
        return LedgerRow(
            flow=self._flow,
            topic=place.topic,
            partition=place.partition,
            remote=place.remote,
            first_offset=run.first,
            last_offset=run.next - 1,
            first_target_offset=run.landing,
            last_target_offset=run.landing + run.records - 1,
            shift=shift,
            records=run.records,
            bytes=run.bytes,
            fills=run.fills,
            newest_timestamp=run.newest,
            latency_avg=round(run.latency / run.timed) if run.timed else None,
            latency_max=run.longest if run.timed else None,
        )
