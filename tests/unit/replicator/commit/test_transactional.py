"""Transactions of a task, on fakes of its clusters: what one partition's trouble is to the others."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from reconciler.model.tasks.status import PartitionState
from reconciler.replicator.commit import transactional as module
from reconciler.replicator.commit.base import CommitContext, CommitterParts
from reconciler.replicator.commit.transactional import TransactionalCommitter
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.in_flight import InFlightBatch
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from reconciler.replicator.partition.place import PartitionSides
from reconciler.replicator.partition.shares import Place
from reconciler.replicator.partition.translated_channel import TranslatedChannel
from reconciler.wire import BrokerError, FetchAnswer, Leader, Membership, ProduceAnswer, TopicInfo
from reconciler.wire.requests import commits
from reconciler.wire.requests.commits import CommittedPosition, Log, PartitionsRefused
from reconciler.wire.requests.transactions import Transactor
from tests.support.records.batches import build, some

LEADER = Leader(1, 1, 0)
UNKNOWN_TOPIC, NOT_ALLOWED, ILLEGAL_GENERATION = 3, 29, 22


class Enough(Exception):
    """The committer has had its turns."""


class Task:
    """Loop, target cluster and lease of one task, and what was done there."""

    losses = 0
    membership = Membership(1, "group", "member", 1)

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ids: dict[str, uuid.UUID] = {}
        self.refused: dict[Log, int] = {}
        self.committed: dict[Log, int] = {}
        self.ended: list[bool] = []
        self.written: list[str] = []
        self._pending: dict[Log, int] = {}
        self._rests = 0
        # What was aborted is read once more.
        self._read_anew = True
        terms = CommitContext("transactional", "syncs", 0.0, "r.{}".format)
        arguments: Any = (self, self, terms, self, lambda _: self.write(), self._note)
        self.committer = TransactionalCommitter(CommitterParts(*arguments))
        self.channels: list[TranslatedChannel] = []
        monkeypatch.setattr(module, "settle", self._settle)
        for name in ("add_offsets", "add_partitions"):
            monkeypatch.setattr(commits, name, self._nothing)
        monkeypatch.setattr(commits, "positions", self._stand)
        monkeypatch.setattr(commits, "in_doubt", self._in_doubt)
        monkeypatch.setattr(commits, "commit_positions", self._positions)
        monkeypatch.setattr(commits, "end", self._end)

    # --- a loop and its bell -----------------------------------------------------------------------------------------

    def bell(self) -> Task:
        return self

    def ring(self) -> None: ...

    async def wait(self, _seconds: float) -> None:
        self._rest()

    async def sleep(self, _seconds: float) -> None:
        self._rest()

    def _rest(self) -> None:
        self._rests += 1
        if self._read_anew:
            self._begin_again()
        self.write()
        if self._rests > 30:
            raise Enough

    # --- a cluster ---------------------------------------------------------------------------------------------------

    async def connect(self) -> None: ...

    async def coordinator(self, *_: object) -> int:
        return 1

    async def topics(self, names: set[str]) -> dict[str, TopicInfo]:
        return {name: TopicInfo(name, self.ids.get(name), 0, {0: LEADER}) for name in names}

    async def write_one(self, _node: int, ask: Any, *_: object) -> ProduceAnswer:
        return ProduceAnswer(ask.topic, 0, 0, 0, None)

    async def _settle(self, _wire: object, name: str) -> Transactor:
        return Transactor(name, 1, 7, 0)

    async def _nothing(self, *_: object) -> None: ...

    async def _in_doubt(self, *_: object) -> set[Log]:
        return set()

    async def _stand(self, *_: object) -> dict[Log, CommittedPosition]:
        return {}

    async def _positions(
        self, _wire: object, _by: object, _who: object, places: Mapping[Log, CommittedPosition]
    ) -> None:
        if refused := {log: self.refused[log] for log in places if log in self.refused}:
            raise PartitionsRefused(refused)
        self._pending = {log: one.offset for log, one in places.items()}

    async def _end(self, _wire: object, _producer: object, committed: bool) -> None:
        self.ended.append(committed)
        self.committed |= self._pending if committed else {}

    # --- its channels ------------------------------------------------------------------------------------------------

    def channel(self, topic: str, records: int, *, aborted: bool = False) -> TranslatedChannel:
        """Return a running channel that has read some records, of an aborted transaction or not."""
        channel = TranslatedChannel(Place(topic, 0, f"r.{topic}", "translated"), self.committer.failed)
        self.committer.add(channel)
        self.channels.append(channel)
        self.ids[f"r.{topic}"] = uuid.uuid4()
        self.begin(channel)
        data = build(some(records), 0, producer=(5, 0, 0), transactional=aborted)
        answer = FetchAnswer(topic, 0, 0, records, records, 0, data, ((5, 0),) if aborted else ())
        channel.receive(answer, channel.fetch_at, channel.opening, 0.0)
        return channel

    def _begin_again(self) -> None:
        for channel in self.channels:
            if channel.place.topic == "good" and channel.state is PartitionState.OPENING:
                self._read_anew = False
                self.begin(channel)
                answer = FetchAnswer("good", 0, 0, 3, 3, 0, build(some(3), 0), ())
                channel.receive(answer, channel.fetch_at, channel.opening, 0.0)

    def begin(self, channel: TranslatedChannel) -> None:
        sides = PartitionSides(LEADER, uuid.uuid4(), LEADER, self.ids[channel.place.remote])
        channel.begin(sides, 0, (7, 0), OffsetMetadata())

    def write(self) -> None:
        """Do what the writer does: whatever may be sent is written at once."""
        for channel in self.channels:
            if channel.can_send():
                channel.answered(channel.send(), ProduceAnswer(channel.place.remote, 0, 0, 0, None), 0.0)

    def _note(self, channel: Channel, _sent_batch: InFlightBatch) -> None:
        self.written.append(channel.place.remote)

    def run(self) -> None:
        with pytest.raises(Enough):
            asyncio.run(self.committer.run())


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> Task:
    return Task(monkeypatch)


def test_records_and_positions_are_committed_together(task: Task) -> None:
    task.channel("orders", 3)
    task.channel("quiet", 3, aborted=True)
    task.run()
    assert task.committed == {("r.orders", 0): 3, ("r.quiet", 0): 3}
    assert (task.written, set(task.ended)) == (["r.orders"], {True})


@pytest.mark.parametrize(("code", "told"), [(UNKNOWN_TOPIC, "AB220"), (NOT_ALLOWED, "AB213")])
def test_one_whose_position_is_refused_stops_no_other(task: Task, code: int, told: str) -> None:
    task.channel("good", 3)
    gone = task.channel("gone", 3, aborted=True)
    task.refused["r.gone", 0] = code
    task.run()
    assert gone.state is not PartitionState.RUNNING
    assert gone.reason is not None
    assert (gone.reason.code, "r.gone" in gone.reason.text) == (told, True)
    assert (task.committed, task.ended) == ({("r.good", 0): 3}, [True])


def test_nothing_is_committed_into_a_topic_that_was_made_anew(task: Task) -> None:
    channel = task.channel("orders", 3)
    task.ids["r.orders"] = uuid.uuid4()
    task.run()
    assert (task.committed, task.ended, task.written) == ({}, [], [])
    assert channel.state is PartitionState.OPENING
    assert channel.reason is not None
    assert "created again" in channel.reason.text


class Broker:
    """One that answers a commit of positions with these codes, by partition number of one topic."""

    def __init__(self, *codes: int) -> None:
        self._codes = codes

    async def ask(self, _request: object, _node: int) -> SimpleNamespace:
        found = [SimpleNamespace(partition_index=number, error_code=code) for number, code in enumerate(self._codes)]
        return SimpleNamespace(topics=[SimpleNamespace(name="r.orders", partitions=found)])


def commit(*codes: int) -> None:
    positions = {("r.orders", number): CommittedPosition(5, "") for number in range(len(codes))}
    broker: Any = Broker(*codes)
    asyncio.run(commits.commit_positions(broker, Transactor("transactional", 1, 7, 0), Task.membership, positions))


def test_it_is_told_whose_position_was_refused_and_who_may_commit_no_more() -> None:
    commit(0, 0)
    with pytest.raises(PartitionsRefused) as refused:
        commit(0, UNKNOWN_TOPIC, NOT_ALLOWED)
    assert refused.value.codes == {("r.orders", 1): UNKNOWN_TOPIC, ("r.orders", 2): NOT_ALLOWED}
    with pytest.raises(BrokerError) as old:
        commit(UNKNOWN_TOPIC, ILLEGAL_GENERATION)
    assert (old.value.code, isinstance(old.value, PartitionsRefused)) == (ILLEGAL_GENERATION, False)
