"""Opens a partition only while its lease is held, and closes it when the lease is lost.

`task` runs it several times a second. It sets channels and passes the partitions of the task to the lease, which sends
all requests.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence

from reconciler.model.tasks.status import PartitionState, Reason
from reconciler.replicator.lease.assignor import Log
from reconciler.replicator.lease.lease import ON_THE_WAY, Lease
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.translated_channel import TranslatedChannel
from reconciler.replicator.takeover.identical import Takeover

_LET_GO_PATIENCE = 5.0


class LeaseGuard:
    """Keeps the channels of one task within its leases, for one round.

    Args:
        lease: of this process, kept between rounds.
        task: number of the task.
        channels: all channels of the task; the list may grow. What an earlier round wrote has been answered.
    """

    def __init__(self, lease: Lease, task: int, channels: Sequence[Channel]) -> None:
        self._lease = lease
        self._task = task
        self._channels = channels
        self._known = -1
        self._changes = -1
        self._losses = lease.losses
        self._letting_go_since: float | None = None
        lease.begin()

    def look(self) -> None:
        """Pass new partitions to the lease, reopen channels after a loss, and set the reason for which each waits."""
        lease = self._lease
        if len(self._channels) != self._known:
            self._known = len(self._channels)
            self._changes = -1
            # What a translated channel has written is committed by this task: the partition stays here until the run
            # ends.
            keeps = [_log(channel) for channel in self._channels if isinstance(channel, TranslatedChannel)]
            lease.want(self._task, map(_log, self._channels), keeps)
        lease.check()
        if lease.losses != self._losses:
            self._losses = lease.losses
            now = time.monotonic()
            for channel in self._channels:
                # Held again or not: another owner may have written in between.
                if channel.state is PartitionState.RUNNING:
                    channel.reopen(_LOST, now)
        is_new = lease.changes != self._changes
        self._changes = lease.changes
        # A restart command may also have set a channel to opening.
        for channel in self._channels if is_new else [c for c in self._channels if c.state is PartitionState.OPENING]:
            if not channel.busy and not self.covers(channel):
                self._withhold(channel)

        if lease.surplus:
            self._let_go(lease.surplus)
        else:
            self._letting_go_since = None

    def _let_go(self, surplus: Collection[Log]) -> None:
        """Release the partitions that another run is to get, all at once: each assignment holds the group up.

        Where one of them takes longer than `_LET_GO_PATIENCE` seconds, the others do not wait for it.
        """
        now = time.monotonic()
        since, self._letting_go_since = self._letting_go_since, self._letting_go_since or now
        chosen = [channel for channel in self._channels if _log(channel) in surplus]
        # Requests for a lost partition may still be in flight, as when a lease runs out.
        settled = [_log(one) for one in chosen if not one.is_at_work and now - one.lost_at > ON_THE_WAY]
        if len(settled) == len(chosen) or (since is not None and now - since > _LET_GO_PATIENCE):
            self._lease.let_go(settled)
            self._letting_go_since = None

    def covers(self, channel: Channel) -> bool:
        """Return whether `channel` may be opened."""
        return self._lease.holds(_log(channel))

    async def open(self, channel: Channel, takeover: Takeover) -> None:
        """Open a channel, and withhold it again unless its lease was held all the time."""
        losses = self._lease.losses
        if channel.state is PartitionState.WAITING:
            channel.state, channel.reason = PartitionState.OPENING, None
        await takeover.run(channel)
        if losses != self._lease.losses or not self.covers(channel):
            self._withhold(channel)

    def _withhold(self, channel: Channel) -> None:
        """Do not open `channel` while its lease is not held; answers to requests in flight are still taken in."""
        if channel.state is PartitionState.PAUSED:
            return
        state, reason = self._lease.why_not(_log(channel)) or (PartitionState.OPENING, None)
        if channel.state is PartitionState.RUNNING:
            channel.reopen(reason or _LOST, time.monotonic())
        channel.state, channel.reason, channel.retry_at = state, reason, 0.0


_LOST = Reason("AB224", "the lease ran out")


def _log(channel: Channel) -> Log:
    return channel.place.remote, channel.place.partition
