"""Who may go by express, how its reader goes on, and that all of it comes to a log without holes. No brokers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.declared.clients import Clients, ProducerSettings
from reconciler.model.tasks.status import PartitionState
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.place import LogEnd
from reconciler.replicator.partition.shares import Place
from reconciler.replicator.partition.translated_channel import TranslatedChannel
from reconciler.replicator.transfer.fetch_lanes import FetchKey
from reconciler.replicator.transfer.fetcher import Fetcher
from reconciler.replicator.transfer.pace import Pace, Quota
from reconciler.wire import FetchAnswer, FetchAsk
from tests.support.records.batches import LOG_APPEND_TIME, build, marked, some
from tests.support.replicator.channels import land
from tests.support.replicator.expressing import MOST, PRODUCER_ID, SOURCE, Scene
from tests.support.wire.direct_ends import Fetched, Landed, fetch_answer, produce_answer

_NOT_ENOUGH_REPLICAS = 19


@pytest.fixture
def scene() -> Iterator[Scene]:
    one = Scene()
    yield one
    one.close()


def records(offset: int, count: int = 1) -> bytes:
    return build(some(count), offset)


def mixed(scene: Scene) -> None:
    sides = scene.channels[1].sides
    assert sides is not None
    scene.channels[1].sides = sides._replace(target_id=None)


def old(scene: Scene) -> None:
    scene.ends.source = None


def unlike(scene: Scene) -> None:
    scene.session.want(FetchAsk("orders", None, 9, 0, 5, MOST))
    scene.session.broken()
    scene.begin_session()


def closed(scene: Scene) -> None:
    scene.source.is_open = False


def no_target(scene: Scene) -> None:
    scene.ends.targets.clear()


def closed_target(scene: Scene) -> None:
    scene.targets[2].is_open = False


def nobody(scene: Scene) -> None:
    scene.writers.clear()


def bounded(scene: Scene) -> None:
    scene.writers[2]._quota = Quota(1_000_000)


def small(scene: Scene) -> None:
    clients = Clients(producer=ProducerSettings(max_request_size=65_536))
    scene.ends.cluster = replace(scene.ends.cluster, clients=clients)
    scene.writers[2] = scene._writer(2)


def waiting(scene: Scene) -> None:
    scene.writers[2]._ready[scene.channels[0]] = None


def stopped(scene: Scene) -> None:
    scene.writers[2].stopped = True


def transactional(scene: Scene) -> None:
    scene.writers[2].transactional_id = "t"


def translated(scene: Scene) -> None:
    channel = TranslatedChannel(Place("orders", 1, "east.orders", "translated"), lambda *_: None)
    channel.sides = scene.channels[1].sides
    scene.channels[1] = channel


def unopened(scene: Scene) -> None:
    scene.channels.append(Channel(Place("orders", 2, "east.orders")))


def empty(scene: Scene) -> None:
    scene.channels.clear()


@pytest.mark.parametrize(
    "reason",
    [
        old,
        unlike,
        closed,
        no_target,
        closed_target,
        nobody,
        bounded,
        small,
        waiting,
        stopped,
        transactional,
        translated,
        unopened,
        empty,
        mixed,
    ],
)
def test_who_cannot_go_by_express_goes_in_the_usual_way(scene: Scene, reason: Callable[[Scene], None]) -> None:
    scene.begin_session()
    assert scene.routes() is not None
    reason(scene)
    assert scene.routes() is None


@pytest.mark.parametrize("has_ids", [True, False])
def test_topics_are_named_where_requests_to_the_target_do_not_know_ids(scene: Scene, has_ids: bool) -> None:
    scene.targets[2].version = 12
    for channel in scene.channels:
        assert channel.sides is not None
        channel.sides = channel.sides if has_ids else channel.sides._replace(target_id=None)

    def story() -> None:
        scene.source.answer(fetch_answer(Fetched(0, records(0))))
        assert b"\x0ceast.orders" in scene.targets[2].bodies[0]
        scene.targets[2].answer(produce_answer(Landed(0, 0), topic=b"\x0ceast.orders"))
        scene.source.answer(fetch_answer())

    scene.play(story)
    assert scene.written == [(0, 0, 1)]


def test_a_session_does_not_go_on_where_something_is_new_without_an_id(scene: Scene) -> None:
    scene.begin_session()
    assert scene.session.turn_on() == []
    scene.session.want(FetchAsk("orders", None, 9, 0, 5, MOST))
    assert scene.session.turn_on() is None
    # The usual request tells it, and begins with names.
    assert [ask.partition for ask in scene.session.turn().asks] == [9]


# --- with its reader -------------------------------------------------------------------------------------------------


def test_what_the_target_refused_meanwhile_is_asked_for_again(scene: Scene) -> None:
    """The source's broker was asked for what stands behind it, and must be told, or it would look like a gap."""
    pace = Pace(Quota(None), 0.05)
    reader = Fetcher(scene.loop, scene.ends, FetchKey(SOURCE, committed=True), scene.channels, pace, lambda _: None)
    reader.sender_of = scene.writers.get
    reader._look(time.monotonic())
    scene.session = reader._session
    scene.begin_session()
    reader._dense = 4
    first, other = scene.channels

    async def go() -> None:
        express = reader._fast_path()
        assert express is not None
        job = scene.loop.spawn(partial(reader._run_fast_path, express))
        await scene.loop.sleep(0)
        scene.source.answer(fetch_answer(Fetched(0, records(0, 2)), Fetched(1, records(0, 2))))
        scene.targets[2].answer(produce_answer(Landed(0, -1, _NOT_ENOUGH_REPLICAS), Landed(1, 0)))
        assert first.state is PartitionState.OPENING
        # A takeover finds that nothing was written.
        assert first.sides is not None
        first.open(first.sides, LogEnd(0, PRODUCER_ID, 0, 0))
        reader.look_again()
        scene.source.answer(fetch_answer(Fetched(1, records(2))))
        while not job.is_done:
            await scene.loop.sleep(0.001)
        job.raise_failure()

    scene.loop.run(go)
    assert [first.fetch_at, other.fetch_at] == [0, 3]
    reader._look(time.monotonic())
    assert {ask.partition: ask.offset for ask in scene.session.turn().asks} == {0: 0, 1: 3}


