"""What a channel does for an express: the same as by the long way, or nothing at all."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.tasks.status import PartitionState
from reconciler.replicator.partition.backoff import Backoff
from reconciler.replicator.partition.channel import WINDOW, Channel
from reconciler.replicator.partition.in_flight import InFlightBatch
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from reconciler.replicator.partition.place import LogEnd, PartitionSides
from reconciler.replicator.partition.send_queue import Queue
from reconciler.replicator.partition.shares import Place
from reconciler.replicator.partition.translated_channel import TranslatedChannel
from reconciler.replicator.transfer.fast_path_partition import FastPathPartition
from reconciler.wire import FetchAnswer, FetchAsk, Leader, Piece, compact_string
from tests.support.records.batches import CODECS, GZIP, TRANSACTIONAL, Content, build, damaged, decode, led, marked
from tests.support.replicator.channels import OUTAGE, PLACE, SIDES, Gapped, answer, feed, fetched, land, log, opened

LIMIT = 256 * 1024
SOURCE, TARGET = uuid.UUID(int=1), uuid.UUID(int=2)
MESSAGE_TOO_LARGE = 10
# Around the records of a fetch answer stands what is said of other partitions.
BEFORE, BEHIND = b"before", b"\x02behind"


def pass_on(channel: Channel, records: bytes, stable: int = 99, now: float = 0.0) -> InFlightBatch | None:
    """Hand a channel what it asked for, as an express does."""
    return pass_on_asked(channel, records, channel.fetch_at, channel.opening, stable, now)


def pass_on_asked(
    channel: Channel, records: bytes, asked_at: int, opening: int, stable: int = 99, now: float = 0.0
) -> InFlightBatch | None:
    piece = Piece(SOURCE.bytes, PLACE.partition, stable, len(BEFORE), len(BEFORE) + len(records))
    return channel.pass_on(BEFORE + records + BEHIND, piece, asked_at, opening, now)


def state(channel: Channel) -> dict[str, Any]:
    """Return all that a channel knows, to be compared."""
    assert channel.read == channel._read, "which is worked out when somebody asks"
    found: dict[str, Any] = {}
    for name, value in vars(channel).items():
        if isinstance(value, Queue):
            found[name] = list(value.items), value.bytes
        elif isinstance(value, Backoff):
            found[name] = dict(vars(value))
        else:
            found[name] = list(value) if name == "in_flight" else value
    return found


class Twins:
    """Two channels to which the same happens: one is asked by an express, the other goes the long way.

    Args:
        batch_size: up to how many bytes small batches are merged.
        standing: where they begin.
    """

    def __init__(self, batch_size: int, log_end: LogEnd) -> None:
        self.express, self.usual = (Channel(PLACE, batch_size=batch_size) for _ in range(2))
        for channel in (self.express, self.usual):
            channel.open(SIDES, log_end)
        self.passed = 0

    def arrives(self, records: bytes, stable: int, now: float) -> None:
        """Let the source answer; what an express cannot do, the reader and the writer do."""
        asked = self.usual.fetch_at
        could = not self.usual.queue.items
        receive(self.usual, records, stable, now)
        could = could and self.usual.can_send()
        expected = send_all(self.usual, now)
        before = state(self.express)
        found = pass_on_asked(self.express, records, asked, self.express.opening, stable, now)
        assert (found is not None) == could
        if found is not None:
            assert [found] == expected
            self.passed += 1
        else:
            assert state(self.express) == before
            receive(self.express, records, stable, now)
            assert send_all(self.express, now) == expected
        self.are_alike()

    def lands(self, now: float) -> None:
        """Let the target say that the oldest stands where it must."""
        if not self.usual.in_flight:
            return
        assert land(self.usual, self.usual.in_flight[0], now)
        self.express.stands(self.express.in_flight[0], now)
        assert send_all(self.express, now) == send_all(self.usual, now)
        self.are_alike()

    def are_alike(self) -> None:
        express, usual = state(self.express), state(self.usual)
        # What was merged has fewer bytes; so long behind a gap nobody asks.
        assert express.pop("_sent_since_gap") >= usual.pop("_sent_since_gap")
        assert express == usual


def some(count: int) -> tuple[Content, ...]:
    """Return records that become smaller by any codec."""
    return tuple(Content(1_000 + place, b"key-%d" % place, b"value" * 100) for place in range(count))


def receive(channel: Channel, records: bytes, stable: int, now: float) -> None:
    channel.receive(FetchAnswer("orders", 3, 0, stable, stable, 0, records), channel.fetch_at, channel.opening, now)


def send_all(channel: Channel, now: float) -> list[InFlightBatch]:
    sent = []
    while channel.can_send():
        sent.append(channel.send(0, now))
    return sent


# How many records come; whether each is a batch of its own; the codec; the leader's epoch.
arrivals = st.tuples(st.integers(1, 6), st.booleans(), st.sampled_from(CODECS), st.integers(-1, 7))
moments = st.sampled_from([0.0, 0.01, 1.0, 6.0])
stories = st.lists(st.tuples(st.none() | arrivals, moments), min_size=1, max_size=20)
sequences = st.sampled_from([0, 12, 2**31 - 4])


@given(stories, st.sampled_from([0, 400, LIMIT]), st.integers(0, 2**40), sequences, st.integers(0, 9), st.data())
@settings(deadline=None)
def test_an_express_does_what_the_long_way_does(
    story: list[tuple[tuple[int, bool, int, int] | None, float]],
    batch_size: int,
    start: int,
    sequence: int,
    shift: int,
    data: st.DataObject,
) -> None:
    twins, now = Twins(batch_size, LogEnd(start + shift, 77, 2, sequence, shift)), 100.0
    at, stable = start, start
    for arrival, later in story:
        now += later
        if arrival is None:
            twins.lands(now)
            continue
        count, singly, codec, epoch = arrival
        # Without merging, or beyond what may be merged, a run is none.
        if singly and batch_size == LIMIT:
            records = b"".join(build(some(1), at + place) for place in range(count))
        else:
            records = led(build(some(count), at, codec), epoch)
        at += count
        stable = max(stable, at + data.draw(st.integers(0, 3)))
        twins.arrives(records, data.draw(st.sampled_from([stable, stable, -1])), now)
    assert twins.passed or all(arrival is None for arrival, _ in story)


@given(st.lists(arrivals, min_size=1, max_size=12), sequences)
@settings(deadline=None)
def test_a_trickle_of_plain_batches_goes_by_express_throughout(
    trickle: list[tuple[int, bool, int, int]], sequence: int
) -> None:
    channel, at = Channel(PLACE, batch_size=LIMIT), 0
    channel.open(SIDES, LogEnd(0, 77, 2, sequence))
    for count, _, codec, epoch in trickle:
        sent_batch = pass_on(channel, led(build(some(count), at, codec), epoch), at + count, 100.0)
        assert sent_batch is not None
        (sent,) = decode(sent_batch.head + sent_batch.body)
        assert (sent.producer, sent.codec, sent.crc_is_valid) == ((77, 2, sequence), codec, True)
        assert sent.contents == some(count)
        assert (sent_batch.base_offset, sent_batch.landing, sent_batch.records) == (at, at, count)
        assert (channel.fetch_at, channel.end, channel.position) == (at + count, at + count, at)
        assert channel.newest_read == (sent.max_timestamp, 100.0)
        assert channel.read == SIDES.read_upto(at + count, epoch)
        channel.stands(sent_batch, 100.0)
        at, sequence = at + count, (sequence + count) % 2**31
        assert (channel.position, list(channel.in_flight)) == (at, [])


# --- when nothing is done --------------------------------------------------------------------------------------------


def running(at: int = 0) -> Channel:
    """Return a channel that has written something not long ago."""
    channel = Channel(PLACE, batch_size=LIMIT)
    channel.open(SIDES, LogEnd(at, 77, 0, at))
    sent_batch = pass_on(channel, log(at, 1))
    assert sent_batch is not None
    channel.stands(sent_batch, 0.0)
    return channel


# What may happen to a channel that runs, after which there is more to do.
HAPPENED: dict[str, Callable[[Channel], object]] = {
    "paused": lambda channel: channel.pause(),
    "parked": lambda channel: channel.park(OUTAGE, 0.0),
    "to be opened": lambda channel: channel.reopen(OUTAGE, 0.0),
    "something waits": lambda channel: feed(channel, log(1, 1)),
    "a gap waits": lambda channel: feed(channel, log(3, 1)),
    "a record was put aside": lambda channel: channel.leave_out([1]),
}


@pytest.mark.parametrize("name", HAPPENED)
def test_when_there_is_more_to_do_nothing_is_done(name: str) -> None:
    channel = running()
    HAPPENED[name](channel)
    before = state(channel)
    assert pass_on(channel, log(max(channel.fetch_at, 0), 2), now=1.0) is None
    assert state(channel) == before


def blocked() -> Channel:
    channel = running()
    feed(channel, log(1, 1) + damaged(log(2, 1)))
    channel.send()
    assert not channel.queue.items
    return channel


def full() -> Channel:
    channel = running()
    for at in range(1, 1 + WINDOW):
        assert pass_on(channel, log(at, 1))
    return channel


def alone() -> Channel:
    channel = Channel(PLACE, batch_size=LIMIT)
    channel.open(SIDES, LogEnd(0, 77, 0, 0))
    assert pass_on(channel, log(0, 1))
    return channel


def compressing() -> Channel:
    channel = Channel(PLACE, batch_size=LIMIT, codec=GZIP)
    channel.open(SIDES, LogEnd(0, 77, 0, 0))
    return channel


def dividing() -> Channel:
    """Return a channel whose target takes no large batches."""
    channel = opened()
    feed(channel, log(0, 64))
    assert not channel.answered(channel.send(), answer(error=MESSAGE_TOO_LARGE), 0.0)
    channel.open(SIDES, LogEnd(0, 77, 0, 0))
    return channel


def translated() -> Channel:
    channel = TranslatedChannel(Place("orders", 3, "east.orders", "translated"), lambda _: None, batch_size=LIMIT)
    channel.begin(SIDES, 0, (7, 0), OffsetMetadata())
    channel.admitted = True
    return channel


@pytest.mark.parametrize("made", [blocked, full, alone, compressing, dividing, translated])
def test_who_has_more_to_do_does_nothing(made: Callable[[], Channel]) -> None:
    channel = made()
    before = state(channel)
    assert pass_on(channel, log(channel.fetch_at, 2), now=1.0) is None
    assert state(channel) == before


@pytest.mark.parametrize(
    "records",
    [
        b"",
        log(2, 1),
        log(0, 2),
        log(0, 1),
        log(1, 1) + log(3, 1),
        log(1, 2, 1),
        damaged(log(1, 2)),
        log(1, 2)[:-1],
        marked(log(1, 2), TRANSACTIONAL),
    ],
    ids=["nothing", "gap", "begins before", "before", "gap within", "two", "damaged", "cut", "transactional"],
)
def test_for_what_is_not_the_next_plain_batch_nothing_is_done(records: bytes) -> None:
    channel = running()
    before = state(channel)
    assert pass_on(channel, records, now=1.0) is None
    assert state(channel) == before


@pytest.mark.parametrize(("asked_at", "opening"), [(0, 0), (2, 0), (-1, 0), (1, 1), (1, -1)])
def test_an_answer_to_another_question_changes_nothing(asked_at: int, opening: int) -> None:
    channel = running()
    before = state(channel)
    assert pass_on_asked(channel, log(max(asked_at, 0), 1), asked_at, channel.opening + opening) is None
    assert state(channel) == before


def test_behind_a_quiet_time_one_travels_alone() -> None:
    channel = Channel(PLACE, batch_size=LIMIT)
    channel.open(SIDES, LogEnd(0, 77, 0, 0))
    first = pass_on(channel, log(0, 1), now=100.0)
    assert first is not None
    channel.stands(first, 100.0)
    second = pass_on(channel, log(1, 1), now=104.0)
    assert second is not None
    third = pass_on(channel, log(2, 1), now=104.0)
    assert third is not None, "who was not quiet sends several"
    channel.stands(second, 104.0)
    # Anything may be in flight for long.
    assert pass_on(channel, log(3, 1), now=120.0) is not None
    for sent_batch in list(channel.in_flight):
        channel.stands(sent_batch, 120.0)
    alone = pass_on(channel, log(4, 1), now=126.0)
    assert alone is not None
    assert pass_on(channel, log(5, 1), now=126.0) is None
    channel.stands(alone, 126.0)
    assert pass_on(channel, log(5, 1), now=126.0) is not None


# --- what stands -----------------------------------------------------------------------------------------------------


def test_what_stands_in_an_opening_that_is_over_only_leaves() -> None:
    channel = running()
    sent_batches = [pass_on(channel, log(at, 1)) for at in (1, 2)]
    channel.reopen(OUTAGE, 3.0)
    before = state(channel)
    first, second = sent_batches
    assert first is not None
    assert second is not None
    assert not channel.wants_opening(1e9)
    channel.stands(first, 4.0)
    channel.stands(second, 4.0)
    assert state(channel) == before | {"in_flight": []}
    assert channel.wants_opening(1e9)


def test_what_stands_before_an_older_one_is_the_one_that_leaves() -> None:
    channel = running()
    first, second = (pass_on(channel, log(at, 1)) for at in (1, 2))
    assert first is not None
    assert second is not None
    channel.stands(second, 1.0)
    assert list(channel.in_flight) == [first]


def test_a_gap_is_filled_when_all_before_it_stands() -> None:
    asked = Gapped()
    channel = opened(at_gap=asked)
    sent_batch = pass_on(channel, log(0, 1))
    assert sent_batch is not None
    feed(channel, log(3, 1))
    assert asked.asked == []
    channel.stands(sent_batch, 0.0)
    assert (asked.asked, channel.filling) == ([channel], True)


def test_a_channel_parks_when_all_before_what_cannot_pass_stands() -> None:
    channel = running()
    sent_batch = pass_on(channel, log(1, 1))
    assert sent_batch is not None
    channel.receive(fetched(damaged(log(2, 1))), 2, channel.opening, 0.0)
    assert channel.state is PartitionState.RUNNING
    channel.stands(sent_batch, 0.0)
    assert (channel.state, channel.position) == (PartitionState.PARKED, 2)


# --- seats -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target_id", "by_id"),
    [(TARGET, True), (TARGET, False), (None, False)],
    ids=["by id", "by name, though it has one", "by name"],
)
def test_a_seat_names_the_target_as_requests_do(target_id: uuid.UUID | None, by_id: bool) -> None:
    channel = Channel(PLACE)
    channel.open(PartitionSides(Leader(1, 5, 0), SOURCE, Leader(2, 7, 0), target_id), LogEnd(4, 77, 0, 0))
    channel.reopen(OUTAGE, 0.0)
    entry = FastPathPartition(channel, FetchAsk("orders", SOURCE, 3, 4, 5, 1_000), by_id)
    assert (entry.channel, entry.opening, entry.node) == (channel, channel.opening, 2)
    assert (entry.source, entry.partition, entry.index) == (SOURCE.bytes, 3, b"\0\0\0\x03")
    assert (entry.asked, entry.epoch, entry.most) == (4, 5, 1_000)
    named = TARGET.bytes if by_id else compact_string("east.orders")
    assert (entry.target, entry.by_id) == (named, by_id)


def test_a_channel_shares_its_attributes_with_the_others() -> None:
    """Where there are more than 30, CPython gives each object a dictionary of 1.5 KB, which trickles find cold."""
    assert len(vars(Channel(PLACE))) <= 30
