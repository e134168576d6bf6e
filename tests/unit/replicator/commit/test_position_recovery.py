"""The position that the last offset sync of a partition tells, or why it tells none; no broker."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Coroutine, Generator, Sequence
from typing import Any, cast

import pytest

from reconciler.model.offsets.runs import CopyRecord
from reconciler.model.tasks.status import PartitionState
from reconciler.replicator.commit.position_recovery import PositionRecovery, PositionUnknown, position_of
from reconciler.replicator.copy.agreement import Disagreement
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from reconciler.replicator.partition.offset_syncs import OffsetSync, batch_of
from reconciler.wire import EARLIEST, BrokerError, ConnectionLost, FetchAnswer, FetchAsk, Leader, TopicInfo
from reconciler.wire.requests.commits import CommittedPosition
from tests.support.records.batches import CONTROL, build, damaged, marked, resealed, some
from tests.support.replicator.channels import PLACE

UNKNOWN_TOPIC, LEADER_NOT_AVAILABLE, TOPIC_AUTHORIZATION_FAILED = 3, 5, 29
KNOWN = CopyRecord("source", "target")
NOTE = OffsetMetadata("source", "target", "anabranch.t.f.run.0", 90, 4)
OURS, THEIRS = 7, 8


def sync(offset: int | None, note: OffsetMetadata = NOTE, topic: str = PLACE.topic, partition: int = 3) -> OffsetSync:
    return OffsetSync(topic, partition, 5, 7, None if offset is None else CommittedPosition(offset, str(note)))


@pytest.mark.parametrize(
    ("note", "known"),
    [
        (NOTE, KNOWN),
        (NOTE._replace(source_id=None), KNOWN),
        (NOTE, CopyRecord(None, "target")),
        # What was put aside, and where the position is in the source's log, are other questions.
        (NOTE._replace(epoch=None), CopyRecord("source", "target", aside=((3, 4),))),
    ],
)
def test_the_last_sync_of_the_same_topics_tells_the_position(note: OffsetMetadata, known: CopyRecord) -> None:
    assert position_of(sync(12, note), known) == CommittedPosition(12, str(note))


@pytest.mark.parametrize(
    ("found", "known", "why"),
    [
        (None, KNOWN, "there is none"),
        (sync(None), KNOWN, "was not written in a transaction"),
        (sync(12, NOTE._replace(target_id="older")), KNOWN, "another remote topic"),
        (sync(12, NOTE._replace(target_id=None)), KNOWN, "another remote topic"),
        (sync(12, NOTE._replace(target_id=None)), CopyRecord("source", None), "another remote topic"),
        (sync(12), CopyRecord("source", None), "another remote topic"),
        (sync(12, NOTE._replace(source_id="older")), KNOWN, "another source topic"),
        (OffsetSync("orders", 3, 5, 7, CommittedPosition(12, "what is this")), KNOWN, "another remote topic"),
    ],
)
def test_whatever_else_is_there_tells_none(found: OffsetSync | None, known: CopyRecord, why: str) -> None:
    with pytest.raises(PositionUnknown, match=why):
        position_of(found, known)


class Turn:
    """Lets the others go on."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class Topic:
    """The topic of offset syncs in a broker that does not move, and the loop of a task to which nothing takes time."""

    def __init__(self) -> None:
        self.topic_id = uuid.uuid4()
        self.error = 0
        self.batches: list[bytes] = []
        self.end = self.first = 0
        self.stable: int | None = None
        self.aborted: list[tuple[int, int]] = []
        self.asked: list[int] = []
        self.slept = 0
        self.ends_after: int | None = None
        self.waits = False

    def write(self, *found: OffsetSync, producer: int = OURS) -> None:
        batch = batch_of(found, 1_000)
        data = batch.header(producer, 0, 0, transactional=True) + batch.body
        self.append(data, len(found))

    def append(self, data: bytes, count: int) -> None:
        self.batches.append(self.end.to_bytes(8, "big") + data[8:])
        self.end += count

    async def sleep(self, _seconds: float) -> None:
        self.slept += 1
        if self.waits:
            await Turn()
        if self.slept == self.ends_after:
            self.stable = None

    async def topics(self, names: Collection[str]) -> dict[str, TopicInfo]:
        return {name: TopicInfo(name, self.topic_id, self.error, {0: Leader(1, 1, 0)}) for name in names}

    async def offset(self, _node: int, _topic: str, _partition: int, which: int) -> int:
        return self.first if which == EARLIEST else self.end

    async def fetch(
        self, _node: int, asks: Sequence[FetchAsk], _wait_ms: int, _most: int, committed: bool
    ) -> list[FetchAnswer]:
        assert committed
        (ask,) = asks
        self.asked.append(ask.offset)
        stable = self.end if self.stable is None else self.stable
        offsets = [int.from_bytes(data[:8], "big") for data in self.batches]
        visible = [data for at, data in zip(offsets, self.batches, strict=True) if ask.offset <= at < stable]
        aborted = tuple(self.aborted)
        # One batch at a time, as a large topic would be read.
        return [FetchAnswer(ask.topic, 0, 0, self.end, stable, self.first, b"".join(visible[:1]), aborted)]

    def recovery(self) -> PositionRecovery:
        return PositionRecovery(cast("Any", self), cast("Any", self), "syncs")


