"""Whether a source has lost what was copied, by the leader epochs of what was read and the answers of its leaders."""

from __future__ import annotations

import asyncio
import uuid
from typing import cast

import pytest

from reconciler.model.offsets.runs import CopyRecord, Run, Runs
from reconciler.model.tasks.status import PartitionState
from reconciler.replicator.copy.agreement import Disagreement, Logs
from reconciler.replicator.copy.log_tail import LogTail
from reconciler.replicator.copy.truncation import refuse_truncated, truncated_at
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from reconciler.replicator.partition.place import ReadPosition
from reconciler.replicator.partition.translated_channel import TranslatedChannel
from reconciler.wire import BrokerError, Leader, TopicInfo, Wire
from tests.support.records.batches import CONTROL, build, marked, some
from tests.support.replicator.channels import PLACE, SIDES, feed, opened

TOPIC_ID, COPY_ID = uuid.UUID(int=7), uuid.UUID(int=17)
LEADER = 9
FENCED_LEADER_EPOCH = 74


class Source:
    """A leader that knows where epochs end in its log."""

    def __init__(self, ends: dict[int, int] | None = None, error: int = 0) -> None:
        self._ends = ends or {}
        self._error = error
        self.asked: list[tuple[int, int]] = []

    async def epoch_end(self, _node: int, _topic: str, _partition: int, current: int, asked: int) -> int | None:
        self.asked.append((current, asked))
        if self._error:
            raise BrokerError(self._error)
        return self._ends.get(asked)


def topic(epoch: int = LEADER, topic_id: uuid.UUID | None = TOPIC_ID) -> TopicInfo:
    return TopicInfo(PLACE.topic, topic_id, 0, {PLACE.partition: Leader(1, epoch, 0)})


def found(
    source: Source,
    read: ReadPosition | None,
    position: int = 100,
    epoch: int = LEADER,
    topic_id: uuid.UUID | None = TOPIC_ID,
) -> int | None:
    wire = cast("Wire", source)
    return asyncio.run(truncated_at(wire, topic(epoch, topic_id), PLACE.partition, position, read))


def at_epoch(records: bytes, epoch: int) -> bytes:
    """Return one batch as the leader of an epoch has appended it."""
    return records[:12] + epoch.to_bytes(4, "big", signed=True) + records[16:]


@pytest.mark.parametrize(("end", "answer"), [(99, 99), (0, 0), (100, None), (250, None), (None, None)])
def test_an_end_of_the_known_epoch_below_the_position_is_a_truncation(end: int | None, answer: int | None) -> None:
    """A leader that does not know the epoch proves nothing."""
    source = Source({} if end is None else {4: end})
    assert found(source, ReadPosition(100, 4, TOPIC_ID, COPY_ID)) == answer
    assert source.asked == [(LEADER, 4)]


@pytest.mark.parametrize(
    ("read", "epoch", "topic_id"),
    [
        pytest.param(None, LEADER, TOPIC_ID, id="nothing-is-known"),
        pytest.param(ReadPosition(100, LEADER, TOPIC_ID, COPY_ID), LEADER, TOPIC_ID, id="the-leader-is-the-same"),
        pytest.param(ReadPosition(100, 4, TOPIC_ID, COPY_ID), -1, TOPIC_ID, id="no-epochs"),
        pytest.param(ReadPosition(100, 4, TOPIC_ID, COPY_ID), LEADER, uuid.UUID(int=8), id="another-topic"),
    ],
)
def test_when_nobody_is_asked(read: ReadPosition | None, epoch: int, topic_id: uuid.UUID) -> None:
    source = Source({4: 0})
    assert found(source, read, epoch=epoch, topic_id=topic_id) is None
    assert source.asked == []


@pytest.mark.parametrize(
    ("position", "read", "answer"), [(60, 100, None), (200, 70, None), (90, 100, 80), (200, 81, 80)]
)
def test_a_copy_that_is_not_as_far_as_was_read_or_farther(position: int, read: int, answer: int | None) -> None:
    """Somebody else may have copied what was written under later epochs, and a copy made anew has lost nothing."""
    assert found(Source({4: 80}), ReadPosition(read, 4, TOPIC_ID, COPY_ID), position) == answer


def test_a_leader_that_has_another_epoch_is_asked_again_later() -> None:
    with pytest.raises(Disagreement) as refused:
        found(Source(error=FENCED_LEADER_EPOCH), ReadPosition(100, 4, TOPIC_ID, COPY_ID))
    state, reason = refused.value.verdict
    assert (state, reason.code) == (PartitionState.OPENING, "AB220")


