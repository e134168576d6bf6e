"""What goes by express and what ends one: nothing is lost or sent twice. No brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from reconciler.model.tasks.status import PartitionState, Reason
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.transfer import fast_path as module
from reconciler.replicator.transfer.fast_path import MUCH
from reconciler.wire import BrokerError, ConnectionLost, FetchAnswer, FetchAsk
from reconciler.wire.protocol import fast_path
from tests.support.records.batches import LOG_APPEND_TIME, Content, build, damaged, marked, some
from tests.support.replicator.expressing import MOST, Scene
from tests.support.wire.direct_ends import COPY, SESSION, TOPIC, Fetched, Landed, fetch_answer, produce_answer

OUTAGE = Reason("AB220", "somebody else")
_NOT_LEADER, _SESSION_NOT_FOUND, _DENIED, NOT_ENOUGH_REPLICAS = 6, 70, 31, 19


@pytest.fixture
def scene() -> Iterator[Scene]:
    one = Scene()
    yield one
    one.close()


def records(offset: int, count: int = 1) -> bytes:
    return build(some(count), offset)


def asked(body: bytes, partition: int, offset: int) -> bool:
    return fast_path.ask(partition, 5, offset, MOST) in body


def end(scene: Scene) -> None:
    """Say that there is nothing."""
    scene.source.answer(fetch_answer())


def offsets(answers: list[FetchAnswer]) -> dict[int, tuple[int, int]]:
    return {one.partition: (one.error, len(one.records)) for one in answers}


# --- on the way ------------------------------------------------------------------------------------------------------


def test_what_comes_is_sent_and_what_is_behind_it_asked_for(scene: Scene) -> None:
    def story() -> None:
        target = scene.targets[2]
        scene.source.answer(fetch_answer(Fetched(0, records(0, 3), 3), Fetched(1, records(0), 1)))
        assert len(target.bodies) == 1
        assert target.bodies[0].count(COPY.bytes) == 1
        assert asked(scene.source.bodies[1], 0, 3)
        assert asked(scene.source.bodies[1], 1, 1)
        # Before its answer the next one follows.
        scene.source.answer(fetch_answer(Fetched(0, records(3), 4)))
        assert len(target.bodies) == 2
        assert asked(scene.source.bodies[2], 0, 4)
        assert scene.source.bodies[2].count(fast_path.ask(1, 5, 1, MOST)) == 0
        target.answer(produce_answer(Landed(0, 0), Landed(1, 0)))
        target.answer(produce_answer(Landed(0, 3)))
        assert scene.written == [(0, 0, 3), (1, 0, 1), (0, 3, 4)]
        end(scene)

    assert scene.play(story) == []
    assert [(one.position, one.end, len(one.in_flight)) for one in scene.channels] == [(4, 4, 0), (1, 1, 0)]
    assert scene.session.epoch == 4


def test_what_the_broker_does_not_know_yet_goes_with_the_first_request(scene: Scene) -> None:
    channel = scene.channels[1]
    scene.begin_session()
    scene.session.want(FetchAsk("orders", TOPIC, 1, 0, 5, MOST))

    def story() -> None:
        assert asked(scene.source.bodies[0], 1, 0)
        assert not asked(scene.source.bodies[0], 0, 0)
        end(scene)

    scene.begin_session = lambda: None  # type: ignore[method-assign]
    scene.play(story)
    assert channel.fetch_at == 0


def test_each_broker_of_the_target_gets_a_request() -> None:
    scene = Scene(nodes=(2, 3, 2))

    def story() -> None:
        scene.source.answer(fetch_answer(*(Fetched(number, records(0)) for number in range(3))))
        assert [len(scene.targets[node].bodies) for node in (2, 3)] == [1, 1]
        scene.targets[3].answer(produce_answer(Landed(1, 0)))
        scene.targets[2].answer(produce_answer(Landed(2, 0), Landed(0, 0)))
        scene.source.answer(fetch_answer(Fetched(1, records(1))))
        assert [len(scene.targets[node].bodies) for node in (2, 3)] == [1, 2]
        scene.targets[3].answer(produce_answer(Landed(1, 1)))
        end(scene)

    assert scene.play(story) == []
    assert [channel.position for channel in scene.channels] == [1, 2, 1]
    scene.close()


def test_what_the_target_says_is_heard_when_the_source_speaks_and_while_it_does_not(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_HEAR_EVERY", 0.005)
    target = scene.targets[2]

    async def story() -> None:
        for _ in range(1_000):
            if target.heard >= 3:
                break
            await scene.loop.sleep(0.002)
        before = target.heard
        assert before >= 3
        scene.source.answer(fetch_answer(Fetched(0, records(0))))
        assert target.heard == before + 1
        target.answer(produce_answer(Landed(0, 0)))
        end(scene)

    scene.play(story)


# --- the end ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [fetch_answer(), fetch_answer(Fetched(0, b"", 5), Fetched(1, b"", 6))])
def test_it_ends_when_nothing_comes(scene: Scene, answer: bytes) -> None:
    assert scene.play(lambda: scene.source.answer(answer)) == []
    assert [channel.fetch_at for channel in scene.channels] == [0, 0]
    assert scene.session.epoch == 2
    if len(answer) > 20:
        assert [channel.end for channel in scene.channels] == [5, 6]


@pytest.mark.parametrize(
    "answer",
    [
        fetch_answer(Fetched(0, records(0)), Fetched(1, b"", error=_NOT_LEADER)),
        fetch_answer(Fetched(0, records(0)), Fetched(1, nearest=4)),
        fetch_answer(Fetched(0, records(0)), Fetched(1, records(0), aborted=((8, 0),))),
        fetch_answer(Fetched(0, records(0)), Fetched(1, records(0)), throttle=5),
    ],
)
def test_an_answer_that_says_more_is_left_as_it_is(scene: Scene, answer: bytes) -> None:
    left = scene.play(lambda: scene.source.answer(answer))
    assert [(one.topic, one.partition) for one in left] == [("orders", 0), ("orders", 1)]
    assert scene.targets[2].bodies == []
    assert not any(channel.in_flight for channel in scene.channels)
    # As after any other answer.
    assert scene.session.epoch == 2


OTHERS = {
    "times": marked(records(0), LOG_APPEND_TIME),
    "damaged": damaged(records(0)),
    "behind a hole": records(4),
    "begins before": b"\xff" * 8 + records(0, 3)[8:],
    "two": records(0, 2) + records(2, 2),
    "half": records(0, 9)[:-5],
    "half a header": records(0)[:40],
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("is_first", [True, False])
def test_what_is_not_plain_is_left_and_the_rest_is_sent(scene: Scene, other: bytes, is_first: bool) -> None:
    told = [Fetched(1, other, 9), Fetched(0, records(0, 2), 9)]
    left = scene.play(lambda: scene.source.answer(fetch_answer(*(told if is_first else reversed(told)))))
    plain, aside = scene.channels
    assert offsets(left) == {1: (0, len(other))}
    assert bytes(left[0].records) == other
    assert (plain.fetch_at, [sent_batch.base_offset for sent_batch in plain.in_flight]) == (2, [0])
    assert (aside.fetch_at, list(aside.in_flight)) == (0, [])
    assert len(scene.source.bodies) == 1
    assert scene.session.epoch == 2
    scene.targets[2].answer(produce_answer(Landed(0, 0)))
    assert scene.written == [(0, 0, 2)]


def change(number: int) -> Callable[[Scene], None]:
    def queued(scene: Scene) -> None:
        channel = scene.channels[1]
        told = FetchAnswer("orders", 1, 0, 9, 9, 0, records(0, 2))
        channel.receive(told, 0, channel.opening, 0.0)

    def full(scene: Scene) -> None:
        channel = scene.channels[1]
        channel._alone = True
        channel.in_flight.append(scene.channels[0].in_flight[0])

    return (
        lambda scene: scene.channels[1].pause(),
        lambda scene: scene.channels[1].reopen(OUTAGE, 0.0),
        lambda scene: scene.channels[1].park(OUTAGE, 0.0),
        lambda scene: scene.channels[1].leave_out([7]),
        queued,
        full,
    )[number]


@pytest.mark.parametrize("number", range(6))
def test_a_channel_to_which_something_happens_is_left(scene: Scene, number: int) -> None:
    def story() -> None:
        scene.source.answer(fetch_answer(Fetched(0, records(0))))
        change(number)(scene)
        scene.source.answer(fetch_answer(Fetched(0, records(1)), Fetched(1, records(0, 2))))

    left = scene.play(story)
    assert list(offsets(left)) == [1]
    assert [sent_batch.base_offset for sent_batch in scene.channels[0].in_flight] == [0, 1]
    assert len(scene.targets[2].bodies) == 2


def test_a_broker_of_the_target_that_cannot_be_sent_to_ends_it() -> None:
    scene = Scene(nodes=(2, 3))

    def story() -> None:
        scene.targets[3].is_open = False
        scene.source.answer(fetch_answer(Fetched(0, records(0)), Fetched(1, records(0))))

    left = scene.play(story)
    assert list(offsets(left)) == [0, 1]
    assert not any(channel.in_flight for channel in scene.channels)
    assert scene.session.epoch == 2
    scene.close()


def test_a_broker_of_the_source_that_cannot_be_asked_ends_it(scene: Scene) -> None:
    def story() -> None:
        scene.source.is_open = False
        scene.source.answer(fetch_answer(Fetched(0, records(0))))

    assert scene.play(story) == []
    assert len(scene.targets[2].bodies) == 1
    assert scene.channels[0].fetch_at == 1


def test_an_express_of_the_next_round_goes_on_listening(scene: Scene) -> None:
    heard: list[str] = []

    def story() -> None:
        scene.next_round = lambda: heard.append("next")
        scene.source.meanwhile(scene.next_round)
        end(scene)

    scene.play(story)
    assert heard == ["next"]


def test_whoever_rode_for_long_is_asked_and_gets_off(scene: Scene) -> None:
    def story() -> None:
        scene.goes_on = False
        scene.source.answer(fetch_answer(Fetched(0, records(0))))

    assert scene.play(story) == []
    assert len(scene.targets[2].bodies) == 1
    assert scene.express is not None
    assert [entry.asked for entry in scene.express.entries] == [1, 0]


def test_much_is_sent_and_ends_it(scene: Scene) -> None:
    much = build([Content(1_000, None, b"x" * MUCH)], 0)
    assert scene.play(lambda: scene.source.answer(fetch_answer(Fetched(0, much)))) == []
    assert len(scene.targets[2].bodies) == 1


@pytest.mark.parametrize("answer", [fetch_answer(Fetched(0, records(0))), fetch_answer(), b"?"])
def test_after_a_stop_nothing_is_sent(scene: Scene, answer: bytes) -> None:
    def story() -> None:
        scene.is_stopped = True
        scene.source.answer(answer)

    assert scene.play(story) == []
    assert scene.targets[2].bodies == []
    assert scene.channels[0].fetch_at == 0
    assert not scene.channels[0].in_flight


def test_a_source_that_is_lost_is_told(scene: Scene) -> None:
    def story() -> None:
        scene.source.answer(fetch_answer(Fetched(0, records(0))))
        scene.source.fall(OSError("the line is cut"))

    with pytest.raises(ConnectionLost, match="the line is cut"):
        scene.play(story)
    # The next request begins a session: nobody knows what the broker has seen.
    assert scene.session.epoch == 0
    # What was sent before is still answered.
    scene.targets[2].answer(produce_answer(Landed(0, 0)))
    assert scene.written == [(0, 0, 1)]


def test_a_target_that_is_lost_ends_it_with_the_next_answer(scene: Scene) -> None:
    def story() -> None:
        scene.source.answer(fetch_answer(Fetched(0, records(0)), Fetched(1, records(0))))
        scene.targets[2].fall(OSError("the line is cut"))
        scene.source.answer(fetch_answer(Fetched(0, records(1))))

    left = scene.play(story)
    assert list(offsets(left)) == [0]
    assert {channel.state for channel in scene.channels} == {PartitionState.OPENING}
    assert not any(channel.in_flight for channel in scene.channels)
    assert scene.written == []


UNREADABLE = {
    "nothing": b"",
    "half": fetch_answer(Fetched(0, records(0)))[:-20],
    "half of more": fetch_answer(Fetched(0, records(0)), Fetched(1, error=_NOT_LEADER))[:-20],
    "of another partition": fetch_answer(Fetched(0, records(0)), Fetched(9, records(0))),
    "half of others": fetch_answer(Fetched(0, records(0)), throttle=5)[:40],
}


@pytest.mark.parametrize("answer", UNREADABLE.values(), ids=UNREADABLE)
def test_an_answer_that_cannot_be_read_is_a_lost_one(scene: Scene, answer: bytes) -> None:
    with pytest.raises(ConnectionLost, match="cannot be read"):
        scene.play(lambda: scene.source.answer(answer))
    assert scene.source.refused is not None
    assert scene.session.epoch == 0
    assert scene.targets[2].bodies == []
    assert not any(channel.in_flight for channel in scene.channels)


def test_a_refused_request_is_told(scene: Scene) -> None:
    with pytest.raises(BrokerError) as refused:
        scene.play(lambda: scene.source.answer(fetch_answer(error=_DENIED, session=0)))
    assert refused.value.code == _DENIED
    assert scene.session.epoch == 0


@pytest.mark.parametrize(
    ("answer", "number"),
    [(fetch_answer(error=_SESSION_NOT_FOUND, session=0), 0), (fetch_answer(session=SESSION + 1), SESSION + 1)],
)
def test_a_session_that_is_over_is_begun_anew_in_the_usual_way(scene: Scene, answer: bytes, number: int) -> None:
    assert scene.play(lambda: scene.source.answer(answer)) == []
    assert scene.session.number == number


def test_a_fault_of_this_program_is_told(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Channel, "pass_on", fault)
    with pytest.raises(ZeroDivisionError):
        scene.play(lambda: scene.source.answer(fetch_answer(Fetched(0, records(0)))))
