"""When a writer sends, and with whom: no broker, and a clock that stands still until it is moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from reconciler.model.declared.clients import Clients, ProducerSettings
from reconciler.model.declared.cluster import Cluster
from reconciler.model.tasks.status import PartitionState
from reconciler.records.merge import FEW_RECORDS
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.in_flight import InFlightBatch
from reconciler.replicator.partition.place import LogEnd
from reconciler.replicator.partition.shares import Place
from reconciler.replicator.transfer import sender as module
from reconciler.replicator.transfer.pace import Quota, Spare
from reconciler.replicator.transfer.sender import Sender
from reconciler.wire import ConnectionLost, FetchAnswer, Loop, ProduceAnswer, ProduceAsk, Wire
from tests.support.records.batches import Content, build
from tests.support.replicator.channels import SIDES

NODE = SIDES.target.node


class FakeWire:
    """Takes requests and answers them when it is told to."""

    def __init__(self, clients: Clients) -> None:
        self.cluster = Cluster("west", ("nowhere:1",), clients=clients)
        self.sent: list[Sequence[ProduceAsk]] = []
        self._waiting: list[tuple[Sequence[ProduceAsk], Any, Any]] = []

    def throttled(self, node: int) -> float:
        return 0.0

    def direct_produce(self, node: int, by_id: bool) -> None:
        """Have none: the library's way is enough here."""

    def produce(
        self,
        node: int,
        asks: Sequence[ProduceAsk],
        lost: Callable[[ConnectionLost], None],
        answered: Callable[[Sequence[ProduceAnswer]], None],
        transactional_id: str | None,
    ) -> None:
        assert transactional_id is None
        assert node == NODE
        self.sent.append(asks)
        self._waiting.append((asks, lost, answered))

    def answer(self, landing: dict[int, int]) -> None:
        asks, _, answered = self._waiting.pop(0)
        answered([ProduceAnswer(ask.topic, ask.partition, 0, landing[ask.partition], None) for ask in asks])

    def lose(self) -> None:
        _, lost, _ = self._waiting.pop(0)
        lost(ConnectionLost("gone"))

    def partitions(self) -> list[list[int]]:
        return [[ask.partition for ask in asks] for asks in self.sent]


class Scene:
    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, quota: float | None = None, max_request_size: int | None = None
    ) -> None:
        self.now = 100.0
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))
        self.wire = FakeWire(Clients(producer=ProducerSettings(max_request_size=max_request_size)))
        self.written: list[tuple[int, int]] = []
        wire, loop = cast("Wire", self.wire), Loop()
        self.writer = Sender(loop, (wire, None), NODE, Quota(quota), self._written, lambda: None)

    def _written(self, channel: Channel, sent_batch: InFlightBatch) -> None:
        self.written.append((channel.place.partition, sent_batch.base_offset))

    def channel(self, partition: int, batches: int = 1, size: int = 10) -> Channel:
        channel = Channel(Place("orders", partition, "east.orders"))
        channel.open(SIDES, LogEnd(0, 7, 0, 0))
        feed(channel, batches, size)
        return channel


def feed(channel: Channel, batches: int, size: int = 10) -> None:
    records = b"".join(
        build([Content(1_000, None, b"x" * size)], channel.fetch_at + number) for number in range(batches)
    )
    answer = FetchAnswer("orders", channel.place.partition, 0, -1, -1, 0, records)
    assert channel.receive(answer, channel.fetch_at, channel.opening, 0.0) == batches


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


def test_what_is_offered_leaves_at_once_and_together(scene: Scene) -> None:
    scene.writer.offer([scene.channel(0), scene.channel(1), scene.channel(2)])
    assert scene.wire.partitions() == [[0, 1, 2]]
    scene.wire.answer({0: 0, 1: 0, 2: 0})
    assert scene.written == [(0, 0), (1, 0), (2, 0)]
    scene.writer.raise_failure()


def test_little_waits_for_an_answer(scene: Scene) -> None:
    scene.writer.offer([scene.channel(0)])
    scene.writer.offer([scene.channel(1)])
    scene.writer.offer([scene.channel(2)])
    assert scene.wire.partitions() == [[0]]
    scene.wire.answer({0: 0})
    assert scene.wire.partitions() == [[0], [1, 2]]


def test_little_does_not_wait_for_long(scene: Scene) -> None:
    scene.writer.offer([scene.channel(0)])
    scene.writer.offer([scene.channel(1)])
    scene.now += 0.0011
    scene.writer.offer([])
    assert scene.wire.partitions() == [[0], [1]]


def test_much_does_not_wait_at_all(scene: Scene) -> None:
    scene.writer.offer([scene.channel(0)])
    scene.writer.offer([scene.channel(1, size=100_000)])
    assert scene.wire.partitions() == [[0], [1]]


def test_a_channel_goes_on_after_its_answer(scene: Scene) -> None:
    channel = scene.channel(0, batches=3)
    scene.writer.offer([channel])
    for offset in range(3):
        scene.wire.answer({0: offset})
        scene.now += 1
    assert channel.position == 3
    assert scene.wire.partitions() == [[0], [0], [0]]


