"""Peers that are no brokers, and brokers that lie about sizes: real sockets, memory measured in other processes."""

from __future__ import annotations

import contextlib
import gc
import socket
import struct
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from reconciler.model.base.errors import EnvironmentFault
from reconciler.model.connection.security import Protocol, Security
from reconciler.model.declared.cluster import Cluster
from reconciler.state.confluent import clients
from reconciler.wire import ConnectionLost, FetchAnswer, FetchAsk, Loop, Wire
from reconciler.wire.protocol.compact import string, uvarint
from reconciler.wire.protocol.frame_limits import FIRST, LARGEST_BATCH
from reconciler.wire.requests import client
from tests.support.wire.peak import MIB, Measured, measured
from tests.support.wire.pretended import Asked
from tests.support.wire.speaking import NODE, Scene, play, speaking

pytestmark = pytest.mark.slow

BOUND = 64 * MIB
NOT_LET_IN, BROKEN, LOST = "AB232", "AB308", "AB220"
SILENCE = "silence"
# What a peer answers to the first request, and what is said of it.
PEERS = {
    "HTTP": (
        b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
        'as an HTTP server does ("HTTP/1.1 400 Bad Request")',
    ),
    "HTTP of old": (b"<html><h1>400</h1></html>", "as an HTTP server does"),
    "SSH": (b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", 'as an SSH server does ("SSH-2.0-OpenSSH_9.2p1 Debian-2")'),
    "SMTP": (b"220 mail ESMTP\r\n", "as an SMTP or FTP server does"),
    "Redis": (b"-ERR unknown command\r\n", "as a Redis server does"),
    "PostgreSQL": (struct.pack(">ci", b"E", 130) + b"SFATAL\0VFATAL\0", "as a PostgreSQL server does"),
    "TLS alert": (b"\x15\x03\x03\x00\x02\x02\x16", "it uses TLS"),
    "TLS handshake": (b"\x16\x03\x03\x00\x7a\x02\x00\x00\x76", "it uses TLS"),
    "2 GiB": (struct.pack(">i", 2**31 - 1) + b"x\x1b[31m\n", r'with no Kafka frame ("\x7f\xff\xff\xffx\x1b[31m")'),
    "more than an answer to a login": (struct.pack(">i", FIRST + 1), "with no Kafka frame"),
    "negative": (struct.pack(">i", -1) + b"xx", r'with no Kafka frame ("\xff\xff\xff\xffxx")'),
    "too short": (struct.pack(">i", 3) + b"xxxx", "with no Kafka frame"),
}


class Peer:
    """Answers the first request of each connection with some bytes, and stays connected."""

    def __init__(self, said: bytes) -> None:
        self._said = said
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.port = int(self._listening.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                self._open.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            connection.recv(4096)
            # In two pieces: the first may end anywhere.
            connection.sendall(self._said[:2])
            connection.sendall(self._said[2:])


def speak() -> dict[str, tuple[str, str]]:
    """Connect to every peer at once, beside a broker that answers all the time; return code and text for each."""
    kinds = [*PEERS, SILENCE]
    peers = {kind: Peer(PEERS[kind][0] if kind in PEERS else b"") for kind in kinds}
    found: dict[str, tuple[str, str]] = {}
    with speaking(10.0) as scene:
        wires = {
            kind: Wire(scene.loop, Cluster("west", (f"127.0.0.1:{peer.port}",)), "tests", 1.5)
            for kind, peer in peers.items()
        }

        async def stray(kind: str) -> None:
            try:
                await wires[kind].connect()
            except ConnectionLost as error:
                found[kind] = error.code, str(error).replace(f"127.0.0.1:{peers[kind].port}", "ADDRESS")

        async def all_at_once() -> None:
            await scene.wire.connect()
            jobs = [scene.loop.spawn(partial(stray, kind)) for kind in kinds]
            answered = 0
            while not all(job.is_done for job in jobs):
                await scene.wire.topics([])
                answered += 1
                await scene.loop.sleep(0.01)
            for job in jobs:
                job.raise_failure()
            assert answered > 5, "nobody else got anywhere"

        scene.loop.run(all_at_once)
        for wire in wires.values():
            wire.close()
    return found


@pytest.fixture(scope="module")
def spoken() -> Measured:
    return measured("tests.unit.wire.net.test_peers:speak")


@pytest.mark.parametrize("kind", PEERS)
def test_what_is_no_broker_is_named(kind: str, spoken: Measured) -> None:
    code, text = spoken.result[kind]
    assert code == NOT_LET_IN
    assert text.startswith("cluster west (ADDRESS): an anonymous user cannot connect to ADDRESS with PLAINTEXT: it ")
    assert PEERS[kind][1] in text
    assert text.isprintable()


def test_what_says_nothing_is_named(spoken: Measured) -> None:
    assert spoken.result[SILENCE] == [LOST, "cluster west (ADDRESS): ADDRESS answers nothing for 1.5 s"]


def test_all_of_them_together_take_little_memory(spoken: Measured) -> None:
    assert spoken.peak < BOUND


# --- brokers that lie -------------------------------------------------------------------------------------------------

ASK = FetchAsk("t", None, 0, 0, -1, MIB)


def lie(sizes: list[int], sent: int) -> list[tuple[str, str]]:
    """Answer fetches with frames that claim to be so large, and a part of them; return codes and texts."""
    found: list[tuple[str, str]] = []
    for size in sizes:

        async def story(scene: Scene, size: int = size) -> None:
            await _lost(scene, found, lambda asked: asked.say(struct.pack(">ii", size, asked.number) + bytes(sent)))

        play(story, timeout=1.5)
    return found


async def _lost(
    scene: Scene,
    found: list[tuple[str, str]],
    answer: Callable[[Asked], None],
    take: Callable[[Sequence[FetchAnswer]], None] = lambda _: None,
) -> None:
    """Fetch, have the request answered so, and keep what becomes of it."""

    async def fetch() -> None:
        try:
            take(await scene.wire.fetch(NODE, [ASK], 100, MIB, committed=True))
        except ConnectionLost as error:
            found.append((error.code, str(error)))

    job = scene.loop.spawn(fetch)
    while not scene.broker.is_asked:
        await scene.loop.sleep(0.01)
    # Beside the loop, which has to read meanwhile.
    threading.Thread(target=answer, args=(scene.broker.asked(),), daemon=True).start()
    await scene.until(lambda: job.is_done)
    job.raise_failure()


def test_a_size_beyond_what_was_asked_for_ends_the_connection() -> None:
    sizes = [2**31 - 1, LARGEST_BATCH + MIB + 1, -5, 0, 3]
    found, peak = measured("tests.unit.wire.net.test_peers:lie", sizes, 100)
    assert peak < BOUND
    for size, (code, text) in zip(sizes, found, strict=True):
        assert code == BROKEN
        assert text.startswith("cluster east")
        assert f"begins an answer of {size:,} bytes, where 4 to {LARGEST_BATCH + MIB:,} were expected" in text


def test_what_is_announced_and_does_not_come_takes_no_memory() -> None:
    found, peak = measured("tests.unit.wire.net.test_peers:lie", [LARGEST_BATCH + MIB, 30 * MIB], 5 * MIB)
    assert peak < 32 * MIB
    assert [code for code, _ in found] == [LOST, LOST]
    assert all("timed out" in text for _, text in found)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        # Its size ends within, and what follows is read as the next answer.
        (lambda asked: asked.say(struct.pack(">iix", 5, asked.number) + b"\xff" * 100), "cannot be read"),
        (lambda asked: asked.say(asked.frame(b"")), "cannot be read"),
        (lambda asked: asked.say(asked.frame(b"\xff" * 100_000)), "cannot be read"),
        (lambda asked: asked.say(asked.frame(bytes(11), asked.number + 7)), "an answer to request"),
    ],
)
def test_an_answer_that_is_none_fails_its_request_at_once(answer: Callable[[Asked], None], told: str) -> None:
    found: list[tuple[str, str]] = []

    async def story(scene: Scene) -> None:
        await _lost(scene, found, answer)

    play(story)
    ((code, text),) = found
    assert code == BROKEN
    assert text.startswith("cluster east")
    assert told in text