def through(work: Coroutine[Any, Any, CommittedPosition]) -> int:
    """Go through what never has to wait; return the offset."""
    try:
        work.send(None)
    except StopIteration as done:
        return int(done.value.offset)
    message = "it waits for something"
    raise AssertionError(message)


@pytest.fixture
def topic() -> Topic:
    return Topic()


def test_the_last_one_of_the_partition_counts(topic: Topic) -> None:
    recovery = topic.recovery()
    topic.write(sync(None), sync(10), sync(99, partition=2))
    topic.append(build(some(3)), 3)
    topic.write(sync(None), sync(20))
    topic.write(sync(77, topic="other"))
    assert through(recovery.position(PLACE, KNOWN)) == 20
    topic.write(sync(30))
    before = len(topic.asked)
    assert through(recovery.position(PLACE, KNOWN)) == 30
    assert len(topic.asked) == before + 1, "what was read before is not read again"
    topic.write(sync(None))
    with pytest.raises(PositionUnknown, match="not written in a transaction"):
        through(recovery.position(PLACE, KNOWN))


def test_what_was_aborted_says_nothing(topic: Topic) -> None:
    topic.write(sync(10))
    topic.aborted.append((THEIRS, topic.end))
    topic.write(sync(20), producer=THEIRS)
    topic.append(marked(build(some(1), producer=(THEIRS, 0, 1), transactional=True), CONTROL), 1)
    assert through(topic.recovery().position(PLACE, KNOWN)) == 10


def test_the_end_of_a_transaction_is_waited_for(topic: Topic) -> None:
    topic.write(sync(10))
    topic.stable = topic.end
    topic.write(sync(20))
    recovery = topic.recovery()
    with pytest.raises(Disagreement) as stopped:
        through(recovery.position(PLACE, KNOWN))
    assert (stopped.value.verdict[0], stopped.value.verdict[1].code) == (PartitionState.OPENING, "AB220")
    topic.ends_after = topic.slept + 3
    assert through(recovery.position(PLACE, KNOWN)) == 20
    # What begins behind the end of now is nobody's who has the partition.
    topic.stable = topic.end
    assert through(recovery.position(PLACE, KNOWN)) == 20


def test_offsets_that_compaction_took_are_passed_over(topic: Topic) -> None:
    topic.first = topic.end = 5
    topic.write(sync(10))
    topic.end += 4
    topic.write(sync(99, partition=2))
    topic.end += 4
    assert through(topic.recovery().position(PLACE, KNOWN)) == 10