def logs(end: int, shift: int = 0, copy_id: uuid.UUID = COPY_ID) -> Logs:
    target = TopicInfo(PLACE.remote, copy_id, 0, {})
    record = CopyRecord(None, None, runs=Runs((Run(0, shift),)) if shift else Runs())
    return Logs(PLACE, topic(), target, 0, 0, end, LogTail(None, end), record)


@pytest.mark.parametrize("shift", [0, 7])
def test_identical_offsets_park_and_say_how_much_where_and_what_to_do(shift: int) -> None:
    wire = cast("Wire", Source({4: 2_000}))
    with pytest.raises(Disagreement) as refused:
        asyncio.run(refuse_truncated(wire, logs(5_000 + shift, shift), ReadPosition(5_000, 4, TOPIC_ID, COPY_ID)))
    state, reason = refused.value.verdict
    assert (state, reason.code) == (PartitionState.PARKED, "AB219")
    assert reason.text.startswith("3,000 offsets of orders/3 that were copied, 2000 to 4999, are no")
    assert "anabranch recreate --target" in reason.text


def test_a_copy_that_was_made_anew_is_another_one() -> None:
    source = Source({4: 2_000})
    again = logs(5_000, copy_id=uuid.UUID(int=18))
    asyncio.run(refuse_truncated(cast("Wire", source), again, ReadPosition(5_000, 4, TOPIC_ID, COPY_ID)))
    assert source.asked == []


def test_a_channel_knows_the_epoch_of_what_it_read_last() -> None:
    channel = opened()
    assert channel.read is None
    feed(channel, at_epoch(build(some(3)), 2) + at_epoch(build(some(2), 3), 4))
    assert channel.read == ReadPosition(5, 4, None, None)
    # What says nothing of epochs was sent by a leader whose epoch is no older.
    feed(channel, at_epoch(build(some(1), 5), -1))
    assert channel.read == ReadPosition(6, SIDES.source.epoch, None, None)
    # So was what comes out as a gap: its batches are not looked at any more.
    feed(channel, at_epoch(build(some(1), 6), 4) + at_epoch(marked(build(some(1), 7), CONTROL), 5))
    assert channel.read == ReadPosition(8, SIDES.source.epoch, None, None)
    feed(channel, b"")
    assert channel.read == ReadPosition(8, SIDES.source.epoch, None, None)


def test_what_was_read_is_known_beyond_an_opening() -> None:
    channel = opened()
    feed(channel, at_epoch(build(some(3)), 2))
    channel.resume()
    channel.retry_now()
    assert channel.read == ReadPosition(3, 2, None, None)


def test_a_position_is_committed_with_the_epoch_of_what_was_read() -> None:
    channel = TranslatedChannel(PLACE, lambda _channel: None)
    note = OffsetMetadata("one", "two", "three")
    channel.begin(SIDES, 0, (1, 0), note)
    assert channel.last_word() == note
    feed(channel, at_epoch(build(some(3)), 2))
    assert channel.last_word() == OffsetMetadata("one", "two", "three", epoch=2)
    # Another opening may begin at another place, of which that says nothing.
    channel.begin(SIDES, 0, (1, 0), note)
    assert channel.last_word() == note


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ('{"source": "s", "target": null, "producer": "p"}', OffsetMetadata("s", None, "p")),
        ('{"source": "s", "target": "t", "producer": "p", "epoch": 0}', OffsetMetadata("s", "t", "p", epoch=0)),
        ('{"source": "s", "target": "t", "producer": "p", "epoch": -1}', OffsetMetadata("s", "t", "p")),
        ('{"source": "s", "target": "t", "producer": "p", "epoch": "4"}', OffsetMetadata("s", "t", "p")),
        (str(OffsetMetadata("s", "t", "p", 3, 4, 5)), OffsetMetadata("s", "t", "p", 3, 4, 5)),
        (str(OffsetMetadata("s", "t", anew_from=0)), OffsetMetadata("s", "t", anew_from=0)),
        ("", OffsetMetadata(None, None, "")),
        ("[]", OffsetMetadata(None, None, "")),
    ],
)
def test_notes_of_earlier_versions_are_readable(text: str, note: OffsetMetadata) -> None:
    assert OffsetMetadata.parse(text) == note
