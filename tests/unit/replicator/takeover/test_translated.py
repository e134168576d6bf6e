"""Where a copy with offsets of its own goes on: what is remembered of it beside the group's position."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from reconciler.model.offsets.runs import CopyRecord
from reconciler.replicator.copy.agreement import Disagreement
from reconciler.replicator.copy.copy_records import Change
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from reconciler.replicator.partition.shares import Place
from reconciler.replicator.partition.translated_channel import TranslatedChannel
from reconciler.replicator.takeover import translated as module
from reconciler.replicator.takeover.translated import TranslatedTakeover
from reconciler.wire import EARLIEST, LATEST, Leader, TopicInfo
from reconciler.wire.requests import commits
from reconciler.wire.requests.commits import CommittedPosition, Log

PLACE = Place("orders", 0, "r.orders", "translated")
SOURCE, TARGET = (
    TopicInfo(name, uuid.UUID(int=number), 0, {0: Leader(1, 1, 0)})
    for number, name in enumerate((PLACE.topic, PLACE.remote), 1)
)
IDS = str(SOURCE.topic_id), str(TARGET.topic_id)
BEGAN = 1100


class Around:
    """Both clusters, the committer and the memory of a task."""

    transactional_id = "mine"
    member = None
    end = 1200

    def __init__(self, known: CopyRecord | None) -> None:
        self.record = known

    async def producer(self, _channel: object) -> tuple[int, int]:
        return 7, 1

    def failed(self, _channel: object) -> None: ...

    async def refresh(self) -> None: ...

    def get(self, _place: Place) -> CopyRecord | None:
        return self.record

    def change_later(self, _place: Place, how: Change) -> None:
        self.record = how(self.record)

    async def log_end(self, *_: object) -> int:
        return self.end

    async def offset(self, _node: int, _topic: str, _partition: int, which: int) -> int:
        return {EARLIEST: 0, LATEST: 1000}[which]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Open a channel whose group holds a position, with what is remembered of the copy before; return what is after."""

    async def nobody(*_: object) -> list[object]:
        return []

    async def positions(*_: object) -> dict[Log, CommittedPosition]:
        return {(PLACE.remote, 0): CommittedPosition(1000, str(OffsetMetadata(*IDS, "mine", BEGAN, 1)))}

    monkeypatch.setattr(module, "fence_the_dead", nobody)
    monkeypatch.setattr(module, "unended", nobody)
    monkeypatch.setattr(commits, "positions", positions)
    start = SimpleNamespace(at="earliest", offsets_of=lambda _: ())
    flow: Any = SimpleNamespace(start=start, on_recreate="park", on_data_loss="park", name="flow")

    def opened(known: CopyRecord | None) -> CopyRecord | None:
        around: Any = Around(known)
        channel = TranslatedChannel(PLACE, around.failed)
        asyncio.run(TranslatedTakeover(flow, around, around, around, around, around).open(channel, SOURCE, TARGET))
        assert channel.position == 1000
        record: CopyRecord | None = around.record
        return record

    return opened


@pytest.mark.parametrize("known", [None, CopyRecord(*IDS, is_begun=False)], ids=["nothing", "not that it has begun"])
def test_a_copy_whose_first_word_was_lost_is_known_to_have_begun(opened: Any, known: CopyRecord | None) -> None:
    record = opened(known)
    assert (record.source_id, record.target_id, record.is_begun) == (*IDS, True)


@pytest.mark.parametrize(("end", "is_lost"), [(BEGAN + 1, False), (BEGAN, True), (0, True)])
def test_what_was_committed_and_is_lost_is_not_gone_on_behind(
    opened: Any, monkeypatch: pytest.MonkeyPatch, end: int, is_lost: bool
) -> None:
    monkeypatch.setattr(Around, "end", end)
    if not is_lost:
        assert opened(CopyRecord(*IDS, is_begun=True))
        return
    with pytest.raises(Disagreement, match=f"ends at {end}, and what was copied before its position reached 1101"):
        opened(CopyRecord(*IDS, is_begun=True))


