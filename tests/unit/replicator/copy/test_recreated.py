"""Which topic an original is, judged for the topic: partitions of one made anew that nothing is remembered of."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.start import Start
from reconciler.model.offsets.runs import CopyRecord
from reconciler.replicator.copy.agreement import Disagreement
from reconciler.replicator.copy.recreated import other_partitions, refuse_made_anew
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from reconciler.replicator.partition.shares import Place
from reconciler.replicator.takeover.identical import Takeover
from reconciler.replicator.takeover.translated import TranslatedTakeover
from reconciler.state.copies import Copies, _Snapshot
from reconciler.wire import EARLIEST, BrokerError, Leader, TopicInfo
from reconciler.wire.requests.commits import CommittedPosition

OLD, NEW, REMOTE, FORMER = (uuid.UUID(int=number) for number in range(1, 5))


def topic(name: str, topic_id: uuid.UUID | None, partitions: int, node: int = 1) -> TopicInfo:
    return TopicInfo(name, topic_id, 0, {number: Leader(node, 1, 0) for number in range(partitions)})


ORIGINAL, COPY = topic("orders", NEW, 3), topic("east.orders", REMOTE, 2)


def text(topic_id: uuid.UUID | None) -> str | None:
    return None if topic_id is None else str(topic_id)


class Remembered:
    """Copy records by partition, and the target that tells where its logs end."""

    def __init__(
        self, records: Mapping[int, tuple[uuid.UUID | None, uuid.UUID | None]], ends: Mapping[int, int]
    ) -> None:
        self.copies = Copies(Cluster("west", ("west.example:9092",)), "tests")
        values = {
            f"flow/east.orders/{number}": CopyRecord(text(ids[0]), text(ids[1])).to_json()
            for number, ids in records.items()
        }
        self.copies._seen = _Snapshot(values)
        self.ends = ends
        self.asked = 0

    async def refresh(self) -> None: ...

    def ids(self, place: Place) -> Any:
        return self.copies.ids("flow", place.remote)

    def get(self, place: Place) -> CopyRecord | None:
        return self.copies.get("flow", place.remote, place.partition)

    async def topics(self, names: list[str]) -> dict[str, TopicInfo]:
        return {one.name: one for one in (ORIGINAL, COPY) if one.name in names}

    async def offset(self, _node: int, _topic: str, partition: int, which: int) -> int:
        self.asked += 1
        if self.ends[partition] < 0:
            raise BrokerError(-self.ends[partition])
        return 0 if which == EARLIEST else self.ends[partition]


PLACE = Place("orders", 1, "east.orders", "translated")
CHANNEL: Any = SimpleNamespace(place=PLACE)


class Committed(TranslatedTakeover):
    """An arrival that finds a position with these ids, and says what it asked."""

    def __init__(self, ids: tuple[uuid.UUID | None, uuid.UUID | None] | None) -> None:
        self.asked = list[str]()
        self._note = None if ids is None else str(OffsetMetadata(text(ids[0]), text(ids[1])))
        self._committer: Any = self

    async def producer(self, _channel: object) -> tuple[int, int]:
        self.asked.append("producer")
        return 1, 0

    async def _fence_the_dead(self, *_: object) -> list[tuple[int, int]]:
        self.asked.append("fence")
        return []

    async def _committed(self, _look: object) -> tuple[CommittedPosition | None, tuple[int, int] | None]:
        return None if self._note is None else CommittedPosition(60, self._note), None


def refused(
    around: Remembered, partition: int, policy: str = "park", original: TopicInfo = ORIGINAL, copy: TopicInfo = COPY
) -> str | None:
    given: Any = around
    flow: Any = SimpleNamespace(on_recreate=policy)
    place = Place("orders", partition, "east.orders")
    try:
        asyncio.run(refuse_made_anew(flow, given, given, place, (original, copy)))
    except Disagreement as stop:
        return stop.verdict[1].code
    return None


@pytest.mark.parametrize("partition", [0, 1, 2, 7])
def test_no_partition_of_a_topic_made_anew_is_opened(partition: int) -> None:
    """One that was copied, one whose copy is empty, one that the former topic had not, and one that is nowhere."""
    assert refused(Remembered({0: (OLD, REMOTE), 1: (OLD, REMOTE)}, {0: 5, 1: 0}), partition) == "AB218"


@pytest.mark.parametrize(
    ("records", "ends", "asked"),
    [
        ({}, {}, 0),
        ({0: (NEW, REMOTE), 1: (NEW, REMOTE)}, {0: 5, 1: 5}, 0),
        ({0: (OLD, REMOTE), 1: (OLD, REMOTE)}, {0: 0, 1: 0}, 2),
        ({0: (OLD, FORMER), 1: (OLD, FORMER)}, {0: 5, 1: 5}, 0),
        ({0: (None, REMOTE), 1: (OLD, FORMER)}, {0: 5, 1: 5}, 0),
        ({0: (OLD, REMOTE), 2: (NEW, REMOTE)}, {0: 5, 1: 5}, 0),
        ({5: (OLD, REMOTE)}, {}, 0),
    ],
    ids=[
        "a first one",
        "the same topic",
        "a copy that never held anything",
        "of a remote topic that is gone",
        "ids that are not known",
        "one that goes on already",
        "a partition that the copy has not",
    ],
)
def test_what_holds_nothing_of_another_topic_is_opened(
    records: dict[int, tuple[uuid.UUID | None, uuid.UUID | None]], ends: dict[int, int], asked: int
) -> None:
    around = Remembered(records, ends)
    assert (refused(around, 2), around.asked) == (None, asked)


def test_what_is_declared_to_go_on_does_and_asks_nothing() -> None:
    around = Remembered({0: (OLD, REMOTE)}, {0: 5})
    assert (refused(around, 2, "restart"), around.asked) == (None, 0)


@pytest.mark.parametrize(("error", "code"), [(29, "AB213"), (6, "AB220")])
def test_what_nobody_may_look_at_is_said(error: int, code: str) -> None:
    assert refused(Remembered({0: (OLD, REMOTE)}, {0: -error}), 2) == code


def test_a_copy_without_a_leader_is_waited_for() -> None:
    without = topic("east.orders", REMOTE, 2, node=-1)
    assert refused(Remembered({0: (OLD, REMOTE)}, {0: 5}), 2, copy=without) == "AB220"


@pytest.mark.parametrize(
    ("ids", "code"),
    [
        ((NEW, REMOTE), None),
        ((OLD, REMOTE), "AB218"),
        ((NEW, FORMER), "AB218"),
        ((None, REMOTE), "AB218"),
        (None, "AB218"),
    ],
    ids=["of the new topic", "of the former one", "in a remote topic that is gone", "of an older release", "none"],
)
def test_a_position_that_was_written_into_the_new_topic_decides_for_its_partition(
    ids: tuple[uuid.UUID | None, uuid.UUID] | None, code: str | None
) -> None:
    around, arrival = Remembered({0: (OLD, REMOTE), 1: (OLD, REMOTE)}, {0: 5, 1: 5}), Committed(ids)
    flow: Any = SimpleNamespace(on_recreate="park")
    given: Any = around
    topics = (ORIGINAL, COPY)
    refusing = refuse_made_anew(flow, given, given, PLACE, topics, lambda: arrival.is_decided(CHANNEL, *topics))
    if code is None:
        asyncio.run(refusing)
        return
    with pytest.raises(Disagreement) as stop:
        asyncio.run(refusing)
    assert stop.value.verdict[1].code == code


def test_no_position_is_asked_for_where_a_copy_has_no_leader_or_nothing_is_remembered() -> None:
    arrival = Committed((NEW, REMOTE))
    assert not asyncio.run(arrival.is_decided(CHANNEL, ORIGINAL, topic("east.orders", REMOTE, 2, node=-1)))
    assert not asyncio.run(arrival.is_decided(CHANNEL, ORIGINAL, topic("east.orders", REMOTE, 1)))
    flow: Any = SimpleNamespace(on_recreate="park")
    given: Any = Remembered({}, {})
    asyncio.run(
        refuse_made_anew(
            flow, given, given, PLACE, (ORIGINAL, COPY), lambda: arrival.is_decided(CHANNEL, *(ORIGINAL, COPY))
        )
    )
    assert arrival.asked == []


def test_where_brokers_have_no_ids_nothing_is_judged() -> None:
    around = Remembered({0: (OLD, None)}, {0: 5})
    assert refused(around, 2, original=topic("orders", None, 3), copy=topic("east.orders", None, 2)) is None


def test_what_is_remembered_is_kept_up(monkeypatch: pytest.MonkeyPatch) -> None:
    around = Remembered({0: (OLD, REMOTE), 1: (OLD, REMOTE)}, {0: 5, 1: 5})
    place, given = Place("orders", 2, "east.orders"), around
    memory: Any = given
    assert list(other_partitions(memory, place, ORIGINAL, COPY)) == [0, 1]
    monkeypatch.setattr(around.copies._journal, "post", lambda *_: None)
    for partition in (0, 1):
        around.copies.post("flow", "east.orders", partition, CopyRecord(str(NEW), str(REMOTE)))
        assert list(other_partitions(memory, place, ORIGINAL, COPY)) == [1][partition:]
    assert list(around.ids(place).values()) == [{0, 1}]


@pytest.mark.parametrize(("partition", "code"), [(2, "AB218"), (1, "AB218")])
def test_a_takeover_says_so_before_it_misses_a_partition(partition: int, code: str) -> None:
    """The copy of a parked topic is not enlarged: `apply` is no remedy."""
    around: Any = Remembered({0: (OLD, REMOTE)}, {0: 5})
    opening: Any = object.__new__(Takeover)
    opening._flow = SimpleNamespace(on_recreate="park")
    opening._source = opening._target = opening._memory = around
    channel: Any = SimpleNamespace(place=Place("orders", partition, "east.orders"))
    with pytest.raises(Disagreement) as stop:
        asyncio.run(opening._open(channel))
    assert stop.value.verdict[1].code == code


@pytest.mark.parametrize(
    ("side", "words"),
    [("source", "the topic has 3 since it was created again"), ("target", "run `anabranch apply` to add it")],
)
def test_a_topic_made_anew_with_fewer_partitions_is_not_to_be_enlarged_at_the_source(side: Any, words: str) -> None:
    with pytest.raises(Disagreement, match=words) as stop:
        Takeover._refuse_unled(side, ORIGINAL, 3)
    assert stop.value.verdict[1].code == "AB214"


@pytest.mark.parametrize(
    ("start", "records", "expected"),
    [
        (Start("latest"), {0: (OLD, REMOTE)}, 0),
        (Start("offsets", offsets=(("orders", (1, 2, 3)),)), {0: (OLD, REMOTE)}, 0),
        (Start("latest"), {0: (NEW, REMOTE)}, 5),
        (Start("offsets", offsets=(("orders", (1, 2, 3)),)), {0: (NEW, REMOTE)}, 3),
    ],
)
def test_a_new_partition_of_a_topic_made_anew_begins_at_its_first_record(
    start: Start, records: dict[int, tuple[uuid.UUID, uuid.UUID]], expected: int
) -> None:
    """Where copies begin was declared for the former topic: this one is new as a whole."""
    around: Any = Remembered(records, {0: 5})
    opening: Any = object.__new__(TranslatedTakeover)
    opening._flow, opening._memory, opening._source = SimpleNamespace(start=start, name="flow"), around, around
    place = Place("orders", 2, "east.orders", "translated")
    assert asyncio.run(opening._beginning(place, ORIGINAL, COPY, (0, 5))) == expected
