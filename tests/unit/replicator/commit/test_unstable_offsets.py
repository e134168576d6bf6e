"""Positions that are held back by a transaction that is over: the marker that is missing says what its syncs say."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from reconciler.model.tasks.status import PartitionState
from reconciler.replicator.commit import hanging_transactions, unstable_offsets
from reconciler.replicator.commit.position_recovery import PositionUnknown
from reconciler.replicator.copy.agreement import Disagreement
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from reconciler.wire import BrokerError, Leader, Membership, ProducerState, TopicInfo
from reconciler.wire.requests import commits
from reconciler.wire.requests.commits import CommittedPosition, Log
from reconciler.wire.requests.transactions import Markers

MINE = "anabranch.shop.east-west.run.0"
OPEN = ProducerState(77, 3, -1, True, 5, 40)
WHO = Membership(2, "group", "member", 1)
NOT_ALLOWED, TOPIC_NOT_ALLOWED, BUSY = 31, 29, 51


class Target:
    """A cluster, the syncs in it, and what is written there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open = [[OPEN], [OPEN]]
        self.ended = {77: MINE}
        self.told: dict[Log, CommittedPosition] = {}
        self.stable: dict[Log, CommittedPosition] = {}
        self.written: list[tuple[int, Markers]] = []
        self.refused: BrokerError | None = None
        self.hidden = self.unreadable = False
        monkeypatch.setattr(unstable_offsets, "ended_of", self._ended_of)
        monkeypatch.setattr(hanging_transactions, "write_markers", self._write)
        monkeypatch.setattr(commits, "positions", self._positions)

    async def topics(self, names: Collection[str]) -> dict[str, TopicInfo]:
        return {name: TopicInfo(name, None, 0, {n: Leader(1, 1, 0) for n in range(50)}) for name in names}

    async def producers(self, node: int, topic: str, _partition: int) -> list[ProducerState]:
        assert (node, topic) == (WHO.node, "__consumer_offsets")
        if self.hidden:
            raise BrokerError(TOPIC_NOT_ALLOWED)
        return self.open.pop(0)

    async def committed_by(self, name: str) -> dict[Log, CommittedPosition]:
        assert name in self.ended.values()
        if self.unreadable:
            message = "topic syncs cannot be read"
            raise PositionUnknown(message)
        return self.told

    async def _ended_of(self, _wire: object, producers: Mapping[int, object]) -> dict[int, str]:
        return {number: self.ended[number] for number in producers if number in self.ended}

    async def _positions(self, *_: object, stable: bool) -> dict[Log, CommittedPosition]:
        assert not stable
        return self.stable

    async def _write(self, _wire: object, node: int, markers: Markers) -> None:
        if self.refused:
            raise self.refused
        self.written.append((node, markers))

    def end(self) -> bool:
        wire = cast("Any", self)
        return asyncio.run(
            unstable_offsets.end_positions(wire, wire, WHO, "anabranch.shop.east-west.new.1", "r.{}".format)
        )


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> Target:
    return Target(monkeypatch)


def said(began: int, target: str = "T" * 22, name: str = MINE) -> CommittedPosition:
    return CommittedPosition(began + 5, str(OffsetMetadata("S" * 22, target, name, began)))


@pytest.mark.parametrize(
    ("told", "stable", "committed"),
    [
        ({("a", 0): said(40)}, {("r.a", 0): said(20)}, True),
        ({("a", 0): said(20)}, {("r.a", 0): said(20)}, False),
        ({("a", 0): said(20), ("b", 1): said(40)}, {("r.a", 0): said(20), ("r.b", 1): said(7)}, True),
        ({("a", 0): said(0)}, {}, True),
        ({}, {("r.a", 0): said(20)}, False),
        # A position of a topic that is not there any more says nothing of the one of its name.
        ({("a", 0): said(40, "O" * 22)}, {("r.a", 0): said(20)}, False),
        # Positions move on over offsets without records.
        ({("a", 0): said(20)}, {("r.a", 0): CommittedPosition(900, said(20).note)}, False),
    ],
)
def test_the_marker_says_what_the_syncs_of_the_transaction_say(
    target: Target, told: dict[Log, CommittedPosition], stable: dict[Log, CommittedPosition], committed: bool
) -> None:
    target.told, target.stable = told, stable
    assert target.end()
    ((node, marker),) = target.written
    assert (node, marker.topic, marker.partition) == (
        2,
        "__consumer_offsets",
        unstable_offsets.partition_of("group", 50),
    )
    assert (marker.producer_id, marker.epoch, marker.coordinator_epoch, marker.count) == (77, 3, 5, 1)
    assert marker.committed is committed


@pytest.mark.parametrize(
    ("opened", "ended"),
    [
        ([[], []], {77: MINE}),
        # Its marker came in between; it is open once more in a transaction of its own.
        ([[OPEN], []], {77: MINE}),
        ([[OPEN], [replace(OPEN, opened_at=60)]], {77: MINE}),
        # It has markers to be written yet, or is of other programs.
        ([[OPEN], [OPEN]], {}),
        ([[OPEN], [OPEN]], {77: "anabranch.shop.other.run.0"}),
    ],
)
def test_what_is_not_missing_is_not_written(
    target: Target, opened: list[list[ProducerState]], ended: dict[int, str]
) -> None:
    target.open, target.ended = opened, ended
    assert not target.end()
    assert target.written == []


def test_what_cannot_be_told_is_not_written(target: Target) -> None:
    target.unreadable = True
    with pytest.raises(Disagreement, match="whose end is not known: topic syncs cannot be read") as stopped:
        target.end()
    assert stopped.value.verdict[0] is PartitionState.OPENING
    target.hidden, target.open = True, [[OPEN], [OPEN]]
    with pytest.raises(Disagreement, match="allow READ on topic __consumer_offsets and ALTER on the target cluster"):
        target.end()
    assert target.written == []


def test_whoever_may_not_write_it_is_parked_and_says_why(target: Target) -> None:
    target.told, target.refused = {("a", 0): said(40)}, BrokerError(NOT_ALLOWED)
    with pytest.raises(
        Disagreement, match="was committed, and its marker is missing in __consumer_offsets/"
    ) as stopped:
        target.end()
    state, reason = stopped.value.verdict
    assert (state, reason.code) == (PartitionState.PARKED, "AB228")
    target.refused, target.open = BrokerError(BUSY), [[OPEN], [OPEN]]
    with pytest.raises(BrokerError):
        target.end()


@pytest.mark.parametrize(
    ("group", "hashed"),
    [("", 0), ("a", 97), ("hello", 99162322), ("polygenelubricants", 0), ("Grüße 🦊", None)],
)
def test_the_partition_of_a_group_is_the_one_that_java_takes(group: str, hashed: int | None) -> None:
    """`polygenelubricants` is known for the least of all hashes, whose absolute value there is none of."""
    if hashed is None:
        units = group.encode("utf-16-be")
        total = sum(
            int.from_bytes(units[i : i + 2], "big") * 31 ** (len(units) // 2 - 1 - i // 2)
            for i in range(0, len(units), 2)
        )
        wrapped = (total + 2**31) % 2**32 - 2**31
        hashed = abs(wrapped)
    assert unstable_offsets.partition_of(group, 50) == hashed % 50