@pytest.mark.parametrize(("end", "is_lost"), [(1150, False), (1149, True)])
@pytest.mark.parametrize("mine", ["mine", ""], ids=["exactly once", "at least once"])
def test_what_is_lost_of_the_newest_records_is_noticed_too(
    opened: Any, monkeypatch: pytest.MonkeyPatch, end: int, is_lost: bool, mine: str
) -> None:
    """Also where nothing is in a transaction."""

    async def positions(*_: object) -> dict[Log, CommittedPosition]:
        return {
            (PLACE.remote, 0): CommittedPosition(
                1000, str(OffsetMetadata(*IDS, mine, BEGAN if mine else -1, 1, ended=1150))
            )
        }

    monkeypatch.setattr(commits, "positions", positions)
    monkeypatch.setattr(Around, "end", end)
    monkeypatch.setattr(Around, "transactional_id", mine)
    if not is_lost:
        assert opened(CopyRecord(*IDS, is_begun=True))
        return
    with pytest.raises(Disagreement, match=f"ends at {end}, and what was copied before its position reached 1150"):
        opened(CopyRecord(*IDS, is_begun=True))


def test_of_one_that_is_known_nothing_is_said(opened: Any) -> None:
    known = CopyRecord(*IDS, is_begun=True, partitions=3)
    assert opened(known) is known


def test_what_an_older_release_has_begun_is_told_how_many_partitions_there_are(opened: Any) -> None:
    known = CopyRecord(*IDS, origin=7)
    assert opened(known) == replace(known, partitions=1)


@pytest.mark.parametrize(
    ("others", "is_added"),
    [
        ({}, False),
        ({0: CopyRecord(*IDS, partitions=3)}, False),
        ({0: CopyRecord(*IDS, partitions=2)}, True),
        ({0: CopyRecord(*IDS, partitions=2), 1: CopyRecord(*IDS, partitions=3)}, True),
        ({0: CopyRecord(*IDS)}, False),
        ({0: CopyRecord("another", IDS[1], partitions=2)}, False),
        ({0: CopyRecord(IDS[0], "another", partitions=2)}, False),
    ],
)
def test_a_partition_is_added_that_was_not_there_when_another_was_begun(
    others: dict[int, CopyRecord], is_added: bool
) -> None:
    arrival: Any = object.__new__(TranslatedTakeover)
    arrival._memory = SimpleNamespace(get=lambda place: others.get(place.partition))
    source = replace(SOURCE, partitions=dict.fromkeys(range(3), SOURCE.partitions[0]))
    assert arrival._is_added(PLACE._replace(partition=2), source, TARGET) is is_added


@pytest.mark.parametrize(
    ("note", "end", "found"),
    [
        (OffsetMetadata(*IDS, epoch=1), 190, None),
        (OffsetMetadata(*IDS, epoch=1, anew_from=150), 190, 150),
        (OffsetMetadata(*IDS, epoch=1, anew_from=150), 140, 140),
        (OffsetMetadata(*IDS, epoch=1, anew_from=150), 160, 150),
        (OffsetMetadata(*IDS, epoch=1), 140, 140),
        # Another leader may have lost what syncs tell of behind the position.
        (OffsetMetadata(*IDS, epoch=0), 190, 190),
        (OffsetMetadata(*IDS, epoch=0, anew_from=150), 190, 150),
        # Nor can anybody tell once a position was moved.
        (OffsetMetadata(*IDS), 190, 190),
        (OffsetMetadata(*IDS, anew_from=200), 190, 190),
        (OffsetMetadata("another", IDS[1], epoch=0, anew_from=150), 190, 0),
    ],
)
def test_from_where_on_the_source_may_have_others(note: OffsetMetadata, end: int, found: int | None) -> None:
    is_another = note.source_id != IDS[0]
    assert note.anew_at(is_another, SOURCE.partitions[0].epoch, 190, end) == found
