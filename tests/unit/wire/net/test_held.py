"""Connections that wake nobody for a while, and what is done before an answer is read; a pretended broker."""

from __future__ import annotations

import select
import socket
import struct
import time
from typing import Any

from reconciler.wire import Wire
from reconciler.wire.net import connection
from reconciler.wire.net.connection import _Framing
from tests.support.wire.direct_ends import fetch_answer, produce_answer
from tests.support.wire.sockets import Pair
from tests.support.wire.speaking import NODE, Scene, play, speaking

NOTHING, NOWHERE = fetch_answer(), produce_answer()


def test_nobody_is_woken_while_a_connection_is_held() -> None:
    async def story(scene: Scene) -> None:
        direct = scene.writing()
        direct.hold()
        direct.hold()
        scene.send(direct, "1").answer(NOWHERE)
        await scene.loop.sleep(0.05)
        assert scene.heard == []
        direct.hear()
        assert scene.heard == ["1"]
        direct.release()
        scene.send(direct, "2").answer(NOWHERE)
        await scene.loop.sleep(0.05)
        assert scene.heard == ["1"]
        direct.release()
        assert scene.heard == ["1", "2"]
        scene.send(direct, "3").answer(NOWHERE)
        await scene.until_heard("1", "2", "3")

    play(story)


def test_the_end_is_noticed_while_a_connection_is_held() -> None:
    async def story(scene: Scene) -> None:
        direct = scene.writing()
        direct.hold()
        asked = scene.send(direct, "1")
        scene.send(direct, "2")
        asked.answer(NOWHERE)
        asked.hang_up()
        await scene.until(lambda: len(scene.heard) == 2)
        assert [text.split(":")[0] for text in scene.heard] == ["1", "no 2"]
        direct.hear()
        direct.release()

    play(story)


def test_something_is_done_when_an_answer_was_taken() -> None:
    async def story(scene: Scene) -> None:
        direct = scene.fetching()

        def work() -> None:
            scene.heard.append("meanwhile")

        direct.meanwhile(work)
        scene.send(direct, "1").answer(NOTHING)
        await scene.until_heard("1", "meanwhile")
        # Of one that is over nothing ends what took its place.
        direct.no_more(lambda: None)
        scene.send(direct, "2").answer(NOTHING)
        await scene.until_heard("1", "meanwhile", "2", "meanwhile")
        direct.no_more(work)
        scene.send(direct, "3").answer(NOTHING)
        await scene.until_heard("1", "meanwhile", "2", "meanwhile", "3")

    play(story)


def test_another_connection_may_fall_meanwhile() -> None:
    """What is heard of the target when the source's answer has arrived may be the target's end."""

    async def story(scene: Scene) -> None:
        with speaking(10.0) as other:
            # Both on one loop, as in a task.
            wire = Wire(scene.loop, other.wire.cluster, "tests", 10.0)
            await wire.connect()
            await wire.reach(NODE)
            target = wire.direct_produce(NODE, by_id=True)
            assert target is not None
            target.hold()

            def leave() -> None:
                target.refuse(ValueError("no"))

            asked = scene.send(scene.fetching(), "source")
            target.send(b"", lambda _: None, lambda _: scene.heard.append("no target"))
            scene.fetching().meanwhile(leave)
            asked.answer(NOTHING)
            await scene.until_heard("source", "no target")
            target.release()
            assert scene.fetching().is_open
            wire.close()

    play(story)


def framing(sock: socket.socket) -> Any:
    one: Any = _Framing()
    one._sock, one._protocol = sock, None
    return one


def wakes(sock: socket.socket, seconds: float) -> bool:
    return bool(select.select([sock], [], [], seconds)[0])


def test_a_held_socket_is_quiet_until_all_have_let_go(pair: Pair) -> None:
    here, there = pair
    one = framing(here)
    one.hold()
    one.hold()
    there.sendall(b"a" * 1_000)
    assert not wakes(here, 0.05)
    one.release()
    assert not wakes(here, 0.05)
    one.release()
    assert wakes(here, 5)
    assert here.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) == 1


def test_a_held_socket_tells_its_end(pair: Pair) -> None:
    here, there = pair
    framing(here).hold()
    there.sendall(b"a")
    there.close()
    assert wakes(here, 5)


def test_much_wakes_whoever_holds_it(pair: Pair) -> None:
    """Or the other side would find no room any more."""
    here, there = pair
    framing(here).hold()
    there.settimeout(5)
    there.sendall(b"a" * (connection._SCRATCH + 1))
    assert wakes(here, 5)


def test_whoever_lets_go_waits_for_what_is_left_of_a_frame(pair: Pair) -> None:
    here, there = pair
    one = framing(here)
    one.hold()
    there.sendall(struct.pack(">i", 1_000) + b"a" * 100)
    # Looked at, though nobody was woken.
    end = time.monotonic() + 5
    while one._frame is None and time.monotonic() < end:
        assert one._read_ready() is None
    one._wait_for_enough()
    assert not wakes(here, 0.02)
    one.release()
    assert here.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) == 900