def test_a_batch_much_larger_than_what_was_asked_for_is_read() -> None:
    got: list[int] = []
    records = bytes(range(256)) * 4 * 30 * 1024

    def take(answers: Sequence[FetchAnswer]) -> None:
        got.extend(len(one.records) for one in answers)
        assert bytes(answers[0].records) == records

    async def story(scene: Scene) -> None:
        await _lost(scene, [], lambda asked: asked.answer(fetched(records)), take)

    play(story, fetch=12)
    assert got == [len(records)]


def fetched(records: bytes) -> bytes:
    """Return a fetch answer, version 12, behind its header."""
    one = struct.pack(">ihqqq", 0, 0, 9, 9, 0) + uvarint(1) + struct.pack(">i", -1)
    one += uvarint(len(records) + 1) + records + b"\0"
    return struct.pack(">ihi", 0, 0, 0) + uvarint(2) + string("t") + uvarint(2) + one + b"\0\0"


# --- attempts leave nothing behind ------------------------------------------------------------------------------------


def sockets() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def attempts(loop: Loop, wire: Wire, count: int) -> None:
    for _ in range(count):
        with contextlib.suppress(ConnectionLost):
            await wire.connect()
        await loop.sleep(0.001)


Attempts = Callable[[Loop, Wire, int], Awaitable[None]]


