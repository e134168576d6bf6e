"""Base of the committers, which commit the positions of one task's channels with translated offsets.

`transactional` commits in transactions, `at_least_once` without. Positions are committed offsets of the flow's group at
the target, committed as a member of its current generation: a task that lost its partitions cannot commit.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import ClassVar, NamedTuple, TypeVar

from reconciler.records.batch import next_sequence
from reconciler.replicator.copy.agreement import Disagreement
from reconciler.replicator.lease.lease import Lease
from reconciler.replicator.partition import offset_syncs, reasons
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.in_flight import InFlightBatch
from reconciler.replicator.partition.offset_syncs import OffsetSync
from reconciler.replicator.partition.translated_channel import TranslatedChannel
from reconciler.wire import (
    BrokerError,
    ConnectionLost,
    ErrorCode,
    Loop,
    Membership,
    ProduceAsk,
    TopicInfo,
    Wire,
    error_name,
    when_ready,
)
from reconciler.wire.requests.commits import Log

T = TypeVar("T")

PAUSE = 0.002
RETRY = 0.2
# Seconds that an opening waits for a producer id; a longer wait would delay other openings.
PRODUCER_PATIENCE = 3.0
_LONGEST_RETRY = 5.0
_MOST_FAILURES = 10
# Brokers take 1 MB at once by default; a topic's name may have 249 letters, and a position's note about as many.
_SYNCS_AT_ONCE = 1_000
_PATIENCE = 10.0
# The coordinator is moving, or is still busy with the transaction before.
NOT_YET = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.CONCURRENT_TRANSACTIONS}
)


class UncertainOutcome(Exception):
    """It is uncertain what was written, or whether this member may commit it."""


class CommitContext(NamedTuple):
    """How positions are committed.

    Attributes:
        transactional_id: used only by this task while its process lives; empty without transactions.
        syncs_topic: the topic of offset syncs.
        interval: seconds between commits.
        remote_topic: returns the name of an original's copy.
    """

    transactional_id: str
    syncs_topic: str
    interval: float
    remote_topic: Callable[[str], str]


class CommitterParts(NamedTuple):
    """What a committer works with.

    Attributes:
        loop: the task's loop.
        wire: to the target; breaks when the lease is lost.
        context: how positions are committed.
        lease: of this task: its member in the group of the flow.
        offer: called with channels that may send now.
        written: called with each batch whose position is committed.
    """

    loop: Loop
    wire: Wire
    context: CommitContext
    lease: Lease
    offer: Callable[[Collection[Channel]], None]
    written: Callable[[Channel, InFlightBatch], None]


class SyncWriter(NamedTuple):
    """The producer of offset syncs; by default without a producer id."""

    producer_id: int = -1
    epoch: int = -1
    sequence: int = -1
    transactional_id: str | None = None


class Committer(ABC):
    """Commits for one task in one round.

    Args:
        parts: what it works with.

    Attributes:
        bell: rung when a channel may need the committer.
        closing: whether the round ends: no channel gets a producer any more.
        stopped: whether to commit a last time and end.
    """

    # What cannot be done while channels get no producer; part of a message.
    _waited_for: ClassVar[str]

    def __init__(self, parts: CommitterParts) -> None:
        self._loop, self._wire, self._terms, self._lease, self._offer, self._written = parts
        self._losses = parts.lease.losses
        self._channels: dict[Log, TranslatedChannel] = {}
        self._trouble: Exception | None = None
        self._failures = 0
        self.bell = self._loop.bell()
        self.closing = False
        self.stopped = False

    @property
    def transactional_id(self) -> str:
        """The producer's transactional id; empty without transactions."""
        return self._terms.transactional_id

    @property
    def member(self) -> Membership:
        """The task's current membership in the group."""
        return self._lease.membership

    @property
    def channels(self) -> Collection[TranslatedChannel]:
        """The channels that it commits for."""
        return self._channels.values()

    def add(self, channel: TranslatedChannel) -> None:
        """Commit for a channel from now on."""
        self._channels[channel.place.remote, channel.place.partition] = channel

    @abstractmethod
    def failed(self, channel: Channel) -> None:
        """Handle that it is uncertain which records of `channel` were written."""

    @abstractmethod
    async def producer(self, channel: TranslatedChannel) -> tuple[int, int]:
        """Return the producer's id and epoch, once nothing uncommitted of `channel` is left.

        Raises:
            ConnectionLost: the round ends, or an error lasts.
            Disagreement: the principal may not have one.
        """

    @abstractmethod
    async def run(self) -> None:
        """Commit until `stopped`, and a last time then."""

    async def _have_patience(self, deadline: float) -> None:
        """Wait a moment for a producer; after `deadline` (monotonic seconds) raise the last error.

        Raises:
            ConnectionLost: the round ends, or an error lasts.
            Disagreement: the principal may not have one.
        """
        if self.closing:
            message = "the round ends"
            raise ConnectionLost(message)
        if time.monotonic() > deadline:
            if isinstance(self._trouble, Disagreement):
                raise self._trouble
            if isinstance(self._trouble, BrokerError) and self._trouble.code in reasons.AUTHORIZATION:
                raise self._why_no_producer(self._trouble)
            message = f"{self._waited_for}: {self._trouble or 'no answer yet'}"
            raise ConnectionLost(message)
        await self._loop.sleep(PAUSE)

    def _why_no_producer(self, error: BrokerError) -> Disagreement:
        """Return the refusal of a producer."""
        if error.code == ErrorCode.GROUP_AUTHORIZATION_FAILED:
            return Disagreement.refused(error, "READ", f"group {self.member.group}")
        return Disagreement.refused(error, "WRITE", f"transactional id {self.transactional_id}")

    async def _back_off(self) -> None:
        """Wait before the next try, longer each time; a successful commit resets it."""
        await self._loop.sleep(min(RETRY * 2**self._failures, _LONGEST_RETRY))
        self._failures = min(self._failures + 1, _MOST_FAILURES)

    def _is_well(self) -> None:
        """Reset errors and backoff after a successful commit."""
        self._trouble = None
        self._failures = 0

    async def _syncs_topic(self) -> TopicInfo:
        """Return the topic of offset syncs, with its leader.

        Raises:
            ConnectionLost: no answer.
            UncertainOutcome: it is not there.
        """
        topic = self._terms.syncs_topic
        info = (await self._wire.topics([topic]))[topic]
        leader = info.partitions.get(0)
        if info.error in reasons.AUTHORIZATION:
            raise UncertainOutcome(reasons.not_allowed("WRITE", f"topic {topic}", error_name(info.error)).text)
        if info.error or leader is None or leader.error:
            message = f"topic {topic} is missing or has no leader: `anabranch replicate` makes it when it begins"
            raise UncertainOutcome(message)
        return info

    async def _write_syncs(self, info: TopicInfo, found: Sequence[OffsetSync], writer: SyncWriter) -> int:
        """Write offset syncs; return the next sequence number.

        Raises:
            ConnectionLost: no answer.
            UncertainOutcome: the topic did not take them.
        """
        producer_id, epoch, sequence, transactional_id = writer
        for portion in offset_syncs.portions(found, _SYNCS_AT_ONCE):
            batch = offset_syncs.batch_of(portion, int(time.time() * 1000))
            head = batch.header(producer_id, epoch, sequence, transactional=transactional_id is not None)
            ask = ProduceAsk(info.name, info.topic_id, 0, batch.body, head)
            answer = await self._wire.write_one(info.partitions[0].node, ask, transactional_id)
            if answer.error:
                name = error_name(answer.error)
                if answer.error in reasons.AUTHORIZATION:
                    raise UncertainOutcome(reasons.not_allowed("WRITE", f"topic {info.name}", name).text)
                message = f"topic {info.name} does not take offset syncs: {name} {answer.message or ''}"
                raise UncertainOutcome(message)
            sequence = next_sequence(sequence, batch.record_count) if producer_id >= 0 else sequence
        return sequence

    async def _when_ready(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Repeat a request while a coordinator is not ready."""
        return await when_ready(self._loop, ask, NOT_YET, _PATIENCE)

    def _holding(self) -> Membership:
        """Return the task's membership in its group.

        Raises:
            UncertainOutcome: the lease was lost since the records were written: another task may have continued, and
                the present membership must not commit what was written under the former one.
        """
        if self._lease.losses != self._losses:
            message = "the lease was lost meanwhile"
            raise UncertainOutcome(message)
        return self._lease.membership
