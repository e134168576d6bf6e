"""What a task is told, and what it does about it: its partitions, pauses, restarts, the stop.

`task` asks it several times a second. It only sets channels; opening, reading and draining are the task's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from reconciler.model.status import PartitionState
from reconciler.replicator.channel import Channel
from reconciler.replicator.discover import Assignment, Shares
from reconciler.replicator.place import Place
from reconciler.state.control import Listener, Restart

_NO_TOPIC = "no topic matches yet"


class Steering:
    """The channels of one task in one round.

    Args:
        flow: name of the flow.
        assignment: what the task begins with.
        listener: its ear.
        make: makes the channel of a partition that the task gets, now or later.

    Attributes:
        channels: all of them; the list stays the same and grows.
        stopping: whether the run was told to stop.
        waiting: what a task without partitions waits for.
    """

    def __init__(self, flow: str, assignment: Assignment, listener: Listener, make: Callable[[Place], Channel]) -> None:
        self._flow = flow
        self._assignment = assignment
        self._listener = listener
        self._make = make
        self._shares: dict[str, Any] | None = None
        self._tasks = assignment.tasks
        self._pauses = listener.pauses
        self.channels: list[Channel] = []
        self.stopping = False
        self.waiting = _NO_TOPIC
        self._adopt(assignment.places)

    @property
    def needs_more_tasks(self) -> bool:
        """Whether the flow now has work for more tasks than there are: the next round has them."""
        return self._tasks > self._assignment.tasks

    def listen(self) -> bool:
        """Obey what was told; True when something was."""
        ear = self._listener
        told = ear.listen()
        self.stopping = ear.stopped
        if ear.shares is not None and ear.shares is not self._shares:
            self._shares = ear.shares
            shares = Shares.from_json(ear.shares)
            self._tasks = shares.tasks
            self.waiting = ear.shares.get("trouble") or _NO_TOPIC
            self._adopt(shares.of(self._assignment.task))
        if ear.pauses is not self._pauses:
            self._pauses = ear.pauses
            self._pause(self.channels)
        for restart in ear.take_restarts():
            self._restart(restart)
        return told

    def _adopt(self, places: Iterable[Place]) -> None:
        """Take partitions that this task does not have yet; the others go on undisturbed."""
        known = {channel.place for channel in self.channels}
        new = [self._make(place) for place in places if place not in known]
        self._pause(new)
        self.channels += new

    def _pause(self, channels: Iterable[Channel]) -> None:
        for channel in channels:
            if self._pauses.hold(self._flow, channel.place.topic, channel.place.partition):
                channel.pause()
            else:
                channel.resume()

    def _restart(self, restart: Restart) -> None:
        for channel in self.channels:
            chosen = restart.scope.covers(channel.place.topic, channel.place.partition)
            if chosen and (channel.state is PartitionState.PARKED or not restart.parked_only):
                channel.retry_now()
