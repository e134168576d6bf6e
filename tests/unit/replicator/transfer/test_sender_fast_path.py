"""What becomes of batches that go to the target by express, and of their channels. No broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from reconciler.model.tasks.status import PartitionState
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.in_flight import InFlightBatch
from reconciler.replicator.partition.place import LogEnd
from reconciler.replicator.transfer.fast_path_partition import FastPathBatch, FastPathPartition
from reconciler.replicator.transfer.pace import Quota
from reconciler.wire import FetchAnswer, ProduceAnswer
from reconciler.wire.protocol.compact import string
from tests.support.records.batches import build, some
from tests.support.replicator.expressing import PRODUCER_ID, Scene
from tests.support.wire.direct_ends import COPY, FakeDirect, Landed, produce_answer

_NOT_LEADER, _OUT_OF_ORDER, _TOO_LARGE, _DENIED = 6, 45, 10, 29
Opening = tuple[PartitionState, str | None, str, int, int]


@pytest.fixture
def scene() -> Iterator[Scene]:
    one = Scene()
    yield one
    one.close()


def board(scene: Scene, *channels: Channel, by_name: bool = False) -> list[FastPathBatch]:
    """Take a batch of each channel along."""
    boarded: list[FastPathBatch] = []
    for channel in channels:
        number = channel.place.partition
        channel.receive(
            FetchAnswer("orders", number, 0, 9, 9, 0, build(some(2), channel.fetch_at)),
            channel.fetch_at,
            channel.opening,
            0.0,
        )
        boarded.append((FastPathPartition(channel, scene.asks[channel], not by_name), channel.send()))
    return boarded


def send(scene: Scene, by_name: bool = False, count: int = 2) -> FakeDirect:
    """Send a batch of each channel by express."""
    target = scene.targets[2]
    scene.writers[2].send_fast(scene.ends.targets[2], board(scene, *scene.channels[:count], by_name=by_name), 0.0)
    return target


def how(channel: Channel) -> Opening:
    reason = channel.reason
    told = (None, "") if reason is None else (reason.code, reason.text)
    return channel.state, told[0], told[1], channel.position, channel.opening


def in_the_usual_way(landed: list[Landed]) -> list[Opening]:
    """Return what becomes of channels whose batches were sent and answered in the usual way."""
    scene = Scene()
    for (entry, sent_batch), one in zip(board(scene, *scene.channels), landed, strict=True):
        answer = ProduceAnswer("east.orders", one.partition, one.error, one.base, one.message)
        entry.channel.answered(sent_batch, answer, 0.0)
    found = [how(channel) for channel in scene.channels]
    scene.close()
    return found


@pytest.mark.parametrize("by_name", [False, True])
def test_all_is_well(scene: Scene, by_name: bool) -> None:
    target = send(scene, by_name)
    topic = string("east.orders") if by_name else COPY.bytes
    assert topic in target.bodies[0]
    target.answer(produce_answer(Landed(1, 0), Landed(0, 0), topic=topic))
    assert scene.written == [(0, 0, 2), (1, 0, 2)]
    assert [(channel.position, len(channel.in_flight), channel.state) for channel in scene.channels] == [
        (2, 0, PartitionState.RUNNING)
    ] * 2
    assert scene.writers[2].lanes.under_way == [0, 0]
    scene.writers[2].raise_failure()


WRONG = {
    "an error": Landed(1, -1, _NOT_LEADER),
    "another owner": Landed(1, -1, _OUT_OF_ORDER, "sequence"),
    "too large": Landed(1, -1, _TOO_LARGE),
    "not allowed": Landed(1, -1, _DENIED, "no"),
    "another offset": Landed(1, 5),
    "a message alone": Landed(1, 0, 0, "well done"),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("by_name", [False, True])
def test_what_is_wrong_with_one_is_told_as_in_the_usual_way(scene: Scene, wrong: Landed, by_name: bool) -> None:
    target = send(scene, by_name)
    topic = string("east.orders") if by_name else COPY.bytes
    target.answer(produce_answer(Landed(0, 0), wrong, topic=topic))
    assert [how(channel) for channel in scene.channels] == in_the_usual_way([Landed(0, 0), wrong])
    assert scene.written == [(0, 0, 2)] + ([(1, 0, 2)] if wrong.message == "well done" else [])
    assert not any(channel.in_flight for channel in scene.channels)
    assert scene.writers[2].lanes.under_way == [0, 0]
    assert target.refused is None
    scene.writers[2].raise_failure()


@pytest.mark.parametrize("answer", [produce_answer(Landed(0, 0)), produce_answer()])
def test_whom_an_answer_leaves_out_is_opened_anew(scene: Scene, answer: bytes) -> None:
    send(scene).answer(answer)
    first, second = scene.channels
    assert second.state is PartitionState.OPENING
    assert second.reason is not None
    assert "leaves this partition out" in second.reason.text
    assert first.state is (PartitionState.RUNNING if len(answer) > 20 else PartitionState.OPENING)
    assert not any(channel.in_flight for channel in scene.channels)
    scene.writers[2].raise_failure()


UNREADABLE = {
    "nothing": b"",
    "half": produce_answer(Landed(0, 0), Landed(1, 0))[:-12],
    "half of an error": produce_answer(Landed(0, 0), Landed(1, 0, _NOT_LEADER, "long" * 20))[:-90],
    "of another topic": produce_answer(Landed(0, 0), topic=b"x" * 16),
}


@pytest.mark.parametrize("answer", UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_ends_the_connection(scene: Scene, answer: bytes) -> None:
    target = send(scene)
    send(scene)
    target.answer(answer)
    assert target.refused is not None
    for channel in scene.channels:
        assert channel.state is PartitionState.OPENING
        assert channel.reason is not None
        assert "cannot be read" in channel.reason.text
        assert not channel.in_flight
        # Once, not once for each of the two that were on their way.
        assert channel.opening == 1
    assert scene.written == []
    assert scene.writers[2].lanes.under_way == [0, 0]
    scene.writers[2].raise_failure()


def test_a_lost_connection_opens_all_anew(scene: Scene) -> None:
    target = send(scene)
    send(scene)
    target.fall(OSError("cut"))
    for channel in scene.channels:
        assert channel.state is PartitionState.OPENING
        assert channel.reason is not None
        assert "node 2" in channel.reason.text
        assert "cut" in channel.reason.text
        assert (channel.opening, len(channel.in_flight)) == (1, 0)
    assert scene.writers[2].lanes.under_way == [0, 0]


def test_answers_to_an_older_opening_change_nothing(scene: Scene) -> None:
    target = send(scene, count=1)
    (channel, _) = scene.channels
    channel.retry_now()
    assert channel.is_at_work
    target.answer(produce_answer(Landed(0, 0)))
    assert (channel.position, channel.state, channel.is_at_work) == (0, PartitionState.OPENING, False)
    # It stands in the log all the same.
    assert scene.written == [(0, 0, 2)]


def test_those_who_wait_are_sent_with_the_answer(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = scene.writers[2]
    monkeypatch.setattr(writer, "_patience", lambda *_: 0.0)
    monkeypatch.setattr(writer.lanes, "under_way", [4, 0])
    target = send(scene, count=1)
    waiting = scene.channels[1]
    waiting.receive(FetchAnswer("orders", 1, 0, 9, 9, 0, build(some(1), 0)), 0, 0, 0.0)
    writer.offer([waiting])
    assert len(target.bodies) == 1
    assert writer.direct(by_id=True) is None
    target.answer(produce_answer(Landed(0, 0)))
    assert len(target.bodies) == 2
    assert len(waiting.in_flight) == 1


def test_a_fault_of_this_program_is_raised_where_somebody_looks(scene: Scene) -> None:
    def fault(_: object) -> None:
        raise ZeroDivisionError

    scene.writers[2].on_fast_written = fault
    send(scene).answer(produce_answer(Landed(0, 0), Landed(1, 0)))
    with pytest.raises(ZeroDivisionError):
        scene.writers[2].raise_failure()


def bounded(scene: Scene) -> None:
    scene.writers[2]._quota = Quota(1.0)


def stopped(scene: Scene) -> None:
    scene.writers[2].stopped = True


def transactional(scene: Scene) -> None:
    scene.writers[2].transactional_id = "t"


def waiting(scene: Scene) -> None:
    scene.writers[2]._ready[scene.channels[0]] = None


def closed(scene: Scene) -> None:
    scene.targets[2].is_open = False


@pytest.mark.parametrize("reason", [bounded, stopped, transactional, waiting, closed])
def test_a_writer_that_is_bound_or_busy_sends_nothing_by_express(scene: Scene, reason: Callable[[Scene], None]) -> None:
    assert scene.writers[2].direct(by_id=True) is scene.ends.targets[2]
    reason(scene)
    assert scene.writers[2].direct(by_id=True) is None


def test_the_bytes_are_those_of_the_usual_way(scene: Scene) -> None:
    (channel, _) = scene.channels
    channel.open(channel.sides, LogEnd(5, PRODUCER_ID, 3, 9))  # type: ignore[arg-type]
    target = send(scene, count=1)
    sent_batch: InFlightBatch = channel.in_flight[0]
    assert (sent_batch.landing, sent_batch.base_offset) == (5, 5)
    assert sent_batch.head + sent_batch.body in target.bodies[0]