def test_a_topic_made_anew_or_deleted_tells_nothing_of_before(topic: Topic) -> None:
    recovery = topic.recovery()
    topic.write(sync(10))
    assert through(recovery.position(PLACE, KNOWN)) == 10
    topic.topic_id = uuid.uuid4()
    topic.batches.clear()
    with pytest.raises(PositionUnknown, match="there is none"):
        through(recovery.position(PLACE, KNOWN))
    topic.write(sync(20))
    assert through(recovery.position(PLACE, KNOWN)) == 20
    topic.error = UNKNOWN_TOPIC
    with pytest.raises(PositionUnknown, match="there is none"):
        through(recovery.position(PLACE, KNOWN))


def test_what_a_leader_has_lost_is_forgotten(topic: Topic) -> None:
    recovery = topic.recovery()
    topic.write(sync(10))
    topic.write(sync(20))
    assert through(recovery.position(PLACE, KNOWN)) == 20
    topic.batches.pop()
    topic.end -= 1
    assert through(recovery.position(PLACE, KNOWN)) == 10


@pytest.mark.parametrize(
    ("error", "state", "code"),
    [
        (LEADER_NOT_AVAILABLE, PartitionState.OPENING, "AB220"),
        (TOPIC_AUTHORIZATION_FAILED, PartitionState.PARKED, "AB213"),
    ],
)
def test_a_topic_that_is_not_readable_now_parks_no_copy_for_good(
    topic: Topic, error: int, state: PartitionState, code: str
) -> None:
    topic.write(sync(10))
    topic.error = error
    with pytest.raises(Disagreement) as stopped:
        through(topic.recovery().position(PLACE, KNOWN))
    assert (stopped.value.verdict[0], stopped.value.verdict[1].code) == (state, code)


def test_who_may_not_read_is_told_what_to_allow(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*_arguments: object) -> int:
        raise BrokerError(TOPIC_AUTHORIZATION_FAILED)

    monkeypatch.setattr(topic, "offset", refused)
    with pytest.raises(Disagreement) as stopped:
        through(topic.recovery().position(PLACE, KNOWN))
    assert "READ on topic syncs" in str(stopped.value.verdict[1])


def test_an_answer_that_a_quota_emptied_is_no_end(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(*_arguments: object, **_named: object) -> list[FetchAnswer]:
        return []

    topic.write(sync(10))
    recovery = topic.recovery()
    with monkeypatch.context() as quota:
        quota.setattr(topic, "fetch", nothing)
        with pytest.raises(ConnectionLost, match="quota"):
            through(recovery.position(PLACE, KNOWN))
    assert through(recovery.position(PLACE, KNOWN)) == 10


@pytest.mark.parametrize("is_sealed", [True, False])
def test_damage_hides_which_one_is_the_last(topic: Topic, is_sealed: bool) -> None:
    topic.write(sync(10))
    broken = damaged(build(some(1))[:-1])
    topic.append(resealed(broken) if is_sealed else broken + b"x", 1)
    # Damage on the way may be gone the next time.
    with pytest.raises(PositionUnknown if is_sealed else Disagreement, match="cannot be read"):
        through(topic.recovery().position(PLACE, KNOWN))


def test_who_asks_at_once_shares_a_reading_and_its_failure(topic: Topic) -> None:
    """The one under way may have begun too early; all others share the next."""
    topic.write(sync(10))
    topic.stable = 0
    recovery = topic.recovery()
    askers = [recovery.position(PLACE, KNOWN) for _ in range(16)]
    topic.waits = True
    failed: list[Disagreement] = []
    while askers:
        for asker in list(askers):
            try:
                asker.send(None)
            except Disagreement as error:
                failed.append(error)
                askers.remove(asker)
    assert (len(failed), len({id(error) for error in failed})) == (16, 2)
