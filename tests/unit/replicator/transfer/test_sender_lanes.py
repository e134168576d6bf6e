"""A writer's second connection: what has it connected, what goes over it, and what happens when it is lost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from reconciler.model.declared.clients import Clients
from reconciler.model.tasks.status import PartitionState
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.transfer.pace import Quota
from reconciler.replicator.transfer.produce_lanes import SECOND
from reconciler.replicator.transfer.sender import Sender
from reconciler.wire import BrokerError, ConnectionLost, Loop, Wire
from tests.support.replicator.channels import SIDES
from tests.unit.replicator.transfer.test_sender import NODE, FakeWire, Scene, feed

LARGE = 300_000


class FakeSecond(FakeWire):
    """Is connected when it is told to be, or refuses."""

    def __init__(self, refuses: Exception | None) -> None:
        super().__init__(Clients())
        self.reached: list[int | None] = []
        self._refuses = refuses

    async def connect(self) -> None:
        self.reached.append(None)
        if self._refuses is not None:
            raise self._refuses

    async def reach(self, node: int) -> None:
        self.reached.append(node)


class TwoWires(Scene):
    def __init__(self, monkeypatch: pytest.MonkeyPatch, refuses: Exception | None = None) -> None:
        super().__init__(monkeypatch)
        self.loop, self.second = Loop(), FakeSecond(refuses)
        wires = cast("Wire", self.wire), cast("Wire", self.second)
        self.writer = Sender(self.loop, wires, NODE, Quota(None), self._written, lambda: None)
        self.next: dict[int, int] = {}

    def turn(self) -> None:
        """Let what was begun on the loop come to its end."""
        self.loop.run(self._wait)

    async def _wait(self) -> None:
        for _ in range(5):
            await self.loop.sleep(0.001)

    def answer_oldest(self, wire: FakeWire) -> None:
        """Answer a request with the offsets that its partitions' logs have come to."""
        asks = wire._waiting[0][0]
        landing = {ask.partition: self.next.get(ask.partition, 0) for ask in asks}
        self.next.update({partition: offset + 1 for partition, offset in landing.items()})
        wire.answer(landing)


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> TwoWires:
    return TwoWires(monkeypatch)


def backlog(scene: TwoWires, batches: int = 12, partitions: int = 4) -> list[Channel]:
    """Offer much, one partition after the other, until nothing more may leave; let the second one be connected."""
    channels = [scene.channel(number, batches, LARGE) for number in range(partitions)]
    for channel in channels:
        scene.writer.offer([channel])
    # One is answered before the second one is there.
    scene.answer_oldest(scene.wire)
    scene.turn()
    return channels


def finish(scene: TwoWires) -> None:
    while scene.wire._waiting or scene.second._waiting:
        for wire in (scene.second, scene.wire):
            if wire._waiting:
                scene.answer_oldest(wire)


def look(scene: TwoWires) -> None:
    """Let the writer wake up once."""
    scene.writer.bell.ring()
    job = scene.loop.spawn(scene.writer.run)
    scene.turn()
    scene.writer.stopped = True
    scene.writer.bell.ring()
    scene.turn()
    assert job.is_done
    scene.writer.stopped = False


def test_little_needs_one_connection(scene: TwoWires) -> None:
    for _ in range(20):
        scene.writer.offer([scene.channel(0), scene.channel(1)])
        scene.now += 0.01
    scene.turn()
    assert scene.second.reached == []


def test_behind_much_half_of_the_partitions_go_over_the_second_one_and_nothing_is_lost(scene: TwoWires) -> None:
    backlog(scene)
    assert scene.second.reached == [None, NODE]
    finish(scene)
    assert sorted(scene.written) == [(partition, offset) for partition in range(4) for offset in range(12)]
    for partition in range(4):
        assert [offset for number, offset in scene.written if number == partition] == list(range(12))
    over_second = {number for sent in scene.second.partitions() for number in sent}
    assert len(over_second) == 2
    # They began over the first one, and what was in flight there was answered first.
    before, last = scene.wire.partitions()[:5], scene.wire.partitions()[-1]
    assert over_second <= {number for sent in before for number in sent}
    assert not over_second & set(last)
    scene.writer.raise_failure()


