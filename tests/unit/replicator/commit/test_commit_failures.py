"""What commits positions when that does not go well, in transactions and without; no broker."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from reconciler.model.tasks.status import PartitionState
from reconciler.replicator.commit import at_least_once, transactional
from reconciler.replicator.commit.at_least_once import AtLeastOnceCommitter
from reconciler.replicator.commit.base import CommitContext, Committer, CommitterParts
from reconciler.replicator.commit.transactional import TransactionalCommitter
from reconciler.replicator.copy.agreement import Disagreement
from reconciler.replicator.lease.lease import Lease
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.in_flight import InFlightBatch
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from reconciler.replicator.partition.offset_syncs import OffsetSync, Span
from reconciler.replicator.partition.shares import Place
from reconciler.replicator.partition.translated_channel import AtLeastOnceChannel, TranslatedChannel
from reconciler.wire import BrokerError, ConnectionLost, Leader, Loop, Membership, ProduceAnswer, TopicInfo, Wire
from reconciler.wire.requests import commits
from reconciler.wire.requests.commits import CommittedPosition, Log
from tests.support.records.batches import build, some
from tests.support.replicator.channels import OUTAGE, PLACE, SIDES, feed

NOT_COORDINATOR, TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 16, 53
LOG = PLACE.remote, PLACE.partition


class Enough(Exception):
    """Enough was seen."""


@dataclass
class Still:
    """A loop, its bell, a wire and a lease, in which nothing takes time."""

    losses = 0
    membership = Membership(1, "group", "member", 1)
    most: int = 1_000
    pauses: list[float] = field(default_factory=list)
    meanwhile: Callable[[], None] = lambda: None

    def bell(self) -> Still:
        return self

    def ring(self) -> None: ...

    async def wait(self, _seconds: float) -> None:
        raise Enough

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.meanwhile()
        if len(self.pauses) == self.most:
            raise Enough

    async def connect(self) -> None: ...

    async def topics(self, names: Collection[str]) -> dict[str, TopicInfo]:
        return {name: TopicInfo(name, None, 0, {0: Leader(1, 1, 0)}) for name in names}

    async def write_one(self, *_arguments: Any) -> ProduceAnswer:
        return ProduceAnswer("syncs", 0, 0, 0, None)


def through(work: Coroutine[Any, Any, object]) -> None:
    """Go through what never has to wait, without a loop of asyncio's: others in this process may have theirs."""
    with pytest.raises(StopIteration):
        work.send(None)


def made(
    kind: type[Committer],
    still: Still,
    written: list[InFlightBatch],
    offer: Callable[[Collection[Channel]], None] = lambda _: None,
) -> Committer:
    terms = CommitContext("" if kind is AtLeastOnceCommitter else "mine", "syncs", 0.0, "r.{}".format)
    loop, wire, lease = cast("Loop", still), cast("Wire", still), cast("Lease", still)
    return kind(CommitterParts(loop, wire, terms, lease, offer, lambda _, sent_batch: written.append(sent_batch)))


def channel_of(committing: Committer, place: Place = PLACE) -> AtLeastOnceChannel:
    channel = AtLeastOnceChannel(place, committing.failed)
    committing.add(channel)
    return channel


def failing(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    async def fail(*_arguments: object) -> None:
        raise error

    monkeypatch.setattr(commits, "idempotent_producer", fail)
    monkeypatch.setattr(transactional, "settle", fail)


@pytest.mark.parametrize("kind", [TransactionalCommitter, AtLeastOnceCommitter])
def test_trouble_that_lasts_is_met_with_longer_and_longer_pauses(
    monkeypatch: pytest.MonkeyPatch, kind: type[Committer]
) -> None:
    still = Still(most=8)
    failing(monkeypatch, BrokerError(NOT_COORDINATOR))
    with pytest.raises(Enough):
        through(made(kind, still, []).run())
    assert still.pauses == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0])


