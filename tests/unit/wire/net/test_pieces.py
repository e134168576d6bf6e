"""An answer that comes in pieces wakes its reader when enough of it is there; real sockets, no broker."""

from __future__ import annotations

import contextlib
import socket
import struct
from types import SimpleNamespace
from typing import Any

from reconciler.wire.net.buffers import Buffers
from reconciler.wire.net.connection import _WORTH_READING, _Framing
from tests.support.wire.sockets import Pair


class Reading(_Framing):
    """The part of a connection that puts frames together."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__()
        self._sock, self._protocol, self._net = sock, None, SimpleNamespace(buffers=Buffers())
        self.frames: list[bytes] = []
        self.kept: list[memoryview] = []

    def _bounds(self) -> tuple[int, int]:
        return 2**30, 2**30

    def _deliver(self, frame: memoryview) -> None:
        self.frames.append(bytes(frame))
        self.kept.append(frame)

    def read(self) -> int:
        """Read what there is, and return what it is woken by."""
        poll_until(self._sock)
        assert self._read_ready() is None
        self._wait_for_enough()
        return int(self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT))


def poll_until(sock: socket.socket) -> None:
    before = sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
    sock.settimeout(5)
    sock.recv(1, socket.MSG_PEEK)
    sock.settimeout(0)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, before)


def test_it_waits_for_what_is_left_and_then_for_anything(pair: Pair) -> None:
    here, there = pair
    reading: Any = Reading(here)
    there.sendall(struct.pack(">i", 1_000) + b"a" * 100)
    assert reading.read() == 900
    there.sendall(b"b" * 900)
    assert reading.read() == 1
    assert reading.frames == [b"a" * 100 + b"b" * 900]
    # Whole ones, and a size that is not whole yet, say nothing of more.
    there.sendall(struct.pack(">i", 4) + b"ones" + struct.pack(">i", 4) + b"twos" + b"\x00\x00")
    assert reading.read() == 1
    assert reading.frames[1:] == [b"ones", b"twos"]


def test_of_a_large_one_it_takes_a_piece_after_the_other(pair: Pair) -> None:
    here, there = pair
    reading: Any = Reading(here)
    there.sendall(struct.pack(">i", 3 * _WORTH_READING) + b"a" * 10)
    assert reading.read() == _WORTH_READING
    sent = 10
    while sent < 3 * _WORTH_READING:
        count = min(20_000, 3 * _WORTH_READING - sent)
        there.sendall(b"b" * count)
        sent += count
        woken = reading.read()
        assert woken == (1 if sent == 3 * _WORTH_READING else min(_WORTH_READING, 3 * _WORTH_READING - sent))
    assert [len(one) for one in reading.frames] == [3 * _WORTH_READING]


def test_whoever_is_gone_wakes_it_all_the_same(pair: Pair) -> None:
    here, there = pair
    reading: Any = Reading(here)
    there.sendall(struct.pack(">i", 1_000) + b"a")
    assert reading.read() == 999
    there.close()
    here.settimeout(5)
    assert here.recv(10) == b""


def test_what_comes_read_only_may_stay_and_what_does_not_is_soon_another_frame(pair: Pair) -> None:
    here, there = pair
    reading: Any = Reading(here)
    size = 4 * 2**20
    for number in range(10):
        there.setblocking(False)
        data = memoryview(struct.pack(">i", size) + bytes([number]) * size)
        while data:
            with contextlib.suppress(BlockingIOError):
                data = data[there.send(data) :]
            reading.read()
        # What was sent has not all arrived yet.
        while len(reading.kept) <= number:
            reading.read()
    assert [one.readonly for one in reading.kept] == [True] * 8 + [False] * 2
    assert [one[0] for one in reading.kept[:8]] == list(range(8))
    assert [set(one[:: 2**16]) for one in reading.kept[:8]] == [{number} for number in range(8)]