def test_an_express_does_not_go_beside_a_second_connection(scene: TwoWires) -> None:
    (channel, *_) = backlog(scene)
    finish(scene)
    assert scene.writer.lanes.are_two
    scene.wire.direct_produce = lambda node, by_id: SimpleNamespace(is_open=True)  # type: ignore[assignment,method-assign]
    assert scene.writer.direct(by_id=False) is None
    scene.now += 0.6
    look(scene)
    assert not scene.writer.lanes.are_two
    assert scene.writer.direct(by_id=False) is not None
    scene.wire.direct_produce = lambda node, by_id: None
    # What comes then goes over the first one, in order.
    sent = len(scene.wire.sent)
    feed(channel, 1)
    scene.writer.offer([channel])
    assert scene.wire.partitions()[sent:] == [[channel.place.partition]]


@pytest.mark.parametrize("refuses", [ConnectionLost("nobody there"), BrokerError(35)])
def test_without_a_second_one_all_goes_over_the_first(monkeypatch: pytest.MonkeyPatch, refuses: Exception) -> None:
    scene = TwoWires(monkeypatch, refuses)
    backlog(scene)
    assert scene.second.reached == [None]
    finish(scene)
    assert scene.second.sent == []
    assert len(scene.written) == 48
    # Not tried again at once.
    assert scene.second.reached == [None]
    scene.writer.raise_failure()


def test_a_lost_second_one_opens_its_partitions_anew_and_no_others(scene: TwoWires) -> None:
    channels = backlog(scene)
    while not scene.second._waiting:
        scene.answer_oldest(scene.wire)
    lost = {number for sent in scene.second.partitions() for number in sent}
    while scene.second._waiting:
        scene.second.lose()
    assert scene.writer.lanes.under_way[SECOND] == 0
    assert not scene.writer.lanes.are_two
    assert {c.place.partition for c in channels if c.state is PartitionState.OPENING} == lost
    assert lost
    finish(scene)
    assert {number for number, offset in scene.written if offset == 11} == {0, 1, 2, 3} - lost
    scene.writer.raise_failure()


def test_a_fault_while_it_is_connected_is_raised_where_somebody_looks(scene: TwoWires) -> None:
    async def broken() -> None:
        raise TypeError

    scene.second.connect = broken  # type: ignore[method-assign]
    backlog(scene)
    with pytest.raises(TypeError):
        scene.writer.raise_failure()


def test_what_trickles_in_behind_a_backlog_goes_over_one_again(scene: TwoWires) -> None:
    """However often it comes: never is nothing under way for long."""
    channels = backlog(scene)
    finish(scene)
    for _ in range(60):
        for channel in channels:
            feed(channel, 1)
        scene.writer.offer(channels)
        look(scene)
        scene.now += 0.01
        if scene.writer.lanes.are_two:
            finish(scene)
    assert not scene.writer.lanes.are_two
    finish(scene)
    assert len({number for number, _ in scene.written}) == 4
    scene.writer.raise_failure()


def test_both_gather_what_is_little(scene: TwoWires) -> None:
    channels = backlog(scene)
    finish(scene)
    before = [len(scene.wire.sent), len(scene.second.sent)]
    for _ in range(3):
        for channel in channels:
            feed(channel, 1)
            scene.writer.offer([channel])
    # One request each; whoever came later waits for its answer or for the time.
    assert [len(scene.wire.sent) - before[0], len(scene.second.sent) - before[1]] == [1, 1]
    scene.now += 0.0011
    scene.writer.offer([])
    assert [len(scene.wire.sent) - before[0], len(scene.second.sent) - before[1]] == [2, 2]
    finish(scene)
    assert len(scene.written) == 48 + 12


def test_one_partition_alone_has_one(scene: TwoWires) -> None:
    backlog(scene, batches=20, partitions=1)
    assert scene.second.reached == []


def test_partitions_of_another_broker_are_nobodys_neighbours(scene: TwoWires) -> None:
    """Every writer is offered all: those of others must not take every second place."""
    elsewhere = [scene.channel(number, 12, LARGE) for number in range(1, 12, 2)]
    for channel in elsewhere:
        channel.sides = SIDES._replace(target=SIDES.target._replace(node=NODE + 1))
    own = [scene.channel(number, 12, LARGE) for number in range(0, 12, 2)]
    both = [one for pair in zip(own, elsewhere, strict=True) for one in pair]
    for channel in both:
        scene.writer.offer([channel])
    scene.answer_oldest(scene.wire)
    scene.turn()
    finish(scene)
    over_second = {number for sent in scene.second.partitions() for number in sent}
    assert len(over_second) == 3
    assert len(scene.written) == 6 * 12


def test_a_quota_needs_no_second_one(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = TwoWires(monkeypatch)
    monkeypatch.setattr(scene.writer, "_quota", Quota(10**12))
    backlog(scene)
    assert scene.second.reached == []
