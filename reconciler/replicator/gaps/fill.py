"""Fills gaps: advances the log end of a remote partition by some offsets without adding a visible record.

`gap_filler` calls it when the source has offsets without records, with nothing of the partition in flight; `identical`
calls `settle` before it reads the log end. Only transaction markers are written, which every consumer skips. There are
two ways, and one object serves all partitions of a task:

- *markers*: we write abort markers ourselves (WriteTxnMarkers), for a producer id that writes nothing else. Exact;
  needs ALTER on the cluster (KIP-1037; CLUSTER_ACTION before 3.8).
- *transactions*: one empty aborted transaction for each offset. Brokers write its marker at least once: when a
  coordinator moves, sometimes twice. So the log end may be further on than intended.

The log end is read after each step, and finally the contents of the gap.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from reconciler.records.split import split
from reconciler.replicator.copy.log_reading import read
from reconciler.replicator.copy.producer_names import ProducerNames
from reconciler.replicator.partition.shares import Place
from reconciler.wire import (
    COORDINATOR_NOT_READY,
    BrokerError,
    ConnectionLost,
    ErrorCode,
    Leader,
    Loop,
    TopicInfo,
    Wire,
    when_ready,
)
from reconciler.wire.requests import transactions
from reconciler.wire.requests.transactions import Markers, Transactor

T = TypeVar("T")

_NO_MARKERS = frozenset({ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.UNSUPPORTED_VERSION})
_TO_WRITE_MARKERS = ("ALTER", "the cluster")
# The coordinator is moving, or still busy with the transaction before.
_NOT_YET = COORDINATOR_NOT_READY | {ErrorCode.CONCURRENT_TRANSACTIONS}
# The leader may have appended the marker (replicas late, or unknown): the log end shows it.
_APPENDED_PERHAPS = frozenset({ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND})

_MARKERS_AT_ONCE = 500
TRANSACTIONS_AT_ONCE = 50
"""Number of empty transactions that take about a second."""
_LOST_ANSWERS = 3
# Since Kafka 4.3.0 a marker may be left out while its partition has no leader (KAFKA-20734).
_FRUITLESS = 5
_PATIENCE = 10.0
_PAUSE = 0.005


class FillRefused(Exception):
    """A permission is missing.

    Attributes:
        operation: the ACL operation that is needed.
        resource: what for, such as `transactional id anabranch.orders.fill`.
        name: Kafka's name of the error.
    """

    def __init__(self, operation: str, resource: str, name: str) -> None:
        self.operation = operation
        self.resource = resource
        self.name = name
        super().__init__(f"{operation} on {resource} is refused ({name})")


class NotFilled(Exception):
    """The gap does not hold only our markers: another producer wrote into it, or its beginning was deleted."""


@dataclass
class _Marking:
    """The producer of one partition's markers; `in_doubt` while a request of any owner may still be in flight."""

    producer_id: int
    epoch: int
    coordinator_epoch: int
    in_doubt: bool = True


class _Progress:
    """Stops filling when several steps do not move the log end.

    Args:
        log: name of the partition in messages.
    """

    def __init__(self, log: str) -> None:
        self._log = log
        self._end = -1
        self._fruitless = 0

    def note(self, end: int) -> None:
        """Record the log end before the next step.

        Raises:
            NotFilled: several steps have not moved it.
        """
        self._fruitless = self._fruitless + 1 if end == self._end else 0
        self._end = end
        if self._fruitless > _FRUITLESS:
            message = f"{self._log} still ends at {end} after {self._fruitless} attempts to write a marker there"
            raise NotFilled(message)