@pytest.mark.parametrize(
    ("used", "later", "answer", "together"),
    [(0.08, 0.1, 0.007, 5), (0.09, 0.1, 0.007, 1), (0.5, 1.1, 0.007, 1), (0.08, 0.1, 0.005, 1)],
)
def test_what_waits_behind_a_full_window_is_merged_while_there_is_time(
    monkeypatch: pytest.MonkeyPatch, used: float, later: float, answer: float, together: int
) -> None:
    scene = Scene(monkeypatch)
    spent = [3.0, 3.0 + used]
    monkeypatch.setattr(scene.writer, "_spare", Spare(lambda: spent.pop(0)))
    channel = Channel(Place("orders", 0, "east.orders"), batch_size=1_000_000)
    channel.open(SIDES, LogEnd(0, 7, 0, 0))
    many = FEW_RECORDS + 1
    batches = [build([Content(1_000, None, bytes(2_000))] * many, number * many) for number in range(12)]
    channel.receive(FetchAnswer("orders", 0, 0, -1, -1, 0, b"".join(batches)), 0, channel.opening, 0.0)
    channel.answered(channel.send(), ProduceAnswer("east.orders", 0, 0, 0, None), scene.now)
    scene.writer.offer([channel])
    assert len(scene.wire.sent) == 5
    # An answer that is not quick. Where the window was full long ago, answers are not what it waits for.
    scene.now += answer
    scene.wire.answer({0: many})
    scene.now += later
    scene.wire.answer({0: 2 * many})
    assert [one.records // many for one in channel.in_flight] == [1, 1, 1, 1, together]


def test_who_may_not_send_is_left_alone(scene: Scene) -> None:
    elsewhere, paused = scene.channel(0), scene.channel(1)
    assert elsewhere.sides is not None
    elsewhere.sides = SIDES.__class__(SIDES.source, None, SIDES.source, None)
    paused.pause()
    scene.writer.offer([elsewhere, paused])
    assert scene.wire.sent == []


def test_a_lost_request_opens_its_channels_anew_and_frees_its_place(scene: Scene) -> None:
    channels = [scene.channel(number, size=100_000) for number in range(7)]
    for channel in channels:
        scene.writer.offer([channel])
    assert scene.wire.partitions() == [[0], [1], [2], [3], [4]]
    scene.wire.lose()
    assert channels[0].state is PartitionState.OPENING
    scene.writer.offer([])
    assert scene.wire.partitions()[5:] == [[5, 6]]


def test_nothing_is_sent_after_the_end(scene: Scene) -> None:
    channel = scene.channel(0, batches=2)
    scene.writer.offer([channel])
    scene.writer.stopped = True
    scene.wire.answer({0: 0})
    assert (scene.written, scene.wire.partitions()) == ([(0, 0)], [[0]])


def test_a_fault_in_an_answer_is_raised_where_somebody_looks(scene: Scene) -> None:
    scene.writer.offer([scene.channel(0)])
    scene.wire._waiting[0][2](None)
    with pytest.raises(TypeError):
        scene.writer.raise_failure()


def test_a_quota_holds_requests_back(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, quota=1_000_000)
    scene.writer.offer([scene.channel(0, size=500_000)])
    scene.wire.answer({0: 0})
    scene.writer.offer([scene.channel(1)])
    assert scene.wire.partitions() == [[0]]
    scene.now += 0.6
    scene.writer.offer([])
    assert scene.wire.partitions() == [[0], [1]]


def sizes(scene: Scene) -> list[int]:
    return [sum(len(ask.head) + len(ask.batch) for ask in asks) for asks in scene.wire.sent]


def test_no_request_goes_beyond_a_declared_bound_unless_one_batch_does(monkeypatch: pytest.MonkeyPatch) -> None:
    bound = 100_000
    scene = Scene(monkeypatch, max_request_size=bound)
    large = scene.channel(5, size=150_000)
    scene.writer.offer([*(scene.channel(partition, size=40_000) for partition in range(5)), large])
    assert sorted(number for sent in scene.wire.partitions() for number in sent) == [0, 1, 2, 3, 4, 5]
    assert scene.wire.partitions()[:2] == [[0, 1], [2]]
    assert [len(sent) for sent, size in zip(scene.wire.sent, sizes(scene), strict=True) if size > bound] == [1]


def test_batches_of_one_partition_leave_in_order_when_they_are_parted(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, max_request_size=65_536)
    first, second = scene.channel(0, batches=3, size=40_000), scene.channel(1, batches=3, size=40_000)
    scene.writer.offer([first, second])
    answered: Counter[int] = Counter()
    while answered.total() < len(scene.wire.sent):
        (ask,) = scene.wire.sent[answered.total()]
        scene.wire.answer({ask.partition: answered[ask.partition]})
        answered[ask.partition] += 1
    assert [offset for partition, offset in scene.written if partition == 0] == [0, 1, 2]
    assert [offset for partition, offset in scene.written if partition == 1] == [0, 1, 2]
    assert max(sizes(scene)) <= 65_536


def test_without_a_bound_the_last_batch_may_go_beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch)
    scene.writer.offer([scene.channel(partition, size=900_000) for partition in range(6)])
    assert scene.wire.partitions() == [[0, 1, 2, 3, 4], [5]]
