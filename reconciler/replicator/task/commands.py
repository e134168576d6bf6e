"""The commands to a task and what they change: its partitions, pauses, restarts, the stop.

`task` runs it several times a second. It only sets channels; opening, reading and draining are the task's. The
partitions in an announcement are checked against the task's own flow specification: a partition that the flow does not
declare so gets no channel, and is shown as parked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from reconciler.model.tasks.spec import FlowSpec
from reconciler.model.tasks.status import PartitionState, PartitionStatus
from reconciler.replicator.partition import reasons
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.shares import Assignment, Place, Shares
from reconciler.state.listener import Listener, Restart

_NO_TOPIC = "no topic matches yet"
# At most so many refused partitions are shown: an announcement may hold millions.
_MOST_REFUSED = 100


class PartitionCommands:
    """The channels of one task in one round, and the commands to them.

    Args:
        spec: the flow.
        assignment: the partitions that the task begins with.
        listener: reads the control topic.
        make: makes the channel of a partition that the task gets, now or later.

    Attributes:
        channels: all channels; the list object stays the same and grows.
        refused: partitions that were assigned and are not copied, as the flow does not declare them so.
        stopping: whether the run is to stop.
        waiting: what a task without partitions waits for.
    """

    def __init__(
        self, spec: FlowSpec, assignment: Assignment, listener: Listener, make: Callable[[Place], Channel]
    ) -> None:
        self._spec = spec
        self._flow = spec.flow.name
        self._assignment = assignment
        self._listener = listener
        self._make = make
        self._shares: dict[str, Any] | None = None
        self._tasks = assignment.tasks
        self._pauses = listener.pauses
        self.channels: list[Channel] = []
        self.refused: dict[Place, PartitionStatus] = {}
        self.stopping = False
        self.waiting = _NO_TOPIC
        self._adopt(assignment.places)

    @property
    def needs_more_tasks(self) -> bool:
        """Whether the flow now has work for more tasks than there are: the next round has them."""
        return self._tasks > self._assignment.tasks

    def listen(self) -> bool:
        """Read the control topic and apply its commands; return whether there were any."""
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
        """Add partitions that this task does not have yet; the others continue undisturbed."""
        known = {channel.place for channel in self.channels}
        new = [self._make(place) for place in self._declared(place for place in places if place not in known)]
        self._pause(new)
        self.channels += new

    def _declared(self, places: Iterable[Place]) -> Iterator[Place]:
        """Yield the places that fit the flow's declaration, and note the others."""
        # Thousands of partitions belong to a few topics.
        known: dict[tuple[str, str, str], str | None] = {}
        for place in places:
            of = (place.topic, place.remote, place.offsets)
            if of not in known:
                known[of] = misfit(self._spec, place)
            if (why := known[of]) is None:
                yield place
            elif len(self.refused) < _MOST_REFUSED:
                self.refused[place] = PartitionStatus(
                    place.topic,
                    place.partition,
                    place.remote,
                    PartitionState.PARKED,
                    -1,
                    -1,
                    reasons.not_of_the_flow(place, why),
                )

    def _pause(self, channels: Iterable[Channel]) -> None:
        for channel in channels:
            where = (self._flow, channel.place.topic, channel.place.partition)
            if self._pauses.hold(*where):
                channel.pause(reasons.paused(self._pauses.why(*where)))
            else:
                channel.resume()

    def _restart(self, restart: Restart) -> None:
        for channel in self.channels:
            chosen = restart.scope.covers(channel.place.topic, channel.place.partition)
            if chosen and (channel.state is PartitionState.PARKED or not restart.parked_only):
                channel.retry_now()


def misfit(spec: FlowSpec, place: Place) -> str | None:
    """Return how an assigned partition differs from what its flow declares; None where it fits.

    `matching` makes places that fit. Assignments reach a task through a topic that others may write to, so each is
    checked against the task's own specification before anything is read or written.
    """
    flow, topic = spec.flow, place.topic
    if not flow.wants(topic, spec.aliases):
        return f"flow {flow.name} does not take topic {topic}"
    if (nameless := flow.nameless(topic)) is not None:
        return f"flow {flow.name} has no name for its copy: {nameless}"
    if (remote := flow.remote_topic(topic)) != place.remote:
        return f"its copy by flow {flow.name} is {remote}"
    if place.offsets not in ((flow.offsets,) if flow.offsets != "auto" else ("identical", "translated")):
        return f"flow {flow.name} declares offsets: {flow.offsets}"
    return None if place.partition >= 0 else "partitions are counted from 0"
