"""Requests whose answers are taken where they were read, over a pretended broker."""

from __future__ import annotations

import struct
import time
from typing import Any

import pytest
from kafka.future import Future

from reconciler.wire import ConnectionLost
from reconciler.wire.net.connection import _Framing
from tests.support.wire.direct_ends import Fetched, Landed, fetch_answer, produce_answer
from tests.support.wire.pretended import FETCH, PRODUCE
from tests.support.wire.speaking import NODE, Scene, play

NOTHING, NOWHERE = fetch_answer(), produce_answer()
SHORT = 0.3
# A busy machine may stand still for a while between two steps.
LONGER = 2.0


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the frames that went the long way."""
    sizes: list[int] = []
    usual: Any = _Framing._hand_over

    def hand_over(framing: Any, frame: memoryview) -> None:
        sizes.append(len(frame))
        usual(framing, frame)

    monkeypatch.setattr(_Framing, "_hand_over", hand_over)
    return sizes


# --- frames ----------------------------------------------------------------------------------------------------------


def test_a_request_is_laid_out_as_the_library_does() -> None:
    async def story(scene: Scene) -> None:
        one, other = scene.send(scene.fetching(), "one"), scene.write("other")
        assert (one.key, one.version) == (FETCH, 17)
        # Behind the correlation id: the client's name, and no tags.
        assert one.body == b"\x00\x05tests\x00" + b"one"
        assert other.body.startswith(b"\x00\x05tests\x00")
        assert other.number == one.number + 1
        assert (scene.send(scene.writing(), "two").key, scene.send(scene.writing(), "three").version) == (PRODUCE, 13)

    play(story)


def test_a_whole_answer_is_taken_where_it_stands(handed: list[int]) -> None:
    async def story(scene: Scene) -> None:
        asked = scene.send(scene.fetching(), "one")
        handed.clear()
        asked.answer(fetch_answer(Fetched(0, b"records")))
        await scene.until_heard("one")
        assert scene.answers == [fetch_answer(Fetched(0, b"records"))]
        assert handed == []

    play(story)


@pytest.mark.parametrize("is_first", [True, False])
def test_of_two_in_one_read_each_goes_its_way(handed: list[int], is_first: bool) -> None:
    async def story(scene: Scene) -> None:
        direct = scene.writing()
        asked = [scene.send(direct, "direct"), scene.write("usual")]
        if not is_first:
            asked = [*asked, scene.send(direct, "direct again")]
        handed.clear()
        # Nobody has read anything meanwhile.
        asked[0].say(b"".join(one.frame(NOWHERE) for one in asked))
        names = ["direct", "usual"] if is_first else ["direct", "usual", "direct again"]
        await scene.until_heard(*names)
        assert len(handed) == 1
        assert not scene.wire._manager.connection(NODE).in_flight_requests

    play(story)


@pytest.mark.parametrize("first", [1, 4, 6, 8, 9, 12])
def test_an_answer_in_pieces_comes_to_the_same(handed: list[int], first: int) -> None:
    async def story(scene: Scene) -> None:
        direct = scene.fetching()
        asked, behind = scene.send(direct, "one"), scene.send(direct, "two")
        handed.clear()
        whole = asked.frame(fetch_answer(Fetched(0, b"records")))
        asked.say(whole[:first])
        await scene.loop.sleep(0.02)
        assert scene.heard == []
        asked.say(whole[first:] + behind.frame(NOTHING))
        await scene.until_heard("one", "two")
        assert scene.answers == [fetch_answer(Fetched(0, b"records")), NOTHING]
        assert handed == [len(whole) - 4]
        assert direct.is_open

    play(story)


def test_an_answer_larger_than_a_read_comes_to_the_same(handed: list[int]) -> None:
    async def story(scene: Scene) -> None:
        asked = scene.send(scene.fetching(), "one")
        handed.clear()
        body = fetch_answer(Fetched(0, b"r" * 300_000))
        asked.answer(body)
        await scene.until_heard("one")
        assert scene.answers == [body]
        assert len(handed) == 1

    play(story)


def test_tags_in_a_header_are_passed_over() -> None:
    async def story(scene: Scene) -> None:
        asked = scene.send(scene.fetching(), "one")
        # One tag with the number 5, of three bytes.
        tags = b"\x01\x05\x03abc"
        asked.say(struct.pack(">ii", 4 + len(tags) + len(NOTHING), asked.number) + tags + NOTHING)
        await scene.until_heard("one")
        assert scene.answers == [NOTHING]

    play(story)


def test_the_answer_to_another_request_ends_the_connection() -> None:
    async def story(scene: Scene) -> None:
        direct = scene.fetching()
        asked, _ = scene.send(direct, "one"), scene.send(direct, "two")
        asked.say(asked.frame(NOTHING, number=asked.number + 1))
        await scene.until(lambda: len(scene.heard) == 2)
        assert [text.split(":")[0] for text in scene.heard] == ["no one", "no two"]
        assert f"an answer to request {asked.number + 1} where {asked.number} was expected" in scene.heard[0]
        assert not direct.is_open
        assert scene.answers == []

    play(story)


@pytest.mark.parametrize("tags", [b"\x05\xff\xff", b"\xff" * 12])
def test_whoever_waits_for_an_answer_with_a_broken_header_hears_of_the_end(tags: bytes) -> None:
    async def story(scene: Scene) -> None:
        direct = scene.fetching()
        asked, _ = scene.send(direct, "one"), scene.send(direct, "two")
        asked.say(struct.pack(">ii", 4 + len(tags), asked.number) + tags)
        await scene.until(lambda: len(scene.heard) == 2)
        assert [text.split(":")[0] for text in scene.heard] == ["no one", "no two"]

    play(story)


# --- requests --------------------------------------------------------------------------------------------------------


def test_answers_come_in_the_order_of_the_requests_whoever_sent_them() -> None:
    async def story(scene: Scene) -> None:
        direct = scene.writing()
        asked = [scene.send(direct, "1"), scene.write("2"), scene.send(direct, "3"), scene.send(direct, "4")]
        asked.append(scene.write("5"))
        assert [one.number for one in asked] == sorted(one.number for one in asked)
        for one in asked:
            one.answer(NOWHERE)
        await scene.until_heard("1", "2", "3", "4", "5")
        assert direct is scene.writing()

    play(story)


def test_whoever_logs_in_again_waits_for_the_last_answer() -> None:
    """The library waits until nothing is on its way, and nobody sends meanwhile (KIP-368)."""

    async def story(scene: Scene) -> None:
        direct = scene.writing()
        asked, last = scene.send(direct, "1"), scene.send(direct, "2")
        reauth, drained = scene.wire._manager.connection(NODE)._reauth, Future()
        reauth._reauthenticating, reauth._drain_future = True, drained
        assert not direct.is_open
        asked.answer(NOWHERE)
        await scene.until_heard("1")
        assert not drained.is_done
        last.answer(NOWHERE)
        await scene.until_heard("1", "2")
        assert drained.is_done
        reauth._reauthenticating = False
        assert direct.is_open

    play(story)


@pytest.mark.parametrize("kind", ["fetch", "produce"])
def test_a_broker_that_wants_to_be_left_alone_is(kind: str) -> None:
    async def story(scene: Scene) -> None:
        direct = scene.fetching() if kind == "fetch" else scene.writing()
        could: list[bool] = []

        def answered(_data: memoryview) -> None:
            could.append(direct.is_open)
            scene.heard.append("one")

        direct.send(b"one", answered, lambda _: None)
        asked = scene.broker.asked()
        began = time.monotonic()
        asked.answer(fetch_answer(throttle=200) if kind == "fetch" else produce_answer(throttle=200))
        await scene.until_heard("one")
        assert could == [False], "it was known before anybody could send more"
        assert 0 < scene.wire.throttled(NODE) <= 0.2
        await scene.until(lambda: direct.is_open)
        assert time.monotonic() - began >= 0.2

    play(story)


def test_a_throttle_time_in_an_answer_in_pieces_counts_as_well() -> None:
    async def story(scene: Scene) -> None:
        direct = scene.writing()
        asked = scene.send(direct, "one")
        whole = asked.frame(produce_answer(Landed(0, 5), throttle=60_000))
        asked.say(whole[:10])
        await scene.loop.sleep(0.02)
        asked.say(whole[10:])
        await scene.until_heard("one")
        assert not direct.is_open

    play(story)


def test_whoever_waits_hears_once_and_in_order_that_the_connection_fell() -> None:
    async def story(scene: Scene) -> None:
        direct = scene.writing()
        asked = [scene.send(direct, "1"), scene.send(direct, "2"), scene.write("3"), scene.send(direct, "4")]
        asked[0].answer(NOWHERE)
        asked[0].hang_up()
        await scene.until(lambda: len(scene.heard) == 4)
        assert [text.split(":")[0] for text in scene.heard] == ["1", "no 2", "no 3", "no 4"]
        assert not direct.is_open
        # A later request goes over another connection, and finds everybody told.
        await scene.wire.reach(NODE)
        assert len(scene.heard) == 4
        again = scene.writing()
        assert again is not direct
        scene.send(again, "5").answer(NOWHERE)
        await scene.until(lambda: scene.heard[4:] == ["5"])

    play(story)


def test_all_hear_of_a_connection_that_is_dropped_here() -> None:
    async def story(scene: Scene) -> None:
        scene.send(scene.writing(), "1")
        scene.wire.drop("the lease is gone")
        assert scene.heard == ["no 1: KafkaConnectionError: the lease is gone"]

    play(story)


def test_a_broker_that_never_answers_is_given_up() -> None:
    async def story(scene: Scene) -> None:
        direct = scene.writing()
        began = time.monotonic()
        asked = scene.send(direct, "1")
        scene.send(direct, "2")
        asked.answer(NOWHERE)
        await scene.until(lambda: len(scene.heard) == 2)
        assert scene.heard[0] == "1"
        assert scene.heard[1].startswith("no 2:")
        assert scene.heard[1].endswith("no answer for 0.3 s")
        assert time.monotonic() - began >= SHORT
        assert not direct.is_open

    play(story, SHORT)


def test_nobody_is_given_up_whose_answer_lies_in_the_socket() -> None:
    async def story(scene: Scene) -> None:
        direct = scene.writing()
        direct.hold()
        scene.send(direct, "1").answer(NOWHERE)
        # Nobody looks.
        await scene.until_heard("1")
        assert direct.is_open
        direct.release()

    play(story, SHORT)


def test_the_time_of_each_request_counts() -> None:
    async def story(scene: Scene) -> None:
        direct = scene.writing()
        for name in "123":
            asked = scene.send(direct, name)
            await scene.loop.sleep(LONGER * 0.6)
            asked.answer(NOWHERE)
            await scene.until(lambda name=name: scene.heard[-1:] == [name])  # type: ignore[misc]
        assert direct.is_open
        # Nothing is kept of those that were answered.
        scene.send(direct, "4")
        assert len(direct._pending) == 1

    play(story, LONGER)


def test_who_says_what_cannot_be_read_is_left() -> None:
    async def story(scene: Scene) -> None:
        direct = scene.fetching()
        scene.send(direct, "1")
        error = direct.refuse(ValueError("too short"))
        assert isinstance(scene.wire.lost(error), ConnectionLost)
        assert "the broker's answer cannot be read: too short" in str(scene.wire.lost(error))
        assert [text.split(":")[0] for text in scene.heard] == ["no 1"]
        assert not direct.is_open
        direct.hear()

    play(story)


def test_an_answer_may_be_refused_while_it_is_taken() -> None:
    async def story(scene: Scene) -> None:
        direct = scene.fetching()
        direct.send(b"", lambda _: scene.heard.append(str(direct.refuse(ValueError("no")))), lambda _: None)
        asked = scene.broker.asked()
        behind = scene.send(direct, "2")
        asked.say(asked.frame(NOTHING) + behind.frame(NOTHING))
        await scene.until(lambda: len(scene.heard) == 2)
        assert scene.heard[0].startswith("no 2: ")
        assert scene.answers == []

    play(story)


@pytest.mark.parametrize(
    ("known", "fetches", "with_ids"),
    [
        ({}, True, True),
        # Topics have ids, but produce requests name them (Kafka 3 and 4.0).
        ({"produce": 12}, True, False),
        ({"fetch": 12}, False, True),
        ({"produce": 8, "fetch": 11}, False, None),
    ],
)
def test_brokers_are_asked_as_they_know_it(known: dict[str, int], fetches: bool, with_ids: bool | None) -> None:
    async def story(scene: Scene) -> None:
        wire = scene.wire
        assert (wire.direct_fetch(NODE) is not None) is fetches
        found, by_name = wire.direct_produce(NODE, by_id=True), wire.direct_produce(NODE, by_id=False)
        assert (None if found is None else found.by_id) is with_ids
        assert (None if by_name is None else by_name.by_id) is (None if with_ids is None else False)
        assert wire.direct_produce(NODE + 1, by_id=True) is None

    play(story, **known)


def test_a_connection_that_is_being_closed_takes_nothing_more() -> None:
    async def story(scene: Scene) -> None:
        direct = scene.fetching()
        # As the library does with one that was idle for long.
        direct._transport.write_eof()
        direct.send(b"", lambda _: None, lambda _: scene.heard.append("no answer"))
        await scene.until_heard("no answer")
        assert not direct.is_open

    play(story)
