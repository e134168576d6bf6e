"""What a channel with offsets of its own takes an answer for, whatever opening it belongs to."""

from __future__ import annotations

import uuid

import pytest

from reconciler.model.tasks.status import PartitionState, Reason
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from reconciler.replicator.partition.place import PartitionSides
from reconciler.replicator.partition.shares import Place
from reconciler.replicator.partition.translated_channel import TranslatedChannel
from reconciler.wire import FetchAnswer, Leader, ProduceAnswer
from tests.support.records.batches import CONTROL, build, marked, some

SIDES = PartitionSides(Leader(1, 1, 0), uuid.uuid4(), Leader(1, 1, 0), uuid.uuid4())


def reading(*offsets: int) -> tuple[TranslatedChannel, list[Channel]]:
    """Return a channel that has read a batch of three records at each offset, and whose transaction was called off."""
    called_off: list[Channel] = []
    channel = TranslatedChannel(Place("t", 0, "r.t", "translated"), called_off.append)
    channel.begin(SIDES, 0, (7, 0), OffsetMetadata())
    channel.admitted = True
    for offset in offsets:
        channel.receive(answer_of(build(some(3), offset)), channel.fetch_at, channel.opening, 0.0)
    return channel, called_off


def answer_of(records: bytes) -> FetchAnswer:
    return FetchAnswer("t", 0, 0, 100, 100, 0, memoryview(records), ())


@pytest.mark.parametrize("error", [0, 3, 7, 20, 56])
def test_what_may_have_been_written_in_an_opening_that_is_over_calls_the_transaction_off(error: int) -> None:
    channel, called_off = reading(0)
    sent_batch = channel.send()
    channel.reopen(Reason("AB220", "the source's leader is gone"), 0.0)
    channel.answered(sent_batch, ProduceAnswer("r.t", 0, error, 5 if not error else -1, None), 0.0)
    assert called_off == [channel]
    assert not channel.written


@pytest.mark.parametrize("error", [10, 29, 32, 45, 87])
def test_what_was_certainly_not_written_in_an_opening_that_is_over_changes_nothing(error: int) -> None:
    channel, called_off = reading(0)
    sent_batch = channel.send()
    channel.reopen(Reason("AB220", "the source's leader is gone"), 0.0)
    channel.answered(sent_batch, ProduceAnswer("r.t", 0, error, -1, None), 0.0)
    assert called_off == []


def test_the_position_moves_over_what_holds_no_records_up_to_what_waits() -> None:
    channel, called_off = reading(4)
    assert (channel.position, channel.fetch_at) == (4, 7)
    sent_batch = channel.send()
    channel.receive(answer_of(build(some(2), 9)), 7, channel.opening, 0.0)
    assert channel.position == 4, "nothing is certain while something is in flight"
    channel.answered(sent_batch, ProduceAnswer("r.t", 0, 0, 40, None), 0.0)
    assert channel.position == 9
    assert [one.landing for one in channel.written] == [40]
    assert all(not one.body for one in channel.written)
    assert (called_off, channel.state) == ([], PartitionState.RUNNING)


def test_the_position_moves_over_what_holds_no_records_when_nothing_waits() -> None:
    channel, _ = reading(0)
    channel.receive(answer_of(marked(build(some(1), 3), CONTROL)), 3, channel.opening, 0.0)
    sent_batch = channel.send()
    assert (channel.position, channel.fetch_at) == (0, 4)
    channel.answered(sent_batch, ProduceAnswer("r.t", 0, 0, 40, None), 0.0)
    assert channel.position == 4
    assert [one.landing for one in channel.written] == [40]
