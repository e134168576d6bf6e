"""Batches that are refused for some of their records: which these are, and at what cost the others go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.declared.flow import Flow
from reconciler.model.names.selection import Selection
from reconciler.model.offsets.runs import CopyRecord
from reconciler.model.tasks.status import PartitionState, Reason
from reconciler.records.batch import Batch
from reconciler.records.split import split
from reconciler.replicator.copy.copy_records import Change
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.in_flight import InFlightBatch
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from reconciler.replicator.partition.place import LogEnd
from reconciler.replicator.partition.refusals import RefusedRecords, refused_records
from reconciler.replicator.partition.shares import Place
from reconciler.replicator.partition.translated_channel import TranslatedChannel
from reconciler.replicator.task.dead_letters import DeadLetters
from reconciler.wire import Leader, ProduceAnswer, ProduceAsk, RecordError, TopicInfo
from reconciler.wire.protocol import producing
from tests.support.records.batches import CODECS, NONE, Content, build
from tests.support.records.library_records import decode
from tests.support.replicator.channels import EPOCH, PLACE, PRODUCER_ID, SIDES, answer, fetched
from tests.unit.wire.protocol.test_fast_path import BY_ID, BY_NAME, NAMES, produced

WITHOUT_KEY = "Compacted topic cannot accept message without key in topic partition east.orders-3."
INVALID_RECORD, INVALID_TIMESTAMP, TOO_LARGE = 87, 32, 10
# What brokers put together of the first three.
SUMMARY = (
    "One or more records have been rejected due to 3 record errors in total, and only showing the first three errors "
    f"at most: [RecordError(batchIndex=0, message='{WITHOUT_KEY}'), RecordError(batchIndex=3, message='{WITHOUT_KEY}')]"
)


def keyless(bad: Collection[int], count: int, codec: int = NONE, base: int = 0) -> bytes:
    """Return one batch in which some records have no key."""
    return build([Content(1_000 + n, None if n in bad else b"k", b"value-%d" % n) for n in range(count)], base, codec)


class Target:
    """A compacted copy: it refuses batches with records that have no key, and says which, where it can."""

    def __init__(self, kind: type[Channel], names: bool = True, has_letters: bool = True, merge: int = 0) -> None:
        self.names = names
        put_aside = self._put_aside if has_letters else None
        if kind is TranslatedChannel:
            self.channel: Channel = TranslatedChannel(PLACE, lambda _: None, merge, None, put_aside)
        else:
            self.channel = Channel(PLACE, self._fill, merge, None, put_aside)
        self.record = CopyRecord("a", "b")
        self.values: list[bytes | None] = []
        self.letters: list[tuple[int, str]] = []
        self.end = self.openings = 0

    def _fill(self, channel: Channel) -> None:
        gap, _ = channel.gap()
        self.end = gap.next
        channel.filled(channel.opening, gap.next, gap.next, 0.0)

    def _put_aside(self, channel: Channel, _sent_batch: InFlightBatch, refused: Sequence[RefusedRecords]) -> None:
        self.letters += [(one.offset, str(one.reason)) for one in refused]
        self.record = self.record.without(*[one.offset for one in refused])
        channel.put_aside()

    def copy(self, log: bytes, until: int, most: int = 400) -> None:
        """Have a log copied; stop where the partition parks."""
        channel = self.channel
        while channel.position < until and channel.state is not PartitionState.PARKED:
            assert self.openings < most, self.letters
            self.openings += 1
            position = max(0, channel.position)
            channel.leave_out(self.record.aside_from(position))
            if isinstance(channel, TranslatedChannel):
                channel.begin(SIDES, position, (PRODUCER_ID, EPOCH), OffsetMetadata())
                channel.admitted = True
            else:
                channel.open(SIDES, LogEnd(position, PRODUCER_ID, EPOCH, position))
            channel.receive(fetched(log), channel.fetch_at, channel.opening, 0.0)
            while channel.can_send():
                sent = []
                while channel.can_send():
                    sent.append(channel.send())
                for sent_batch in sent:
                    self._answer(sent_batch)

    def _answer(self, sent_batch: InFlightBatch) -> None:
        if sent_batch.opening != self.channel.opening:
            self.channel.answered(sent_batch, answer(error=45), 0.0)
            return
        sent = Batch(
            0, sent_batch.records - 1, sent_batch.records, sent_batch.head[22] & 7, 0, 0, -1, -1, -1, 0, sent_batch.body
        )
        records = decode(sent.rewritten(1, 0, 0))
        bad = [RecordError(n, WITHOUT_KEY) for n, one in enumerate(records) if one.key is None]
        if bad:
            named = tuple(bad) if self.names else ()
            self.channel.answered(
                sent_batch, answer(error=INVALID_RECORD, message=SUMMARY)._replace(records=named), 0.0
            )
            return
        self.values += [one.value for one in records]
        self.channel.answered(sent_batch, answer(sent_batch.landing), 0.0)


KINDS = pytest.mark.parametrize("kind", [Channel, TranslatedChannel])


@KINDS
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("bad", [{0}, {9}, {0, 3, 6}, {3, 4, 5}, set(range(10)), set(range(0, 10, 2))])
def test_all_bad_records_of_a_batch_cost_one_opening(kind: type[Channel], codec: int, bad: set[int]) -> None:
    target = Target(kind)
    target.copy(keyless(bad, 10, codec), 10)
    assert [offset for offset, _ in target.letters] == sorted(bad)
    assert target.values == [b"value-%d" % n for n in range(10) if n not in bad]
    assert target.openings == 2
    text = f"east.orders never accepts it (INVALID_RECORD: {WITHOUT_KEY.rstrip('.')}) [AB217]"
    assert {reason for _, reason in target.letters} == {text}


@KINDS
@pytest.mark.parametrize("merge", [0, 256 * 1024])
def test_each_batch_with_bad_records_costs_one_opening_and_the_others_none(kind: type[Channel], merge: int) -> None:
    """Thirty records in batches of five, every third without a key: it was 39 and more before."""
    bad = set(range(0, 30, 3))
    log = b"".join(keyless([n - base for n in bad], 5, base=base) for base in range(0, 30, 5))
    target = Target(kind, merge=merge)
    target.copy(log, 30)
    assert [offset for offset, _ in target.letters] == sorted(bad)
    assert target.values == [b"value-%d" % (n % 5) for n in range(30) if n not in bad]
    assert target.openings == (2 if merge else 7)


@KINDS
def test_where_the_target_names_none_a_batch_is_divided(kind: type[Channel]) -> None:
    target = Target(kind, names=False)
    target.copy(keyless({2, 7}, 10), 10)
    assert [offset for offset, _ in target.letters] == [2, 7]
    assert target.values == [b"value-%d" % n for n in range(10) if n not in (2, 7)]
    assert target.openings > 4


@KINDS
@pytest.mark.parametrize("bad", [range(0, 6_000, 2), range(0, 6_000, 3), range(6_000)])
def test_more_than_can_be_remembered_comes_to_an_end_each_record_put_aside_once(
    kind: type[Channel], bad: Collection[int]
) -> None:
    """Of a copy a thousand ranges are remembered: what stands before them must be written before more are put aside."""
    target = Target(kind)
    target.copy(keyless(set(bad), 6_000), 6_000)
    assert [offset for offset, _ in target.letters] == list(bad)
    assert len(target.values) == 6_000 - len(bad)
    assert target.openings < 60


def test_without_a_place_for_them_all_are_named_in_one_sentence() -> None:
    target = Target(Channel, has_letters=False)
    target.copy(keyless({0, 3, 4, 5, 9}, 12), 12)
    channel = target.channel
    assert (channel.state, channel.position, target.openings) == (PartitionState.PARKED, 0, 1)
    assert str(channel.reason) == (
        "the target refuses 5 of the 12 records in the batch at source offset 0 of orders/3, at offsets 0, 3 to 5 and "
        "9 (INVALID_RECORD: Compacted topic cannot accept message without key in topic partition east.orders-3): have "
        "such records put aside (declare `dlq`), or let the copy keep records without a key (`configs.set: "
        "{cleanup.policy: delete}`) [AB217]"
    )


@pytest.mark.parametrize(
    ("count", "bad", "words"),
    [
        (1, [0], "refuses the only record in the batch at source offset 0 of orders/3, at offset 0 ("),
        (30, range(0, 30, 2), "at offsets 0, 2, 4, 6, 8, 10, 12, 14, 16, 18 and 5 more ("),
    ],
)
def test_many_are_counted(count: int, bad: Collection[int], words: str) -> None:
    target = Target(Channel, has_letters=False)
    target.copy(keyless(set(bad), count), count)
    assert words in str(target.channel.reason)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (INVALID_TIMESTAMP, "which timestamp limit is set on the copy"),
        (INVALID_RECORD, "or change the setting of the copy that refuses them"),
    ],
)
def test_the_way_out_is_that_of_what_is_refused(error: int, words: str) -> None:
    target = Target(Channel, has_letters=False)
    channel = target.channel
    channel.open(SIDES, LogEnd(0, PRODUCER_ID, EPOCH, 0))
    channel.receive(fetched(keyless((), 2)), 0, channel.opening, 0.0)
    said = answer(error=error)._replace(records=(RecordError(1, None),))
    channel.answered(channel.send(), said, 0.0)
    assert words in str(channel.reason)
    assert "at offset 1 (" in str(channel.reason)


def test_what_is_named_and_is_not_there_is_passed_over() -> None:
    sent_batch = InFlightBatch(1, 40, 43, 7, 3, 0, 0, 100, b"", b"")
    named = tuple(RecordError(number, "why") for number in (-1, 2, 3, 2, 10**6))
    found = refused_records(PLACE, sent_batch, answer(error=INVALID_RECORD)._replace(records=named))
    assert [(one.number, one.offset) for one in found] == [(2, 42)]
    assert refused_records(PLACE, sent_batch, answer(error=TOO_LARGE)._replace(records=named)) == ()
    (alone,) = refused_records(PLACE, sent_batch._replace(records=1), answer(error=TOO_LARGE))
    assert (alone.number, alone.offset, alone.reason.code) == (0, 40, "AB212")


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 4)), max_size=6), st.integers(0, 1_000))
def test_a_record_is_found_by_its_number_over_missing_offsets(parts: list[tuple[int, int]], base: int) -> None:
    """As copies with offsets of their own have them: so many records, then so many offsets without one."""
    offsets: list[int] = []
    at = base
    for count, missing in parts:
        offsets += range(at, at + count)
        at += count + missing
    flat = tuple(number for part in parts for number in part)
    sent_batch = InFlightBatch(1, base, at, 0, len(offsets), 0, 0, 0, b"", b"", flat)
    assert [sent_batch.source_offset(number) for number in range(len(offsets))] == offsets


@pytest.mark.parametrize("version", [BY_NAME[-1], BY_ID])
@pytest.mark.parametrize("errors", [1, 200])
def test_what_an_answer_names_is_read(version: int, errors: int) -> None:
    data = produced([ProduceAnswer("topic-1", 3, INVALID_RECORD, -1, "why")], version, errors)
    (found,) = producing.decode(NAMES if version == BY_ID else None, memoryview(data)).answers
    assert found.records == tuple(RecordError(number, "bad") for number in range(errors))
    assert (found.error, found.message) == (INVALID_RECORD, "why")


def test_what_was_put_aside_at_once_is_remembered_before_what_stands_behind_it() -> None:
    """Else who comes back to the first of several batches would put it aside for ever."""
    record = CopyRecord("a", "b").without(*range(10_000, 12_000, 2))
    record = record.without(*range(0, 1_000, 2))
    assert record.aside_from(0) == {*range(0, 1_000, 2), *range(10_000, 11_000, 2)}
    # What is behind is put aside once more; what is before is over.
    record = record.without(*range(11_000, 12_000, 2))
    assert record.aside_from(0) == set(range(10_000, 12_000, 2))


# --- letters ---------------------------------------------------------------------------------------------------------


class Letters:
    """A topic for dead letters that takes batches of so many bytes, and what is remembered behind each."""

    def __init__(self, most: int = 10**6, refuses: Callable[[int], int] = lambda _: 0) -> None:
        self.most, self.refuses = most, refuses
        self.written: list[Any] = []
        self.tries = 0
        self.record = CopyRecord("a", "b")
        self.channel: Any = SimpleNamespace(place=PLACE, sides=SIDES, verdict=None)
        self.channel.put_aside = lambda: setattr(self.channel, "verdict", "aside")
        self.channel.not_put_aside = lambda state, reason, _now: setattr(self.channel, "verdict", (state, reason))
        given: Any = self
        flow = Flow("east-west", "east", "west", Selection((".*",)), dlq="dead")
        self.letters = DeadLetters(given, flow, given)

    async def topics(self, names: list[str]) -> dict[str, TopicInfo]:
        return {name: TopicInfo(name, None, 0, {0: Leader(1, 1, 0), 1: Leader(1, 1, 0)}) for name in names}

    async def write_one(self, _node: int, ask: ProduceAsk) -> ProduceAnswer:
        self.tries += 1
        (batch,) = split(ask.head + bytes(ask.batch))
        if batch.size > self.most:
            return ProduceAnswer(ask.topic, ask.partition, TOO_LARGE, -1, None)
        if code := self.refuses(len(self.written)):
            return ProduceAnswer(ask.topic, ask.partition, code, -1, None)
        self.written += decode(batch.rewritten(1, 0, 0))
        return ProduceAnswer(ask.topic, ask.partition, 0, 0, None)

    async def change(self, _place: Place, how: Change) -> None:
        self.record = how(self.record)

    def put(self, size: int, count: int, bad: Collection[int], codec: int = NONE) -> Any:
        contents = [Content(1_000 + n, b"k", bytes([n % 251]) * size) for n in range(count)]
        (batch,) = split(build(contents, 100, codec))
        sent_batch = _sent_batch(batch)
        refused = [RefusedRecords(n, 100 + n, Reason("AB217", "why")) for n in bad]
        asyncio.run(self.letters.put_aside(self.channel, sent_batch, refused))
        return self.channel.verdict


def _sent_batch(batch: Batch) -> InFlightBatch:
    channel = Channel(PLACE)
    channel.open(SIDES, LogEnd(batch.base_offset, PRODUCER_ID, EPOCH, 0))
    return channel._sent(batch, batch.size, 0.0)


@pytest.mark.parametrize("codec", CODECS)
def test_letters_of_a_batch_are_written_together_and_say_what_each_is(codec: int) -> None:
    around = Letters()
    assert around.put(10, 6, [1, 2, 5], codec) == "aside"
    assert around.tries == 1
    told = [
        (one.value, dict(one.headers)["anabranch.offset"], dict(one.headers)["anabranch.timestamp"])
        for one in around.written
    ]
    assert told == [(bytes([n]) * 10, b"%d" % (100 + n), b"%d" % (1_000 + n)) for n in (1, 2, 5)]
    assert around.record.aside_from(0) == {101, 102, 105}


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 300), st.integers(1, 60), st.integers(600, 4_000))
def test_a_topic_that_takes_less_gets_less_at_once(size: int, count: int, most: int) -> None:
    around = Letters(most)
    assert around.put(size, count, range(count)) == "aside"
    assert [dict(one.headers)["anabranch.offset"] for one in around.written] == [
        b"%d" % (100 + n) for n in range(count)
    ]
    assert around.tries <= 20 + 4 * count * (size + 330) // most


def test_what_was_written_is_not_written_again_when_a_later_one_is_refused() -> None:
    around = Letters(1_200, lambda written: 6 if written > 2 else 0)
    state, reason = around.put(100, 9, range(9))
    assert (state, reason.code) == (PartitionState.OPENING, "AB220")
    count = len(around.written)
    assert 2 < count < 9
    assert around.record.aside_from(0) == {100 + n for n in range(count)}


def test_one_that_is_larger_than_the_topic_takes_parks_and_those_before_it_are_out() -> None:
    around = Letters(900)
    state, reason = around.put(1_000, 3, [1])
    assert (state, reason.code) == (PartitionState.PARKED, "AB229")
    assert (around.written, around.record.aside) == ([], ())