@pytest.mark.parametrize("peer", ["nobody listens", "nobody answers", "nobody shakes hands"])
def test_attempts_to_connect_leave_no_sockets(peer: str) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    if peer == "nobody listens":
        listening.close()
    security = Security(protocol="SSL") if peer == "nobody shakes hands" else Security()
    loop = Loop()
    wire = Wire(loop, Cluster("gone", (f"127.0.0.1:{port}",), security=security), "tests", 0.2)
    # What is found to be unused later must not hide what is left now.
    gc.disable()
    try:

        async def go() -> None:
            await attempts(loop, wire, 2)
            before = sockets()
            await attempts(loop, wire, 12)
            assert sockets() <= before + 1
            # Nor tasks that wait for a socket that is gone.
            assert len(loop._net._pending_tasks) < 10

        loop.run(go)
    finally:
        gc.enable()
        wire.close()
        loop.close()
        listening.close()


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_a_connection_is_given_up_long_before_a_request_may_be(
    monkeypatch: pytest.MonkeyPatch, protocol: Protocol
) -> None:
    monkeypatch.setattr(client, "LONGEST_SETUP_MS", 200)
    loop = Loop()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        cluster = Cluster("silent", (f"127.0.0.1:{listening.getsockname()[1]}",), security=Security(protocol))
        wire = Wire(loop, cluster, "tests", 240.0)
        began = time.monotonic()
        with pytest.raises(ConnectionLost):
            loop.run(wire.connect)
        # Of a request's four minutes; a busy machine gets a hundred times as long as it should take.
        assert time.monotonic() - began < 60
        wire.close()
    loop.close()


# --- librdkafka, which commands use -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("HTTP", 'it answers as an HTTP server does ("HTTP")'),
        ("SSH", 'it answers as an SSH server does ("SSH-")'),
        ("2 GiB", r'it answers with no Kafka frame ("\x7f\xff\xff\xff")'),
    ],
)
def test_commands_name_what_is_no_broker_too(kind: str, told: str) -> None:
    address = f"127.0.0.1:{Peer(PEERS[kind][0]).port}"
    with pytest.raises(EnvironmentFault) as fault:
        clients.metadata(Cluster("west", (address,)), 8.0)
    (problem,) = fault.value.problems
    assert (problem.code, problem.where) == ("AB319", f"cluster west ({address})")
    assert problem.message == f"an anonymous user cannot connect to {address} with PLAINTEXT: {told}"
    assert "advertised.listeners" in problem.remedy
