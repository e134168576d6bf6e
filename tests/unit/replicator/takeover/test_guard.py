"""Custody without brokers: channels under a lease that a test hands out and takes back."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable

import pytest

from reconciler.model.tasks.status import PartitionState, Reason
from reconciler.replicator.lease.assignor import Log
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.place import LogEnd
from reconciler.replicator.partition.reasons import Verdict
from reconciler.replicator.partition.shares import Place
from reconciler.replicator.partition.translated_channel import TranslatedChannel
from reconciler.replicator.takeover import guard as custody_module
from reconciler.replicator.takeover.guard import LeaseGuard
from tests.support.replicator.channels import OUTAGE, PRODUCER_ID, SIDES, feed, land, log, send_all

TAKEN: Verdict = (PartitionState.WAITING, Reason("AB223", "another run copies this partition"))


class FakeLease:
    """What custody asks of a lease."""

    def __init__(self, held: Iterable[Log] = ()) -> None:
        self.held = set(held)
        self.wanted: tuple[int, set[Log]] = (-1, set())
        self.keeps: set[Log] = set()
        self.surplus: frozenset[Log] = frozenset()
        self.changes = self.losses = 0

    def begin(self) -> None:
        pass

    def check(self) -> None:
        pass

    def want(self, task: int, logs: Iterable[Log], keeps: Iterable[Log]) -> None:
        self.wanted = task, set(logs)
        self.keeps = set(keeps)

    def holds(self, one: Log) -> bool:
        return one in self.held - self.surplus

    def why_not(self, one: Log) -> Verdict:
        assert not self.holds(one)
        return TAKEN

    def release(self, *logs: Log) -> None:
        self.surplus = frozenset(logs)
        self.changes += 1

    def let_go(self, logs: Iterable[Log]) -> None:
        self.held -= set(logs)
        self.surplus -= set(logs)
        self.changes += 1

    def lose(self) -> None:
        self.held.clear()
        self.losses += 1
        self.changes += 1

    def get(self, *logs: Log) -> None:
        self.held |= set(logs)
        self.changes += 1


class FakeTakeover:
    """Opens at once; `meanwhile` happens in between."""

    def __init__(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        self._meanwhile = meanwhile

    async def run(self, channel: Channel) -> None:
        self._meanwhile()
        channel.open(SIDES, LogEnd(0, PRODUCER_ID, 0, 0))


def channel(partition: int = 0) -> Channel:
    return Channel(Place("orders", partition, "east.orders"))


A, B = ("east.orders", 0), ("east.orders", 1)


def custody(lease: FakeLease, channels: list[Channel]) -> LeaseGuard:
    return LeaseGuard(lease, 2, channels)  # type: ignore[arg-type]


def finish(work: Awaitable[None]) -> None:
    """Run what never waits for anything."""
    for _ in work.__await__():
        message = "it waits"
        raise AssertionError(message)


def open_all(lease: FakeLease, *channels: Channel) -> LeaseGuard:
    made = custody(lease, list(channels))
    made.look()
    for one in channels:
        finish(made.open(one, FakeTakeover()))  # type: ignore[arg-type]
    return made


def test_what_is_not_held_waits_and_says_why_and_what_is_held_may_open() -> None:
    lease, held, other = FakeLease([A]), channel(0), channel(1)
    made = custody(lease, [held, other])
    made.look()
    assert lease.wanted == (2, {A, B})
    assert (made.covers(held), held.state) == (True, PartitionState.OPENING)
    assert (made.covers(other), other.state, other.reason) == (False, *TAKEN)
    lease.get(B)
    made.look()
    assert made.covers(other)
    assert other.wants_opening(time.monotonic())


def test_partitions_that_are_added_later_are_wanted_too() -> None:
    lease, channels = FakeLease([A]), [channel(0)]
    made = custody(lease, channels)
    made.look()
    channels.append(channel(1))
    made.look()
    assert lease.wanted == (2, {A, B})
    assert (channels[1].state, channels[1].reason) == TAKEN


def test_a_lost_lease_ends_every_opening_and_nothing_that_was_read_is_sent() -> None:
    lease, one = FakeLease([A]), channel()
    made = open_all(lease, one)
    feed(one, log(0, 1, 1, 1))
    (sent_batch,) = send_all(one)
    lease.lose()
    made.look()
    assert (one.state, one.reason) == TAKEN
    assert sent_batch.opening != one.opening
    assert not one.queue.items


def test_a_lease_that_was_lost_and_came_back_ends_openings_all_the_same() -> None:
    lease, one = FakeLease([A]), channel()
    made = open_all(lease, one)
    before = one.opening
    lease.lose()
    lease.get(A)
    made.look()
    assert (one.opening > before, one.state) == (True, PartitionState.OPENING)


def test_a_takeover_during_which_the_lease_was_lost_does_not_count() -> None:
    lease, one = FakeLease([A]), channel()
    made = custody(lease, [one])
    made.look()
    finish(made.open(one, FakeTakeover(lease.lose)))  # type: ignore[arg-type]
    assert (one.state, one.reason) == TAKEN


def test_trying_again_by_hand_does_not_pass_the_lease() -> None:
    lease, one = FakeLease(), channel()
    made = custody(lease, [one])
    made.look()
    one.retry_now()
    made.look()
    assert (one.state, one.reason) == TAKEN


def test_a_paused_partition_stays_paused() -> None:
    lease, one = FakeLease([A]), channel()
    made = open_all(lease, one)
    one.pause()
    lease.lose()
    made.look()
    assert one.state is PartitionState.PAUSED
    one.resume()
    made.look()
    assert (one.state, one.reason) == TAKEN


def test_what_another_run_is_to_get_is_let_go_when_its_answers_are_in_and_the_rest_goes_on() -> None:
    lease, kept, given = FakeLease([A, B]), channel(0), channel(1)
    made = open_all(lease, kept, given)
    for one in (kept, given):
        feed(one, log(0, 1, 1, 1))
    (sent_batch,) = send_all(given)
    lease.release(B)
    made.look()
    assert (given.state, given.reason) == TAKEN
    assert kept.state is PartitionState.RUNNING
    assert not send_all(given)
    made.look()
    assert B in lease.held
    land(given, sent_batch)
    made.look()
    assert lease.held == {A}
    assert not given.wants_opening(time.monotonic()) or not made.covers(given)
    assert send_all(kept)


def test_what_is_not_to_be_let_go_any_more_is_opened_again() -> None:
    """Its new owner is gone before it has got it."""
    lease, one = FakeLease([A]), channel()
    made = open_all(lease, one)
    feed(one, log(0, 1))
    send_all(one)
    lease.release(A)
    made.look()
    lease.release()
    made.look()
    assert lease.held == {A}
    assert made.covers(one)


def test_of_several_one_that_takes_long_does_not_hold_up_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    lease, stuck, given = FakeLease([A, B]), channel(0), channel(1)
    made = open_all(lease, stuck, given)
    feed(stuck, log(0, 1))
    send_all(stuck)
    lease.release(A, B)
    made.look()
    assert lease.held == {A, B}
    monkeypatch.setattr(custody_module, "_LET_GO_PATIENCE", 0.0)
    made.look()
    assert lease.held == {A}


def test_what_was_lost_may_still_arrive_and_is_not_let_go_before(monkeypatch: pytest.MonkeyPatch) -> None:
    lease, one = FakeLease([A]), channel()
    made = open_all(lease, one)
    feed(one, log(0, 1))
    (sent_batch,) = send_all(one)
    one.lost(sent_batch, OUTAGE, time.monotonic())
    lease.release(A)
    made.look()
    assert lease.held == {A}
    monkeypatch.setattr(custody_module, "ON_THE_WAY", 0.0)
    made.look()
    assert lease.held == set()


def test_copies_with_offsets_of_their_own_stay_with_who_commits_them() -> None:
    own = TranslatedChannel(Place("users", 0, "east.users", "translated"), lambda _: None)
    lease = FakeLease()
    custody(lease, [channel(0), own]).look()
    assert lease.keeps == {("east.users", 0)}