class Filler:
    """Fills the gaps of a task's partitions; several partitions at a time, each by one caller.

    Args:
        loop: the task's loop.
        target: a wire to the target cluster.
        identity: names the producers.
        how: `markers`, `transactions`, or `auto`: markers where they are allowed.
    """

    def __init__(self, loop: Loop, target: Wire, identity: ProducerNames, how: str) -> None:
        self._loop = loop
        self._wire = target
        self._identity = identity
        self._how = how
        self._refused = False
        self._marking: dict[Place, _Marking] = {}
        self._transactors: dict[Place, Transactor] = {}

    def describe(self) -> str:
        """Return which way is used: `markers` (in `auto` until they are refused) or `transactions`."""
        return "transactions" if self._refused or self._how == "transactions" else "markers"

    async def settle(self, place: Place) -> None:
        """End what earlier owners left open or in flight while filling this partition, so that its end can be read.

        Raises:
            ConnectionLost: no answer.
            BrokerError: the coordinator refuses, or is not ready for long.
            FillRefused: a permission is missing.
        """
        self._forget(place)
        name = self._identity.filling_id(place)
        try:
            if await self._when_ready(lambda: transactions.was_used(self._wire, name)):
                await self._transactor(place)
        except BrokerError as error:
            if error.code != ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
                raise
            # Without the permission this id was never used; where it is needed, filling reports the refusal.
            if self._how == "transactions":
                raise self._refusal(error, place) from None

    async def fill(self, place: Place, target: TopicInfo, start: int, count: int) -> int:
        """Advance the log end from `start` by `count` offsets; return the new end, which may be further on.

        The new end is lower where the cluster refuses markers and transactions are used from now on.

        Args:
            place: the partition; nothing else may be writing to it.
            target: its remote topic, with its leader.
            start: where the log ends.
            count: how many offsets are missing.

        Raises:
            ConnectionLost: no answer.
            BrokerError: a broker refuses, or is not ready for long.
            FillRefused: a permission is missing.
            NotFilled: the gap holds other records than our markers.
        """
        leader = target.partitions[place.partition]
        try:
            end = await self._fill(place, leader, start, start + count)
            await self._look_at(place, target, start, end)
        except BaseException:
            # The next attempt begins from the state of the brokers.
            self._forget(place)
            raise
        return end

    async def _fill(self, place: Place, leader: Leader, start: int, goal: int) -> int:
        end = await self._end(place, leader)
        if end < start:
            message = f"{place.remote}/{place.partition} ends at {end}, before the gap at {start}"
            raise NotFilled(message)
        if self.describe() == "markers":
            try:
                return await self._by_markers(place, leader, goal)
            except BrokerError as error:
                if error.code not in _NO_MARKERS or self._how == "markers":
                    raise self._refusal(error, place) from None
                self._refused = True
                # The caller's count is for markers, which are twenty times as fast; it calls again for the rest.
                goal = min(goal, end + TRANSACTIONS_AT_ONCE)
        try:
            return await self._by_transactions(place, leader, goal)
        except BrokerError as error:
            refusal = self._refusal(error, place)
            if refusal is not error:
                # The operator may grant either permission, so the next attempt tries markers again.
                self._refused = False
            raise refusal from None

    def _refusal(self, error: BrokerError, place: Place) -> Exception:
        if error.code in _NO_MARKERS:
            return FillRefused(*_TO_WRITE_MARKERS, error.name)
        if error.code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
            name = self._identity.transactional_id(place)
            return FillRefused("WRITE", f"transactional ids that begin with {name}", error.name)
        if error.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            return FillRefused("WRITE", f"topic {place.remote}", error.name)
        return error

    def _forget(self, place: Place) -> None:
        self._marking.pop(place, None)
        self._transactors.pop(place, None)

    # --- markers -----------------------------------------------------------------------------------------------------

    async def _by_markers(self, place: Place, leader: Leader, goal: int) -> int:
        marking = self._marking.get(place) or await self._first_marking(place, leader)
        progress, lost = _Progress(f"{place.remote}/{place.partition}"), 0
        while (end := await self._end(place, leader)) < goal:
            progress.note(end)
            if marking.in_doubt:
                # One marker with a higher coordinator epoch fences all requests in flight; then the end is stable.
                marking.coordinator_epoch += 1
            count = 1 if marking.in_doubt else min(goal - end, _MARKERS_AT_ONCE)
            try:
                await transactions.write_markers(self._wire, leader.node, self._markers(place, marking, count))
            except ConnectionLost:
                marking.in_doubt = True
                lost += 1
                if lost > _LOST_ANSWERS:
                    raise
            except BrokerError as error:
                lost += 1
                if lost > _LOST_ANSWERS or error.code not in _APPENDED_PERHAPS | {
                    ErrorCode.TRANSACTION_COORDINATOR_FENCED
                }:
                    raise
                if error.code == ErrorCode.TRANSACTION_COORDINATOR_FENCED:
                    marking = await self._first_marking(place, leader)
            else:
                marking.in_doubt = False
        return end

    @staticmethod
    def _markers(place: Place, marking: _Marking, count: int) -> Markers:
        return Markers(
            place.remote, place.partition, marking.producer_id, marking.epoch, marking.coordinator_epoch, count
        )

    async def _first_marking(self, place: Place, leader: Leader) -> _Marking:
        """Return the state to continue from, with the coordinator epoch of our markers in the log."""
        name = self._identity.marking_id(place)
        producer_id = await self._when_ready(lambda: self._wire.producer_id(name))
        known = await self._wire.producers(leader.node, place.remote, place.partition)
        ours = [producer for producer in known if producer.producer_id == producer_id]
        marking = _Marking(producer_id, 0, ours[0].coordinator_epoch if ours else -1)
        self._marking[place] = marking
        return marking

    # --- transactions ------------------------------------------------------------------------------------------------

    async def _by_transactions(self, place: Place, leader: Leader, goal: int) -> int:
        progress, lost = _Progress(f"{place.remote}/{place.partition}"), 0
        while True:
            try:
                # All our transactions are complete when this returns, so the end is stable.
                transactor = self._transactors.get(place) or await self._transactor(place)
                end = await self._end(place, leader)
                if end >= goal:
                    return end
                progress.note(end)
                del self._transactors[place]
                for _ in range(goal - end):
                    await self._empty_transaction(place, transactor)
            except ConnectionLost:
                self._transactors.pop(place, None)
                lost += 1
                if lost > _LOST_ANSWERS:
                    raise

    async def _empty_transaction(self, place: Place, transactor: Transactor) -> None:
        await self._when_ready(lambda: transactions.begin(self._wire, transactor, place.remote, place.partition))
        await self._when_ready(lambda: transactions.abort(self._wire, transactor))

    async def _transactor(self, place: Place) -> Transactor:
        name = self._identity.filling_id(place)
        transactor = await self._when_ready(lambda: transactions.settle(self._wire, name))
        self._transactors[place] = transactor
        return transactor

    async def _when_ready(self, request: Callable[[], Awaitable[T]]) -> T:
        """Repeat a request to a coordinator until it is ready."""
        return await when_ready(self._loop, request, _NOT_YET, _PATIENCE)

    # --- reading the log ---------------------------------------------------------------------------------------------

    async def _end(self, place: Place, leader: Leader) -> int:
        deadline = time.monotonic() + _PATIENCE
        while True:
            end = await self._wire.log_end(leader.node, place.remote, place.partition, leader.epoch)
            if end is not None:
                return end
            if time.monotonic() > deadline:
                message = f"the leader of {place.remote}/{place.partition} does not return its log end"
                raise NotFilled(message)
            await self._loop.sleep(_PAUSE)

    async def _look_at(self, place: Place, target: TopicInfo, start: int, end: int) -> None:
        """Read the gap, which must hold only markers."""
        log = f"{place.remote}/{place.partition}"
        deadline = time.monotonic() + _PATIENCE
        at = start
        while at < end:
            answer = await read(self._wire, target, place.partition, at)
            for batch in split(answer.records):
                if not batch.is_control or batch.base_offset != at:
                    message = f"another producer wrote into the gap of {log}: offset {at} holds records"
                    raise NotFilled(message)
                at = batch.next_offset
            if not answer.records and time.monotonic() > deadline:
                message = f"offset {at} of {log} is not replicated after {_PATIENCE:g} s"
                raise NotFilled(message)