@pytest.mark.parametrize("kind", [TransactionalCommitter, AtLeastOnceCommitter])
def test_whoever_waits_for_a_producer_is_told_the_trouble(
    monkeypatch: pytest.MonkeyPatch, kind: type[Committer]
) -> None:
    for module in (transactional, at_least_once):
        monkeypatch.setattr(module, "PRODUCER_PATIENCE", -1.0)
    committing = made(kind, Still(most=1), [])
    channel = channel_of(committing)
    with pytest.raises(ConnectionLost, match="no answer yet"):
        through(committing.producer(channel))
    failing(monkeypatch, ConnectionLost("cut off"))
    with pytest.raises(Enough):
        through(committing.run())
    with pytest.raises(ConnectionLost, match=r"cannot be.*: .*cut off"):
        through(committing.producer(channel))


def test_a_transactional_id_that_is_closed_to_us_is_told_as_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactional, "PRODUCER_PATIENCE", -1.0)
    failing(monkeypatch, BrokerError(TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    committing = made(TransactionalCommitter, Still(most=1), [])
    with pytest.raises(Enough):
        through(committing.run())
    with pytest.raises(
        Disagreement, match=f"WRITE on transactional id {committing.transactional_id} is refused"
    ) as one:
        through(committing.producer(channel_of(committing)))
    state, reason = one.value.verdict
    assert (state, reason.code) == (PartitionState.PARKED, "AB213")


@pytest.mark.parametrize(("meanwhile", "committed"), [("nothing", 3), ("ends", 3), ("begins", 100)])
def test_a_position_is_remembered_unless_its_channel_has_begun_elsewhere(
    monkeypatch: pytest.MonkeyPatch, meanwhile: str, committed: int
) -> None:
    told: list[Mapping[Log, CommittedPosition]] = []
    written: list[InFlightBatch] = []
    committing = made(AtLeastOnceCommitter, Still(), written)
    channel = channel_of(committing)
    # An exactly-once run has committed before.
    channel.begin(SIDES, 0, (7, 0), OffsetMetadata("s", "t", "", 12, 4))
    feed(channel, build(some(3), 0))
    channel.answered(channel.send(), ProduceAnswer(PLACE.remote, PLACE.partition, 0, 40, None), 0.0)

    async def commit(_wire: Wire, _who: Membership, positions: Mapping[Log, CommittedPosition]) -> dict[Log, int]:
        told.append(positions)
        if meanwhile != "nothing":
            channel.reopen(OUTAGE, 0.0)
        if meanwhile == "begins":
            channel.begin(SIDES, 100, (7, 1), OffsetMetadata())
        return {}

    async def producer(_wire: Wire) -> int:
        return 7

    monkeypatch.setattr(commits, "commit_acknowledged", commit)
    monkeypatch.setattr(commits, "idempotent_producer", producer)
    with pytest.raises(Enough):
        through(committing.run())
    assert (told[0][LOG].offset, len(told)) == (3, 1)
    note = OffsetMetadata.parse(told[0][LOG].note)
    assert (note.source_id, note.transactional_id, note.began) == ("s", "", -1)
    assert note.epoch is not None
    assert (channel.committed, channel.is_behind) == (committed, False)
    assert len(written) == (0 if meanwhile == "begins" else 1)
    assert channel.state is (PartitionState.OPENING if meanwhile == "ends" else PartitionState.RUNNING)


def commits_well(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[Log, CommittedPosition]]:
    told: list[Mapping[Log, CommittedPosition]] = []

    async def commit(_wire: Wire, _who: Membership, positions: Mapping[Log, CommittedPosition]) -> dict[Log, int]:
        told.append(positions)
        return {}

    async def producer(_wire: Wire) -> int:
        return 7

    monkeypatch.setattr(commits, "commit_acknowledged", commit)
    monkeypatch.setattr(commits, "idempotent_producer", producer)
    return told


def test_that_the_source_is_anew_is_said_until_a_sync_has_said_it(monkeypatch: pytest.MonkeyPatch) -> None:
    told, anew = commits_well(monkeypatch), list[bool]()
    committing = made(AtLeastOnceCommitter, Still(), [])
    channel = channel_of(committing)
    channel.begin(SIDES, 4, (7, 0), OffsetMetadata("s", "t", epoch=1, anew_from=4))

    async def write(_topic: object, found: list[OffsetSync], _writer: object) -> None:
        anew.extend(sync.span is not None and (sync.span.begin, sync.span.is_anew) == (4, True) for sync in found)

    monkeypatch.setattr(committing, "_write_syncs", write)
    # A gap alone moves the position, and no sync can tell of it.
    channel.position = 6
    with pytest.raises(Enough):
        through(committing.run())
    assert (anew, [OffsetMetadata.parse(one[LOG].note).anew_from for one in told]) == ([], [4])
    # Who comes then knows it from there.
    channel.begin(SIDES, 6, (7, 1), OffsetMetadata.parse(told[0][LOG].note))
    for first in (6, 9):
        feed(channel, build(some(3), first))
        channel.answered(channel.send(), ProduceAnswer(PLACE.remote, PLACE.partition, 0, 40 + first, None), 0.0)
        committing._due_at = 0.0  # type: ignore[attr-defined]
        with pytest.raises(Enough):
            through(committing.run())
    assert (anew, [OffsetMetadata.parse(one[LOG].note).anew_from for one in told]) == ([True, False], [4, None, None])


@pytest.mark.parametrize("kind", [TranslatedChannel, AtLeastOnceChannel])
def test_what_no_sync_has_said_is_kept_by_whoever_commits(kind: type[TranslatedChannel]) -> None:
    """A flow may change to at-least-once while nothing but a gap has come behind a truncation."""
    channel = kind(PLACE, lambda _: None)
    channel.begin(SIDES, 4, (7, 0), OffsetMetadata("s", "t", epoch=1, anew_from=4))
    assert channel.last_word().anew_from == 4
    # Somebody has moved its position back.
    channel.begin(SIDES, 2, (7, 0), OffsetMetadata("s", "t", anew_from=4))
    channel.admitted = True
    feed(channel, build(some(3), 2))
    channel.answered(channel.send(), ProduceAnswer(PLACE.remote, PLACE.partition, 0, 40, None), 0.0)
    assert channel.last_word().anew_from is None
    (sync,) = channel.syncs()
    assert sync.span == Span(2, (3, 0), kind is AtLeastOnceChannel, kind is AtLeastOnceChannel)


def test_a_copy_that_begins_writes_nothing_before_that_is_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    told, offered = commits_well(monkeypatch), list[Channel]()
    committing = made(AtLeastOnceCommitter, Still(), [], offered.extend)
    channel = channel_of(committing)
    channel.begin(SIDES, 0, (7, 0), OffsetMetadata())
    channel.is_new = True
    feed(channel, build(some(3), 0))
    assert not channel.can_send()
    with pytest.raises(Enough):
        through(committing.run())
    assert [positions[LOG].offset for positions in told] == [0]
    assert offered == [channel]
    assert channel.can_send()


def test_who_begins_while_nothing_can_be_committed_waits_like_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    commits_well(monkeypatch)
    still = Still(most=20)
    committing = made(AtLeastOnceCommitter, still, [])
    one, other = channel_of(committing), channel_of(committing, PLACE._replace(partition=PLACE.partition + 1))
    one.begin(SIDES, 0, (7, 0), OffsetMetadata())
    feed(one, build(some(3), 0) + build(some(3), 3))
    answer = ProduceAnswer(PLACE.remote, PLACE.partition, 0, 40, None)
    one.answered(one.send(), answer, 0.0)
    under_way = [(one, one.send())]

    async def fail(*_arguments: object) -> None:
        # It begins behind its producer, whatever happens meanwhile.
        if other.position < 0:
            still.meanwhile = go_on
        message = "cut off"
        raise ConnectionLost(message)

    def go_on() -> None:
        if len(still.pauses) == 1:
            other.begin(SIDES, 0, (7, 1), OffsetMetadata())
            feed(other, b"".join(build(some(1), number) for number in range(30)))
        while under_way:
            channel, sent_batch = under_way.pop()
            channel.answered(sent_batch, answer, 0.0)
        if other.can_send():
            under_way.append((other, other.send()))

    monkeypatch.setattr(commits, "commit_acknowledged", fail)
    still.meanwhile = go_on
    with pytest.raises(Enough):
        through(committing.run())
    assert (one.state, other.state) == (PartitionState.OPENING, PartitionState.OPENING)
    assert not other.can_send()
