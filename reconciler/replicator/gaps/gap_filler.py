"""Fills the gaps of channels: offsets without a record at the source get transaction markers at the target.

`task` starts one filling for each channel that reports a gap. A long gap is filled in pieces, so that a stop or a lost
lease does not wait for it. Where the target's log grew by more than the gap, the shifted run is stored before a record
of it is written; the next gap heals it by being filled with that many markers fewer.
"""

from __future__ import annotations

import time
from dataclasses import replace

from reconciler.model.base.errors import AnabranchError
from reconciler.model.offsets.runs import Run
from reconciler.model.tasks.status import PartitionState, Reason
from reconciler.records.read_committed import Gap
from reconciler.replicator.copy.copy_records import CopyRecords
from reconciler.replicator.gaps.fill import TRANSACTIONS_AT_ONCE, Filler, FillRefused, NotFilled
from reconciler.replicator.partition import reasons
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.place import kept_shift
from reconciler.wire import BrokerError, ConnectionLost, TopicInfo

# Most offsets filled at once, about a second's worth, because a stop waits for that.
_PIECES = {"markers": 1_000, "transactions": TRANSACTIONS_AT_ONCE}


class GapFiller:
    """Fills gaps.

    Args:
        filler: writes markers.
        memory: stores shifted runs.
    """

    def __init__(self, filler: Filler, memory: CopyRecords) -> None:
        self._filler = filler
        self._memory = memory

    async def fill(self, channel: Channel) -> None:
        """Fill the gap at the head of `channel`'s queue, or a piece of it; any error ends the opening."""
        opening = channel.opening
        try:
            upto, end = await self._fill(channel, opening)
        except ConnectionLost as error:
            self._end(channel, opening, (PartitionState.OPENING, reasons.no_answer(error, "while filling a gap")))
        except BrokerError as error:
            verdict = reasons.why_refused(error, "WRITE", f"filling a gap of {channel.place.remote}")
            self._end(channel, opening, verdict)
        except FillRefused as refused:
            reason = reasons.not_allowed(refused.operation, refused.resource, refused.name)
            self._end(channel, opening, (PartitionState.PARKED, reason))
        except (AnabranchError, NotFilled) as error:
            self._end(channel, opening, (PartitionState.OPENING, Reason("AB220", str(error))))
        except Exception as error:
            # An error in one partition must not stop the others.
            self._end(channel, opening, (PartitionState.PARKED, reasons.unforeseen("filling a gap", error)))
        else:
            channel.filled(opening, upto, end, time.monotonic())

    async def _fill(self, channel: Channel, opening: int) -> tuple[int, int]:
        """Return the source offset to continue at, and the target's log end there."""
        gap, log_end = channel.gap()
        kept = kept_shift(log_end.shift)
        wanted = min(gap.next + kept, log_end.end + _PIECES[self._filler.describe()])
        end = log_end.end
        if wanted > end:
            end = await self._filler.fill(channel.place, _target(channel), end, wanted - end)
        upto = min(max(end - kept, gap.first), gap.next)
        # When the opening has ended meanwhile, another task may own the partition.
        if upto == gap.next and channel.opening == opening:
            await self._remember(channel, gap, end)
        return upto, end

    async def _remember(self, channel: Channel, gap: Gap, end: int) -> None:
        """Store the run that begins behind `gap` before any record of it is written.

        It is compared with the stored shift, because earlier pieces of the gap have changed the channel's own.
        """
        sides = channel.sides
        assert sides is not None, "a channel with a gap is open"
        record = sides.copy_record().with_what_is_known(self._memory.get(channel.place))
        run = Run(gap.next, end - gap.next)
        if run.shift != record.runs.shift:
            await self._memory.put(channel.place, replace(record, runs=record.runs.extended(run)))

    @staticmethod
    def _end(channel: Channel, opening: int, verdict: reasons.Verdict) -> None:
        channel.filling = False
        if channel.opening != opening:
            return
        channel.end_opening(*verdict, time.monotonic())


def _target(channel: Channel) -> TopicInfo:
    sides, place = channel.sides, channel.place
    assert sides is not None, "a channel with a gap is open"
    return TopicInfo(place.remote, sides.target_id, 0, {place.partition: sides.target})