# --- by chance -------------------------------------------------------------------------------------------------------

# A batch of so many records; with the broker's times it is none that passes as it is.
batches = st.tuples(st.integers(1, 3), st.booleans())
logs = st.lists(batches, max_size=8)
# How many batches an answer holds of each partition, and how many requests the target answers then.
answers = st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 3))


class Log:
    """A partition of the source."""

    def __init__(self, found: list[tuple[int, bool]]) -> None:
        self._batches: list[tuple[int, bytes]] = []
        self.end = 0
        for count, is_plain in found:
            one = records(self.end, count)
            self._batches.append((self.end, one if is_plain else marked(one, LOG_APPEND_TIME)))
            self.end += count

    def read(self, offset: int, count: int) -> bytes:
        return b"".join([one for base, one in self._batches if base >= offset][:count])


def told(scene: Scene, logs: list[Log], counts: tuple[int, int]) -> bytes:
    """Return an answer, without the partitions that it has nothing of."""
    found = [
        log.read(channel.fetch_at, count) for channel, log, count in zip(scene.channels, logs, counts, strict=True)
    ]
    return fetch_answer(*(Fetched(number, data) for number, data in enumerate(found) if data))


def settle(scene: Scene, sent: list[list[tuple[int, int]]], count: int) -> None:
    """Have the target answer some requests."""
    for _ in range(count):
        if scene.targets[2].on_their_way:
            scene.targets[2].answer(produce_answer(*(Landed(*one) for one in sent.pop(0))))


@given(logs, logs, st.lists(answers, min_size=1, max_size=8))
def test_each_record_is_sent_once_and_in_order(
    first: list[tuple[int, bool]], second: list[tuple[int, bool]], script: list[tuple[int, int, int]]
) -> None:
    scene, sources = Scene(), [Log(first), Log(second)]
    sent: list[list[tuple[int, int]]] = []

    def story() -> None:
        for *counts, settled in script:
            before = [len(channel.in_flight) for channel in scene.channels]
            bodies = len(scene.targets[2].bodies)
            scene.source.answer(told(scene, sources, (counts[0], counts[1])))
            if len(scene.targets[2].bodies) > bodies:
                new = [c for c, count in zip(scene.channels, before, strict=True) if len(c.in_flight) > count]
                sent.append([(c.place.partition, c.in_flight[-1].landing) for c in new])
            settle(scene, sent, settled)
            if not scene.source.on_their_way:
                return
        scene.source.answer(fetch_answer())

    left = scene.play(story)
    assert scene.express is not None
    # From here on this test sends, and nobody else.
    scene.writers[2].stopped = True
    seats = {entry.partition: entry for entry in scene.express.entries}
    for one in left:
        seat = seats[one.partition]
        assert seat.channel.receive(one, seat.asked, seat.opening, 0.0)
    settle(scene, sent, len(sent))
    for channel, log in zip(scene.channels, sources, strict=True):
        while channel.fetch_at < log.end or channel.queue.items:
            assert channel.state is PartitionState.RUNNING
            whole = FetchAnswer("orders", channel.place.partition, 0, -1, -1, 0, log.read(channel.fetch_at, 2))
            channel.receive(whole, channel.fetch_at, channel.opening, 0.0)
            while channel.can_send():
                sent_batch = channel.send()
                assert land(channel, sent_batch)
                scene._written(channel, sent_batch)
        places = [(base, upto) for number, base, upto in scene.written if number == channel.place.partition]
        assert [base for base, _ in places] == [0, *(upto for _, upto in places)][: len(places)]
        assert channel.position == log.end == max([0, *(upto for _, upto in places)])
    scene.close()
