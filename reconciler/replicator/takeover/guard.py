"""Custody: the channels of a task under its lease. What is not held is not opened, and what is lost is open no more.

`task` asks it several times a second. It only sets channels and says what is wanted; the lease does all the talking.
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
    """One task's channels in one round.

    Args:
        lease: of this process, kept between rounds.
        task: number of the task.
        channels: all of them; the list may grow. What an earlier round wrote has been answered.
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
        """Want what there is now, take note of what was lost, and let each channel say what it waits for."""
        lease = self._lease
        if len(self._channels) != self._known:
            self._known = len(self._channels)
            self._changes = -1
            # What a channel with offsets of its own has written counts with its task's commits: it stays with them.
            keeps = [_log(channel) for channel in self._channels if isinstance(channel, TranslatedChannel)]
            lease.want(self._task, map(_log, self._channels), keeps)
        lease.check()
        if lease.losses != self._losses:
            self._losses = lease.losses
            now = time.monotonic()
            for channel in self._channels:
                # Held again or not: somebody else may have written meanwhile.
                if channel.state is PartitionState.RUNNING:
                    channel.reopen(_LOST, now)
        is_new = lease.changes != self._changes
        self._changes = lease.changes
        # Somebody may also have asked to try one again.
        for channel in self._channels if is_new else [c for c in self._channels if c.state is PartitionState.OPENING]:
            if not channel.busy and not self.covers(channel):
                self._withhold(channel)

        if lease.surplus:
            self._let_go(lease.surplus)
        else:
            self._letting_go_since = None

    def _let_go(self, surplus: Collection[Log]) -> None:
        """Let what another run is to get go, all of it at once: each deal holds the group up for a moment.

        Where that takes long for one, the others do not wait for it.
        """
        now = time.monotonic()
        since, self._letting_go_since = self._letting_go_since, self._letting_go_since or now
        chosen = [channel for channel in self._channels if _log(channel) in surplus]
        # What was lost may still be on its way, as when a lease runs out.
        settled = [_log(one) for one in chosen if not one.is_at_work and now - one.lost_at > ON_THE_WAY]
        if len(settled) == len(chosen) or (since is not None and now - since > _LET_GO_PATIENCE):
            self._lease.let_go(settled)
            self._letting_go_since = None

    def covers(self, channel: Channel) -> bool:
        """Tell whether `channel` may be opened."""
        return self._lease.holds(_log(channel))

    async def open(self, channel: Channel, takeover: Takeover) -> None:
        """Take over, and keep what comes of it only when the lease has covered it all the time."""
        losses = self._lease.losses
        if channel.state is PartitionState.WAITING:
            channel.state, channel.reason = PartitionState.OPENING, None
        await takeover.run(channel)
        if losses != self._lease.losses or not self.covers(channel):
            self._withhold(channel)

    def _withhold(self, channel: Channel) -> None:
        """Try nothing while the lease does not cover `channel`; answers still under way are let in."""
        if channel.state is PartitionState.PAUSED:
            return
        state, reason = self._lease.why_not(_log(channel)) or (PartitionState.OPENING, None)
        if channel.state is PartitionState.RUNNING:
            channel.reopen(reason or _LOST, time.monotonic())
        channel.state, channel.reason, channel.retry_at = state, reason, 0.0


_LOST = Reason("AB224", "the lease ran out")


def _log(channel: Channel) -> Log:
    return channel.place.remote, channel.place.partition
